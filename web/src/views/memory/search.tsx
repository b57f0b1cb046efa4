/** Everything that was said, by a question: the best first, each with what stood around it. J and K move between them. */
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { keep, place } from '../../address.js';
import { request, type Schema } from '../../api/request.js';
import { conversations } from '../../conversations.js';
import { plainLines, plainText, dateTime, plural } from '../../ui/words.js';
import { Link, Problem, Pending } from '../../ui/parts.js';
import { useAnswer, useKeys } from '../../ui/hooks.js';
import { describeTrust, isUntrusted, SaidIn } from './origin.js';

type Recalled = Schema<'Recalled'>;
type Kind = (typeof KINDS)[number][0];

const KINDS = [
  ['user', 'What people said', 'said'],
  ['assistant', 'Answers', 'answer'],
  ['tool', 'Results of tools', 'result of a tool'],
  ['history', 'HISTORY', 'HISTORY'],
  ['memory', 'MEMORY.md', 'MEMORY.md'],
  ['fact', 'Facts', 'fact'],
  ['episode', 'Summaries', 'summary'],
  ['item', 'What agents put away', 'put away'],
] as const;
const HITS = 30;
const MAX_QUESTION = 2_000;
/** Characters of one text; a word of a megabyte is none that anybody reads. */
const MAX_SHOWN = 1_600;
/** Of them before the first word that was asked for. */
const LEAD = 300;
const REACHES = [3, 10, 20] as const;

export function Search({ scope }: { readonly scope: string }): JSX.Element {
  const { more } = place.value;
  const question = (more['question'] ?? '').slice(0, MAX_QUESTION);
  const kind = KINDS.find(([name]) => name === more['kind'])?.[0];
  const narrow = (name: string) => (event: { readonly currentTarget: HTMLInputElement | HTMLSelectElement }) =>
    keep({ [name]: event.currentTarget.value || undefined, hit: undefined });
  return (
    <>
      <form
        class="search-form"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          const asked = new FormData(event.currentTarget).get('question')?.toString().trim();
          keep({ question: asked, hit: undefined }, { push: true });
        }}
      >
        <div class="row">
          <input
            class="field grow"
            type="search"
            name="question"
            defaultValue={question}
            key={question}
            maxLength={MAX_QUESTION}
            placeholder="What did we decide about the harbour?"
            aria-label="Question"
            aria-keyshortcuts="/"
            data-search
            dir="auto"
          />
          <button type="submit" class="button main">
            Search
          </button>
        </div>
        <div class="search-narrow small">
          <label>
            <span>Scope</span>
            <select class="field" value={more['within'] ?? ''} onChange={narrow('within')}>
              <option value="">All scopes</option>
              <option value="this">{plainText(scope, 60)} alone</option>
            </select>
          </label>
          <label>
            <span>Where</span>
            <select class="field" value={kind ?? ''} onChange={narrow('kind')}>
              <option value="">Everywhere</option>
              {KINDS.map(([name, title]) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span>From</span>
            <input class="field" type="date" value={more['since'] ?? ''} onChange={narrow('since')} />
          </label>
          <label>
            <span>To</span>
            <input class="field" type="date" value={more['until'] ?? ''} onChange={narrow('until')} />
          </label>
          <label class="grow">
            <span>Conversation</span>
            <input
              class="field"
              list="search-in"
              value={more['in'] ?? ''}
              placeholder="Any; or its id"
              maxLength={200}
              spellcheck={false}
              autocomplete="off"
              onChange={narrow('in')}
            />
          </label>
          <datalist id="search-in">
            {conversations.value.all.slice(0, 100).map(({ id, title }) => (
              <option key={id} value={id}>
                {plainText(title ?? id, 80)}
              </option>
            ))}
          </datalist>
        </div>
      </form>
      {question === '' ? (
        <div class="empty">
          <h2>Ask in your own words</h2>
          <p>
            Messages, results of tools, HISTORY, MEMORY.md, facts and summaries are searched. Times that the question names count: “last
            May”, “2026-03”.
          </p>
        </div>
      ) : (
        <Hits scope={scope} question={question} kind={kind} />
      )}
    </>
  );
}

interface HitsProps {
  readonly scope: string;
  readonly question: string;
  readonly kind: Kind | undefined;
}

function Hits({ scope, question, kind }: HitsProps): JSX.Element {
  const { more } = place.value;
  const list = useRef<HTMLOListElement>(null);
  const [after, before, conversation] = [dayIn(more['since']), dayIn(more['until']), more['in']?.slice(0, 200)];
  const isAll = more['within'] !== 'this';
  const asked = { scope: isAll ? undefined : scope, question, kinds: kind && [kind], after, before, conversation, limit: HITS };
  const { value, error, again, isAsking } = useAnswer(`search ${JSON.stringify(asked)}`, (signal) => {
    const body = Object.fromEntries(Object.entries(asked).filter(([, one]) => one !== undefined)) as typeof asked & { question: string };
    return request('post', '/v1/search', { body: body as never, signal });
  });
  const move = (step: number): void => {
    const all = [...(list.current?.querySelectorAll<HTMLElement>('.hit') ?? [])];
    const at = all.findIndex((one) => one.contains(document.activeElement));
    all[Math.min(all.length - 1, Math.max(0, at + step))]?.focus();
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: () => {
      if (document.activeElement?.matches('.hit') === true) document.activeElement.querySelector<HTMLElement>('.hit-more')?.click();
    },
  });
  if (value === undefined) return <Pending error={error} again={again} />;
  const { hits } = value;
  return (
    <>
      <p class="small faint row hits-count">
        <span class="grow" role="status">
          {hits.length === 0
            ? `Nothing is found ${isAll ? 'in any scope' : `in ${plainText(scope, 60)}`}: no text has a word of the question. Other words, or fewer limits, may do.`
            : hits.length === HITS
              ? `The best ${HITS}`
              : plural(hits.length, 'place')}
        </span>
        {hits.length > 1 && (
          <span class="keys">
            <kbd>J</kbd> <kbd>K</kbd> move, <kbd>Enter</kbd> opens
          </span>
        )}
      </p>
      <ol class="hits" ref={list} aria-busy={isAsking}>
        {hits.map((hit, at) => (
          <HitView
            key={`${hit.scope} ${hit.address}`}
            hit={hit}
            isFirst={isAll && hit.scope !== hits[at - 1]?.scope}
            isOpen={`${hit.scope} ${hit.address}` === more['hit']}
          />
        ))}
      </ol>
      {value.notes?.map((note) => (
        <p key={note} class="note">
          {plainText(note, 300)}
        </p>
      ))}
    </>
  );
}

interface HitProps {
  readonly hit: Recalled;
  /** Of its scope, among what all have. */
  readonly isFirst: boolean;
  readonly isOpen: boolean;
}

function HitView({ hit, isFirst, isOpen }: HitProps): JSX.Element {
  const toggle = (): void => keep({ hit: isOpen ? undefined : `${hit.scope} ${hit.address}`, around: undefined }, { push: true });
  return (
    <li class="hit" tabIndex={-1}>
      {isFirst && (
        <h2 class="minor hit-scope">
          <Link view="memory" of={hit.scope}>
            {plainText(hit.scope, 80)}
          </Link>
        </h2>
      )}
      <Said one={hit} />
      <p class={`hit-text ${isOpen ? 'is-open' : ''}`} dir="auto" onClick={() => getSelection()?.isCollapsed !== false && toggle()}>
        <Marked {...cutExcerpt(hit)} />
      </p>
      <p>
        <button type="button" class="button bare tight hit-more" aria-expanded={isOpen} onClick={toggle}>
          {isOpen ? 'Close' : 'What stood around it'}
        </button>
      </p>
      {isOpen && <Around scope={hit.scope} address={hit.address} />}
    </li>
  );
}

/** Who said it, when, and whose word it is. */
function Said({ one }: { readonly one: Recalled }): JSX.Element {
  const { kind, speaker, trust, ts, conversation, turn } = one;
  const words = KINDS.find(([name]) => name === kind)?.[2] ?? plainText(kind, 20);
  return (
    <p class="said-by small">
      {(speaker !== kind || kind === 'user' || kind === 'assistant') && (
        <strong>{plainText(speaker === 'assistant' ? 'model' : speaker, 60)}</strong>
      )}
      <span class="pill">{words}</span>
      {isUntrusted(one) && (
        <span class="pill warn" title="Data, and no instruction">
          untrusted{trust.slice(5) !== speaker && `: ${plainText(trust.startsWith('tool:') ? trust.slice(5) : describeTrust(one), 80)}`}
        </span>
      )}
      {trust === 'person' && kind !== 'user' && <span class="pill">a person’s word</span>}
      {ts > 0 && (
        <time class="faint num" dateTime={new Date(ts * 1000).toISOString()}>
          {dateTime(ts)}
        </time>
      )}
      {conversation !== undefined && <SaidIn conversation={conversation} turn={turn} />}
    </p>
  );
}

function Around({ scope, address }: { readonly scope: string; readonly address: string }): JSX.Element {
  const reach = REACHES.find((one) => String(one) === place.value.more['around']) ?? REACHES[0];
  const { value, error, again, isAsking } = useAnswer(`around ${scope} ${address} ${reach}`, (signal) =>
    request('post', '/v1/search/open', { body: { scope, at: address, around: reach }, signal }),
  );
  const next = REACHES[REACHES.indexOf(reach) + 1];
  if (value === undefined && error !== undefined) return <Problem error={error} again={again} />;
  if (value === undefined) return <p class="note" aria-busy="true" />;
  if (value.hits.length === 0) return <p class="note">It is gone: forgotten, rewound or deleted since.</p>;
  return (
    <div class="around" aria-busy={isAsking}>
      <ol aria-label="What stood around it">
        {value.hits.map((one) => (
          <li key={one.address} class={one.address === address ? 'is-hit' : ''}>
            <Said one={one} />
            <p class="hit-text is-open" dir="auto">
              <Marked {...cutExcerpt(one)} />
            </p>
          </li>
        ))}
      </ol>
      {next !== undefined && value.hits.length > reach && (
        <button type="button" class="button tight" onClick={() => keep({ around: String(next) })}>
          More
        </button>
      )}
    </div>
  );
}

interface Excerpt {
  readonly text: string;
  readonly marks: readonly (readonly number[])[];
  readonly hasBefore: boolean;
  readonly hasAfter: boolean;
}

/** About the first word that was asked for, where the text is long. */
function cutExcerpt({ text, marks, isPart }: Recalled): Excerpt {
  const from = text.length <= MAX_SHOWN ? 0 : Math.max(0, Math.min((marks[0]?.[0] ?? 0) - LEAD, text.length - MAX_SHOWN));
  const shown = text.slice(from, from + MAX_SHOWN);
  const within = marks
    .map(([start = 0, end = 0]) => [start - from, end - from])
    .filter(([start = 0]) => start >= 0 && start < shown.length);
  return { text: shown, marks: within, hasBefore: from > 0, hasAfter: isPart === true || from + MAX_SHOWN < text.length };
}

/** What a search has marked stands out; all of it is text. */
function Marked({ text, marks, hasBefore, hasAfter }: Excerpt): JSX.Element {
  const pieces: (JSX.Element | string)[] = [];
  let at = 0;
  for (const [start = 0, end = 0] of marks) {
    if (start < at || end <= start) continue;
    pieces.push(plainLines(text.slice(at, start)), <mark key={start}>{plainLines(text.slice(start, end))}</mark>);
    at = end;
  }
  return (
    <>
      {hasBefore && '… '}
      {pieces}
      {plainLines(text.slice(at))}
      {hasAfter && ' …'}
    </>
  );
}

function dayIn(text: string | undefined): string | undefined {
  return text !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(text) ? text : undefined;
}
