/** What the next call sees, what it stands on, and where the rest has gone. */
import type { JSX } from 'preact';
import { keep, place } from '../../address.js';
import { request } from '../../api/request.js';
import { Icon } from '../../ui/icon.js';
import { Link } from '../../ui/link.js';
import { plainText } from '../../ui/plain-text.js';
import { Problem } from '../../ui/problem.js';
import { Parts } from '../../ui/tabs.js';
import { useAnswer } from '../../ui/use-answer.js';
import { count, plural } from '../../ui/words.js';
import { conversations } from '../../conversations.js';
import { Changes } from './changes.js';
import { Meter } from './meter.js';
import { Reader } from './reader.js';
import { numberOf, spans, type Chunk, type ContextView, type Index, type KnownTurns } from './shapes.js';
import { WhyStory } from './why-story.js';
import '../../ui/parts.css';
import './context.css';

const PARTS = [
  { name: 'now', title: 'In the next call' },
  { name: 'turns', title: 'Turn by turn' },
  { name: 'changes', title: 'Compactions' },
] as const;

export default function Context({ of }: { readonly of: string }): JSX.Element {
  const { more } = place.value;
  const { value, error, again } = useAnswer(`context ${of}`, (signal) =>
    request('get', '/v1/conversations/{id}/context/chunks', { path: { id: of }, signal }),
  );
  if (of === '') return <div class="empty">Choose a conversation to see what its model sees.</div>;
  const part = PARTS.find(({ name }) => name === more['part'])?.name ?? (more['why'] === undefined ? 'now' : 'turns');
  const selected = more['chunk'];
  const select = (chunk: string | undefined): void => keep({ chunk: chunk === selected ? undefined : chunk, part: undefined });
  const index = value?.index as unknown as Index | undefined;
  return (
    <div class="pane">
      <div class="view-pad context">
        {error !== undefined && (
          <>
            <Problem error={error} again={again} />
            <p class="hint">
              A conversation that has ended has no next call. What it forgot stands under “Turn by turn” and “Compactions”.
            </p>
          </>
        )}
        {value !== undefined && index !== undefined && (
          <>
            <p class="context-sum">
              <strong class="num">{count(index.total)}</strong>
              {index.budget > 0 && (
                <span class="quiet">
                  {' '}
                  of {count(index.budget)} tokens, {Math.round((index.total / index.budget) * 100)} %
                </span>
              )}
              <span class="faint small">
                {' '}
                · epoch {index.epoch}, session {index.session}
                {index.compactions > 0 && ` · compacted ${index.compactions === 1 ? 'once' : `${index.compactions} times`}`} ·{' '}
                {index.tokenizer === undefined ? 'estimated, four characters a token' : `counted by ${index.tokenizer}`}
              </span>
            </p>
            <Meter view={value} selected={selected} onSelect={select} />
          </>
        )}
        <Parts
          label="Parts of the context"
          parts={PARTS}
          shown={part}
          onShow={(name) => keep({ part: name === 'now' ? undefined : name, why: undefined })}
        />
        {part === 'now' && value !== undefined && <Now of={of} view={value} selected={selected} onSelect={select} />}
        {part === 'turns' && <Turns of={of} known={value?.turns as unknown as KnownTurns | undefined} why={more['why']} />}
        {part === 'changes' && <Changes of={of} canUndo={index?.canUndo === true} onChanged={again} />}
      </div>
    </div>
  );
}

interface NowProps {
  readonly of: string;
  readonly view: ContextView;
  readonly selected: string | undefined;
  readonly onSelect: (chunk: string | undefined) => void;
}

function Now({ of, view, selected, onSelect }: NowProps): JSX.Element {
  const { chunks } = view;
  const largest = Math.max(1, ...chunks.map(({ tokens }) => tokens));
  const one = chunks.find(({ id }) => id === selected);
  return (
    <div class={`chunks${one === undefined ? '' : ' has-one'}`}>
      <ol class="chunk-list" aria-label={plural(chunks.length, 'chunk')}>
        {chunks.map((chunk) => (
          <li key={chunk.id}>
            <button
              type="button"
              class={`chunk ${classOf(chunk)}`}
              aria-current={chunk.id === selected ? 'true' : undefined}
              onClick={() => onSelect(chunk.id)}
            >
              <i class={`key ${classOf(chunk)}`} />
              <span class="chunk-name small">{nameOf(chunk)}</span>
              <span class="chunk-words one-line">{plainText(chunk.words, 200)}</span>
              {chunk.drops && <span class="pill warn">drops next</span>}
              <span class="chunk-size" aria-hidden="true">
                <span style={{ width: `${Math.max(2, (chunk.tokens / largest) * 100)}%` }} />
              </span>
              <span class="small num chunk-tokens">{count(chunk.tokens)}</span>
            </button>
          </li>
        ))}
      </ol>
      {one !== undefined && (
        <aside class="chunk-open" aria-label={nameOf(one)}>
          <header class="row">
            <h2 class="grow">{nameOf(one)}</h2>
            <button type="button" class="button bare square tight" aria-label="Close" onClick={() => onSelect(undefined)}>
              <Icon name="close" size={15} />
            </button>
          </header>
          <p class="small quiet num">{plural(one.tokens, 'token')}</p>
          {one.kind === 'SYSTEM' ? <SystemPrompt of={of} /> : <Reader of={of} chunk={one.id} />}
          {one.turn !== '' && (
            <p class="small">
              <Link view="timeline" of={of} more={{ turn: one.turn }}>
                Timeline of turn {numberOf(one.turn)}
              </Link>
            </p>
          )}
        </aside>
      )}
    </div>
  );
}

/** It is the agent's, not the conversation's: it stands there. */
function SystemPrompt({ of }: { readonly of: string }): JSX.Element {
  const agent = conversations.value.all.find(({ id }) => id === of)?.agent;
  return (
    <p class="note">
      <span>
        The agent’s identity files, the schemas of its tools, and MEMORY.md. They stand with{' '}
        {agent === undefined || agent === null ? (
          'the agent'
        ) : (
          <Link view="agents" of={agent}>
            {plainText(agent, 60)}
          </Link>
        )}
        .
      </span>
    </p>
  );
}

function classOf({ kind, role }: Chunk): string {
  return kind === 'SYSTEM' ? 'system' : kind === 'MEMORY' ? 'memory' : role;
}

const ROLES: Readonly<Record<string, string>> = { user: 'person', assistant: 'model', tool: 'tool' };

function nameOf({ kind, turn, role }: Chunk): string {
  if (kind === 'SYSTEM') return 'System and tools';
  return kind === 'MEMORY' ? 'Memory' : `Turn ${numberOf(turn)}, ${ROLES[role] ?? role}`;
}

interface TurnsProps {
  readonly of: string;
  readonly known: KnownTurns | undefined;
  readonly why: string | undefined;
}

function Turns({ of, known, why }: TurnsProps): JSX.Element {
  const list = useAnswer(`turns of ${of}`, (signal) =>
    request('get', '/v1/conversations/{id}/turns', { path: { id: of }, query: { limit: 500 }, signal }),
  );
  const turns = list.value?.turns ?? [];
  return (
    <div class={`chunks${why === undefined ? '' : ' has-one'}`}>
      <div>
        {known !== undefined && <Known known={known} />}
        {list.error !== undefined && <Problem error={list.error} again={list.again} />}
        <ol class="turn-list">
          {turns.map(({ turn, question }) => {
            const [kind, words] = known === undefined ? (['', ''] as const) : standingOf(turn, known);
            return (
              <li key={turn}>
                <button
                  type="button"
                  class="turn-row"
                  aria-current={turn === why ? 'true' : undefined}
                  onClick={() => keep({ why: turn === why ? undefined : turn, part: 'turns' })}
                >
                  <span class="num turn-number">{numberOf(turn)}</span>
                  <span class="one-line">{plainText(question, 160)}</span>
                  {words !== '' && <span class={`pill ${kind}`}>{words}</span>}
                </button>
              </li>
            );
          })}
        </ol>
      </div>
      {why !== undefined && (
        <aside class="chunk-open" aria-label="Why it is not there">
          <WhyStory of={of} turn={why} />
        </aside>
      )}
    </div>
  );
}

function standingOf(turn: string, known: KnownTurns): readonly [kind: string, words: string] {
  if (known.shortened.some((one) => one.turn === turn)) return ['warn', 'shortened'];
  if (known.whole.includes(turn)) return ['', 'word for word'];
  if (known.inPart.includes(turn)) return ['warn', 'in part'];
  if (known.leftOut.includes(turn)) return ['bad', 'left out'];
  if (known.summarized.some(({ turns }) => turns.includes(turn))) return ['busy', 'as a summary'];
  return ['bad', known.earlierSessions.includes(turn) ? 'before /new' : 'not there'];
}

function Known({ known }: { readonly known: KnownTurns }): JSX.Element {
  const facts: [string, string][] = [];
  if (known.whole.length > 0) facts.push(['Word for word', spans(known.whole)]);
  if (known.inPart.length > 0) facts.push(['In part', spans(known.inPart)]);
  for (const { episode, turns } of known.summarized) facts.push(['As a summary', `${spans(turns)}, in ${episode}`]);
  if (known.leftOut.length > 0) facts.push(['Left out', spans(known.leftOut)]);
  if (known.earlierSessions.length > 0) facts.push(['Before /new', spans(known.earlierSessions)]);
  return (
    <dl class="facts-list known">
      {facts.map(([name, words], at) => (
        <>
          <dt key={`${at} name`}>{name}</dt>
          <dd key={at}>{plainText(words, 300)}</dd>
        </>
      ))}
    </dl>
  );
}
