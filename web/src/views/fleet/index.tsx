/** All that runs, for those who look after it. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { keep, place } from '../../address.js';
import { request } from '../../api/request.js';
import { mayAct, session } from '../../session.js';
import { heading } from '../../shell/title.js';
import { Parts } from '../../ui/parts.js';
import { useAnswer } from '../../ui/hooks.js';
import { Conversations } from './conversations.js';
import { Failures, WorkerList } from './health.js';
import { Spending } from './spending.js';
import { Tree } from './tree.js';
import '../../ui/parts.css';
import './fleet.css';

export default function Fleet(): JSX.Element {
  useEffect(() => {
    heading.value = 'Fleet';
  }, []);
  const agents = useAnswer('agents', (signal) => request('get', '/v1/agents', { signal }));
  const isOperator = mayAct('operator');
  const isOfAll = session.value.is === 'in' && session.value.me.tenant === undefined;
  const parts = [
    { name: 'conversations', title: 'Conversations' },
    ...(isOperator ? [{ name: 'failures', title: 'Failures' }] : []),
    ...(isOperator && isOfAll ? [{ name: 'workers', title: 'Workers' }] : []),
    ...(isOperator ? [{ name: 'spending', title: 'Spending' }] : []),
    { name: 'trees', title: 'Sub-agents' },
  ];
  const part = parts.find(({ name }) => name === place.value.more['part'])?.name ?? 'conversations';
  return (
    <div class="view-pad fleet">
      <header class="view-head">
        <h1>Fleet</h1>
      </header>
      <Parts
        label="Parts of the fleet"
        parts={parts}
        shown={part}
        onShow={(name) => keep({ part: name === 'conversations' ? undefined : name, before: undefined })}
      />
      {part === 'conversations' && <Conversations agents={agents.value?.agents ?? []} />}
      {part === 'failures' && <Failures />}
      {part === 'workers' && <WorkerList />}
      {part === 'spending' && <Spending />}
      {part === 'trees' && <Tree />}
    </div>
  );
}
