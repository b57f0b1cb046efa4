/** A conversation with its sub-agents, as a tree that is drawn; each is a link. */
import type { JSX } from 'preact';
import { toHref, keep, place, show } from '../../address.js';
import { request, type Answer } from '../../api/request.js';
import { Link, Pending } from '../../ui/parts.js';
import { plainText, plural } from '../../ui/words.js';
import { useAnswer } from '../../ui/hooks.js';

type Node = Answer<'get', '/v1/conversations/{id}/tree'>['conversations'][number];

const ROW = 34;
const INDENT = 30;

export function Tree(): JSX.Element {
  const of = place.value.more['tree'] ?? '';
  return (
    <>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          keep({ tree: new FormData(event.currentTarget).get('tree')?.toString().trim() }, { push: true });
        }}
      >
        <input
          class="field grow"
          name="tree"
          key={of}
          defaultValue={of}
          placeholder="Id of a conversation"
          aria-label="Id of a conversation"
          maxLength={200}
          spellcheck={false}
        />
        <button type="submit" class="button">
          Draw
        </button>
      </form>
      {of === '' ? <Roots /> : <Drawn of={of} />}
    </>
  );
}

/** Of the latest, those that have delegated something. */
function Roots(): JSX.Element {
  const { value, error, again } = useAnswer('roots', (signal) =>
    request('get', '/v1/conversations', { query: { limit: 500, text: ':turn_' }, signal }),
  );
  if (value === undefined) return <Pending error={error} again={again} />;
  const roots = new Map<string, number>();
  for (const { id } of value.conversations) {
    const root = id.replace(/:turn_.*$/, '');
    roots.set(root, (roots.get(root) ?? 0) + 1);
  }
  if (roots.size === 0) return <p class="hint">No conversation of the latest has delegated anything.</p>;
  return (
    <ul class="ranked">
      {[...roots].slice(0, 100).map(([id, many]) => (
        <li key={id}>
          <Link view="fleet" more={{ part: 'trees', tree: id }} class="one-line">
            {plainText(id, 80)}
          </Link>
          <span class="small faint num">{plural(many, 'sub-agent')}</span>
        </li>
      ))}
    </ul>
  );
}

function Drawn({ of }: { readonly of: string }): JSX.Element {
  const { value, error, again } = useAnswer(
    `tree ${of}`,
    (signal) => request('get', '/v1/conversations/{id}/tree', { path: { id: of }, signal }),
    5_000,
  );
  if (value === undefined) return <Pending error={error} again={again} />;
  const nodes = [...value.conversations].sort(byPlace);
  const rows = new Map(nodes.map(({ id }, at) => [id, at]));
  const countLevels = (id: string): number => (id.length - of.length === 0 ? 0 : id.slice(of.length).split(':turn_').length - 1);
  const deepest = Math.max(0, ...nodes.map(({ id }) => countLevels(id)));
  const width = deepest * INDENT + 560;
  return (
    <div class="scroll tree">
      <p class="small quiet">
        {plural(nodes.length - 1, 'sub-agent')}
        {value.more && ', and more'}
      </p>
      <svg width={width} height={nodes.length * ROW + 8} role="group" aria-label={`${of} and its sub-agents`}>
        {nodes.map(({ id }, at) => {
          const parent = id.replace(/:turn_\d+:\d+$/, '');
          const above = parent === id ? undefined : rows.get(parent);
          if (above === undefined) return null;
          const x = (countLevels(id) - 1) * INDENT + 10;
          return <path key={id} class="tree-line" d={`M${x} ${above * ROW + 24} V${at * ROW + 11} q0 6 6 6 H${x + INDENT - 8}`} />;
        })}
        {nodes.map(({ id, running, state, status, agent, title }, at) => {
          const x = countLevels(id) * INDENT;
          const words = running ? (status ?? 'running') : state;
          const kind = words === 'failed' || words === 'timed-out' ? 'failed' : words === 'waiting' ? 'waiting' : running ? 'busy' : '';
          return (
            <a
              key={id}
              href={toHref('timeline', id)}
              onClick={(event) => {
                if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                event.preventDefault();
                show(toHref('timeline', id));
              }}
            >
              <circle cx={x + 10} cy={at * ROW + 17} r={5.5} class={`tree-dot ${kind}`} />
              <text x={x + 24} y={at * ROW + 21.5} class="tree-words">
                {plainText(title ?? id, 60)}
                <tspan class="tree-facts" dx="8">
                  {[agent, words].filter((part) => part !== null).join(' · ')}
                </tspan>
              </text>
            </a>
          );
        })}
      </svg>
    </div>
  );
}

/** Each below the one that started it, in the order in which they were started. */
function byPlace(a: Node, b: Node): number {
  const [left, right] = [a.id.split(':'), b.id.split(':')];
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const [one, other] = [left[at], right[at]];
    if (one === undefined) return -1;
    if (other === undefined) return 1;
    if (one !== other) return Number(one.replace(/\D/g, '')) - Number(other.replace(/\D/g, '')) || (one < other ? -1 : 1);
  }
  return 0;
}
