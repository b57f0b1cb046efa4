/** What a scope remembers for good: the document, its past, and what people decide about it. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { go, keep, place } from '../../address.js';
import { request } from '../../api/request.js';
import { keepListed } from '../../conversations.js';
import { heading } from '../../shell/title.js';
import { plainText } from '../../ui/words.js';
import { Pending, Problem, Parts } from '../../ui/parts.js';
import { useAnswer } from '../../ui/hooks.js';
import { Document, Versions } from './document.js';
import { Episodes } from './episodes.js';
import { Forget } from './forget.js';
import { Facts, History, Proposals } from './lists.js';
import { Search } from './search.js';
import '../../ui/parts.css';
import './memory.css';

export default function Memory({ of }: { readonly of: string }): JSX.Element {
  const agents = useAnswer('agents', (signal) => request('get', '/v1/agents', { signal }));
  const scopes = useAnswer('scopes', (signal) => request('get', '/v1/scopes', { signal }));
  const names = agents.value?.agents ?? [];
  const scope = of !== '' ? of : (names.find((name) => name === 'default') ?? names[0] ?? '');
  // Agents that have said nothing yet have a scope too.
  const all = [...new Set([...(scopes.value?.scopes ?? []), ...names, ...(scope === '' ? [] : [scope])])].sort();
  useEffect(() => {
    heading.value = scope === '' ? 'Memory' : `Memory of ${scope}`;
  }, [scope]);
  // What is said of conversations has their titles.
  useEffect(keepListed, []);
  return (
    <div class="view-pad memory">
      <header class="view-head">
        <h1>Memory</h1>
        <label class="row scope-form">
          <span class="small quiet">Scope</span>
          <select class="field" value={scope} onChange={(event) => go('memory', event.currentTarget.value)}>
            {all.map((name) => (
              <option key={name} value={name}>
                {plainText(name, 80)}
              </option>
            ))}
          </select>
        </label>
      </header>
      {agents.error !== undefined && <Problem error={agents.error} again={agents.again} />}
      {scopes.error !== undefined && <Problem error={scopes.error} again={scopes.again} />}
      {scope === '' && agents.error === undefined && scopes.error === undefined && <Pending />}
      {scope !== '' && <OfScope key={scope} scope={scope} />}
    </div>
  );
}

function OfScope({ scope }: { readonly scope: string }): JSX.Element {
  const { value, error, again } = useAnswer(`memory ${scope}`, (signal) =>
    request('get', '/v1/memory/{scope}', { path: { scope }, signal }),
  );
  const proposals = value?.proposals ?? [];
  const open = proposals.filter(({ state }) => state === 'open').length;
  const parts = [
    { name: 'document', title: 'MEMORY.md' },
    { name: 'search', title: 'Search' },
    { name: 'versions', title: 'Versions' },
    { name: 'proposals', title: 'To review', count: open },
    { name: 'facts', title: 'Facts' },
    { name: 'episodes', title: 'Episodes' },
    { name: 'history', title: 'HISTORY' },
    { name: 'forget', title: 'Forget' },
  ];
  const part = parts.find(({ name }) => name === place.value.more['part'])?.name ?? 'document';
  return (
    <>
      <Parts
        label={`Memory of ${plainText(scope, 80)}`}
        parts={parts}
        shown={part}
        onShow={(name) => keep({ part: name === 'document' ? undefined : name, before: undefined, hit: undefined })}
      />
      {error !== undefined && <Problem error={error} again={again} />}
      {part === 'document' && <Document scope={scope} />}
      {part === 'search' && <Search scope={scope} />}
      {part === 'versions' && <Versions scope={scope} />}
      {part === 'proposals' && value !== undefined && <Proposals scope={scope} proposals={proposals} onDecided={again} />}
      {part === 'facts' && <Facts scope={scope} />}
      {part === 'episodes' && <Episodes scope={scope} />}
      {part === 'history' && <History scope={scope} />}
      {part === 'forget' && <Forget scope={scope} onForgotten={again} />}
    </>
  );
}
