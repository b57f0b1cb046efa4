/** What the next call sees, what it stands on, and where the rest has gone. */
import { useSignal, type Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { turnNumber } from '../../../../src/records/identity.js';
import { describeCached, describePrefix } from '../../../../src/records/time-in-words.js';
import { keep, place } from '../../address.js';
import { request, type Schema } from '../../api/request.js';
import { Icon } from '../../ui/icon.js';
import { Link, Pending, Problem, Parts } from '../../ui/parts.js';
import { plainText, ago, count, plural, turnSpans } from '../../ui/words.js';
import { useAnswer } from '../../ui/hooks.js';
import type { Branch } from '../../conversation/open.js';
import { conversations } from '../../conversations.js';
import { Changes } from './changes.js';
import { Meter } from './meter.js';
import { Reader } from './reader.js';
import { WhyStory } from './why-story.js';
import '../../ui/parts.css';
import './context.css';

type Chunk = Schema<'Chunk'>;
type ContextView = Schema<'ContextView'>;
type KnownTurns = Schema<'KnownTurns'>;

const PARTS = [
  { name: 'now', title: 'In the next call' },
  { name: 'turns', title: 'Turn by turn' },
  { name: 'changes', title: 'Compactions' },
] as const;

const TURNS = 300;
/** Of the messages, at first. */
const ROWS = 300;
/** That are listed by name. */
const SUMMARIES = 8;

export default function Context({ of }: { readonly of: string }): JSX.Element {
  const { more } = place.value;
  const selected = more['chunk'];
  const rows = useSignal(ROWS);
  // Of a long life the latest messages come at once, and all of them for who looks further back.
  const isWhole = selected !== undefined || rows.value > ROWS;
  const {
    value: answered,
    error,
    again,
  } = useAnswer(`context ${of} ${isWhole ? 'whole' : ''}`, (signal) =>
    request('get', '/v1/conversations/{id}/context/chunks', { path: { id: of }, query: isWhole ? {} : { last: ROWS }, signal }),
  );
  const known = useRef<{ readonly of: string; readonly value: ContextView }>(undefined);
  if (answered !== undefined) known.current = { of, value: answered };
  const value = answered ?? (known.current?.of === of ? known.current.value : undefined);
  const about = useAnswer(`conversation ${of}`, (signal) => request('get', '/v1/conversations/{id}', { path: { id: of }, signal }));
  const status = about.value?.status;
  if (of === '') return <div class="empty">Choose a conversation to see what its model sees.</div>;
  const part = PARTS.find(({ name }) => name === more['part'])?.name ?? (more['why'] === undefined ? 'now' : 'turns');
  const select = (chunk: string | undefined): void => keep({ chunk: chunk === selected ? undefined : chunk, part: undefined });
  const index = value?.index;
  // What stands above all else comes first: nothing moves afterwards.
  const isComing = error === undefined && (value === undefined || (about.value === undefined && about.error === undefined));
  if (isComing && part === 'now') {
    return (
      <div class="pane">
        <div class="view-pad context">
          <Pending />
        </div>
      </div>
    );
  }
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
                <span class="quiet" title={`the model takes ${count(index.budget)}`}>
                  {' '}
                  of {count(index.compactsAt)} tokens, from which older turns become memory:{' '}
                  {Math.round((index.total / index.compactsAt) * 100)} %
                </span>
              )}
              <span class="faint small">
                {' '}
                · epoch {index.epoch}, session {index.session}
                {index.compactions > 0 && ` · compacted ${index.compactions === 1 ? 'once' : `${index.compactions} times`}`} ·{' '}
                {index.tokenizer === undefined ? 'estimated' : `counted by ${index.tokenizer}`}
              </span>
            </p>
            {status && <p class="faint small">{describeBilling(status)}</p>}
            <Meter view={value} selected={selected} onSelect={select} />
          </>
        )}
        <Parts
          label="Parts of the context"
          parts={PARTS}
          shown={part}
          onShow={(name) => keep({ part: name === 'now' ? undefined : name, why: undefined, before: undefined })}
        />
        {part === 'now' && value !== undefined && <Now of={of} view={value} rows={rows} selected={selected} onSelect={select} />}
        {part === 'turns' && <Turns of={of} known={value?.turns} why={more['why']} />}
        {part === 'changes' && <Changes of={of} canUndo={index?.canUndo === true} onChanged={again} />}
      </div>
    </div>
  );
}

/** What of all prompts so far was billed in full, and what made it so. */
function describeBilling({ usage, context }: NonNullable<Schema<'Conversation'>['status']>): string {
  const cached = describeCached(usage) || 'none cached';
  return `Sent so far: ${count(usage.inputTokens)} tokens (${cached}). ${sentence(describePrefix(context))}`;
}

function sentence(words: string | undefined): string {
  return words === undefined ? '' : `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

interface NowProps {
  readonly of: string;
  readonly view: ContextView;
  /** How many of the latest messages are listed. */
  readonly rows: Signal<number>;
  readonly selected: string | undefined;
  readonly onSelect: (chunk: string | undefined) => void;
}

function Now({ of, view, rows, selected, onSelect }: NowProps): JSX.Element {
  const { chunks, earlier = [] } = view;
  const fixed = chunks.filter(({ kind }) => kind !== 'WORKING_FLOW');
  const flow = chunks.slice(fixed.length);
  const at = flow.findIndex(({ id }) => id === selected);
  // Thousands of rows are not drawn for who reads the latest; what the address names is among them.
  const from = Math.max(0, Math.min(flow.length - rows.value, at === -1 ? Infinity : at - 20));
  const before = from + earlier.reduce((sum, { messages }) => sum + messages, 0);
  const largest = chunks.reduce((most, { tokens }) => Math.max(most, tokens), 1);
  const one = chunks.find(({ id }) => id === selected);
  const row = (chunk: Chunk): JSX.Element => (
    <li key={chunk.id}>
      <button
        type="button"
        class={`chunk ${toClass(chunk)}`}
        aria-current={chunk.id === selected ? 'true' : undefined}
        onClick={() => onSelect(chunk.id)}
      >
        <i class={`key ${toClass(chunk)}`} />
        <span class="chunk-name small">{nameChunk(chunk)}</span>
        <span class="chunk-words one-line">{describeChunk(chunk)}</span>
        {chunk.drops && <span class="pill warn">drops next</span>}
        <span class="chunk-size" aria-hidden="true">
          <span style={{ width: `${Math.max(2, (chunk.tokens / largest) * 100)}%` }} />
        </span>
        <span class="small num chunk-tokens">{count(chunk.tokens)}</span>
      </button>
    </li>
  );
  return (
    <div class={`chunks${one === undefined ? '' : ' has-one'}`}>
      <ol class="chunk-list" aria-label={plural(fixed.length + flow.length - from + before, 'chunk')}>
        {fixed.map(row)}
        {before > 0 && (
          <li>
            <button type="button" class="button bare tight" onClick={() => (rows.value = flow.length - from + ROWS)}>
              {plural(before, 'earlier message')}: show {count(Math.min(before, ROWS))}
            </button>
          </li>
        )}
        {flow.slice(from).map(row)}
      </ol>
      {one !== undefined && (
        <aside class="chunk-open" aria-label={nameChunk(one)}>
          <header class="row">
            <h2 class="grow">{nameChunk(one)}</h2>
            <button type="button" class="button bare square tight" aria-label="Close" onClick={() => onSelect(undefined)}>
              <Icon name="close" size={15} />
            </button>
          </header>
          <p class="small quiet num">{plural(one.tokens, 'token')}</p>
          {one.kind === 'SYSTEM' ? <SystemPrompt of={of} /> : <Reader of={of} chunk={one.id} />}
          {one.turn !== '' && (
            <p class="small">
              <Link view="timeline" of={of} more={{ turn: one.turn }}>
                Timeline of turn {turnNumber(one.turn)}
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

function toClass({ kind, role }: Chunk): string {
  return kind === 'SYSTEM' ? 'system' : kind === 'MEMORY' ? 'memory' : role;
}

/** Of what is no message the gateway names the version, which says nothing here. */
function describeChunk({ kind, words }: Chunk): string {
  if (kind === 'SYSTEM') return 'Identity, schemas of its tools, MEMORY.md';
  return kind === 'MEMORY' ? 'Summaries of older turns, and what was learned' : plainText(words, 200);
}

const ROLES: Readonly<Record<string, string>> = { user: 'person', assistant: 'model', tool: 'tool' };

function nameChunk({ kind, turn, role }: Chunk): string {
  if (kind === 'SYSTEM') return 'System and tools';
  return kind === 'MEMORY' ? 'Memory' : `Turn ${turnNumber(turn)}, ${ROLES[role] ?? role}`;
}

interface TurnsProps {
  readonly of: string;
  readonly known: KnownTurns | undefined;
  readonly why: string | undefined;
}

function Turns({ of, known, why }: TurnsProps): JSX.Element {
  const { before } = place.value.more;
  const list = useAnswer(`turns of ${of} ${before ?? ''}`, (signal) =>
    request('get', '/v1/conversations/{id}/turns', { path: { id: of }, query: { limit: TURNS, ...(before && { before }) }, signal }),
  );
  const turns = list.value?.turns ?? [];
  const cut = useAnswer(`branches ${of}`, (signal) => request('get', '/v1/conversations/{id}/branches', { path: { id: of }, signal }));
  const branches = cut.value?.branches ?? [];
  const cutAfter = (turn: string): readonly Branch[] => branches.filter(({ after }) => after === turn);
  const page = (first: string | undefined): void => keep({ before: first, part: 'turns' }, { push: true });
  return (
    <div class={`chunks${why === undefined ? '' : ' has-one'}`}>
      <div>
        {known !== undefined && <Known known={known} />}
        {(list.value === undefined || list.error !== undefined) && <Pending error={list.error} again={list.again} />}
        {(list.value?.more === true || before !== undefined) && (
          <p class="row">
            {list.value?.more === true && (
              <button type="button" class="button tight" onClick={() => page(turns[0]?.turn)}>
                Earlier turns
              </button>
            )}
            {before !== undefined && (
              <button type="button" class="button bare tight" onClick={() => page(undefined)}>
                Latest turns
              </button>
            )}
          </p>
        )}
        <ol class="turn-list" aria-busy={list.isAsking}>
          {list.value?.more === false && cutAfter('turn_0000').map((branch) => <CutOut key={branch.branch} of={of} branch={branch} />)}
          {turns.map(({ turn, question }) => {
            const [kind, words] = known === undefined ? (['', ''] as const) : findStanding(turn, known);
            return (
              <li key={turn}>
                <button
                  type="button"
                  class="turn-row"
                  aria-current={turn === why ? 'true' : undefined}
                  onClick={() => keep({ why: turn === why ? undefined : turn, part: 'turns' })}
                >
                  <span class="num turn-number">{turnNumber(turn)}</span>
                  <span class="one-line">{plainText(question, 160)}</span>
                  {words !== '' && <span class={`pill ${kind}`}>{words}</span>}
                </button>
                {cutAfter(turn).map((branch) => (
                  <CutOut key={branch.branch} of={of} branch={branch} />
                ))}
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

/** Turns that a rewind has taken back are missing in the line: where, is said in their place. */
function CutOut({ of, branch: { branch, turns, at } }: { readonly of: string; readonly branch: Branch }): JSX.Element {
  return (
    <p class="cut-out small quiet">
      <Icon name="branch" size={14} />
      <span>
        {turnSpans(turns).replace(/^t/, 'T')} {turns.length === 1 ? 'was' : 'were'} taken back,{' '}
        {ago(at) === 'now' ? 'just now' : `${ago(at)} ago`}
      </span>
      <button type="button" class="button bare tight" onClick={() => keep({ why: turns[0], part: 'turns' })}>
        Why
      </button>
      <Link view="chat" of={of} more={{ branch: String(branch) }} class="button bare tight">
        Read
      </Link>
    </p>
  );
}

function findStanding(turn: string, known: KnownTurns): readonly [kind: string, words: string] {
  if (known.shortened.some((one) => one.turn === turn)) return ['warn', 'shortened'];
  if (known.whole.includes(turn)) return ['', 'word for word'];
  if (known.inPart.includes(turn)) return ['warn', 'in part'];
  if (known.leftOut.includes(turn)) return ['bad', 'left out'];
  if (known.summarized.some(({ turns }) => turns.includes(turn))) return ['busy', 'as a summary'];
  return ['bad', known.earlierSessions.includes(turn) ? 'before /new' : 'not there'];
}

function Known({ known }: { readonly known: KnownTurns }): JSX.Element {
  const facts: [string, string][] = [];
  if (known.whole.length > 0) facts.push(['Word for word', turnSpans(known.whole)]);
  if (known.inPart.length > 0) facts.push(['In part', turnSpans(known.inPart)]);
  for (const { episode, turns } of known.summarized.slice(-SUMMARIES)) facts.push(['As a summary', `${turnSpans(turns)}, in ${episode}`]);
  if (known.summarized.length > SUMMARIES)
    facts.push(['', `and ${plural(known.summarized.length - SUMMARIES, 'earlier summary', 'earlier summaries')}`]);
  if (known.leftOut.length > 0) facts.push(['Left out', turnSpans(known.leftOut)]);
  if (known.earlierSessions.length > 0) facts.push(['Before /new', turnSpans(known.earlierSessions)]);
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
