/** What a scope remembers for good: the document, its past, and what people decide about it. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { go, keep, place } from '../../address.js';
import { request } from '../../api/request.js';
import { keepListed } from '../../conversations.js';
import { heading } from '../../shell/title.js';
import { plainText } from '../../ui/words.js';
import { Problem, Parts } from '../../ui/parts.js';
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
  const names = agents.value?.agents ?? [];
  const scope = of !== '' ? of : (names.find((name) => name === 'default') ?? names[0] ?? '');
  useEffect(() => {
    heading.value = scope === '' ? 'Memory' : `Memory of ${scope}`;
  }, [scope]);
  // What is said of conversations has their titles.
  useEffect(keepListed, []);
  return (
    <div class="view-pad memory">
      <header class="view-head">
        <h1>Memory</h1>
        <form
          class="row scope-form"
          onSubmit={(event) => {
            event.preventDefault();
            const wanted = new FormData(event.currentTarget).get('scope')?.toString().trim() ?? '';
            if (wanted !== '') go('memory', wanted);
          }}
        >
          <label class="small quiet" for="scope">
            Scope
          </label>
          <input
            class="field"
            id="scope"
            name="scope"
            list="scopes"
            key={scope}
            defaultValue={scope}
            maxLength={129}
            autocomplete="off"
            spellcheck={false}
          />
          <datalist id="scopes">
            {names.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <button type="submit" class="button">
            Open
          </button>
        </form>
      </header>
      {agents.error !== undefined && <Problem error={agents.error} again={agents.again} />}
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
