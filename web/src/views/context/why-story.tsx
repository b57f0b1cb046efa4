/** "Why was this forgotten?": what happened to a turn, told in its order. */
import type { JSX } from 'preact';
import { turnNumber } from '../../../../src/records/identity.js';
import { request, type Schema } from '../../api/request.js';
import { conversations, nameConversation, readFork, type Origin } from '../../conversations.js';
import { Link, Problem } from '../../ui/parts.js';
import { plainLines, plainText, count, plural, turnSpans } from '../../ui/words.js';
import { useAnswer } from '../../ui/hooks.js';

type Cause = Schema<'WhyCause'>;
type Why = Schema<'Why'>;

export function WhyStory({ of, turn }: { readonly of: string; readonly turn: string }): JSX.Element {
  const { value, error, again } = useAnswer(`why ${of} ${turn}`, async (signal) => {
    const [why, { turns }, { changes }, about] = await Promise.all([
      request('get', '/v1/conversations/{id}/turns/{turn}/why', { path: { id: of, turn }, signal }),
      request('get', '/v1/conversations/{id}/turns', { path: { id: of }, query: { limit: 1, before: turnAfter(turn) }, signal }),
      request('get', '/v1/conversations/{id}/context/changes', { path: { id: of }, signal }),
      request('get', '/v1/conversations/{id}', { path: { id: of }, signal }),
    ]);
    const causes = new Map(changes.flatMap(({ episode, cause }) => (cause === null ? [] : [[episode, cause] as const])));
    return { why, said: turns.find((one) => one.turn === turn), causes, origin: readFork(about) };
  });
  if (value === undefined) {
    return error === undefined ? (
      <p class="note" role="status">
        Going through what happened, event by event…
      </p>
    ) : (
      <Problem error={error} again={again} />
    );
  }
  const { why, said, causes, origin } = value;
  // What was forgotten before the fork was forgotten elsewhere.
  const elsewhere = origin?.turn !== undefined && turnNumber(turn) <= turnNumber(origin.turn) ? origin : undefined;
  const last = why.causes.findLast(({ kind }) => kind !== 'returned');
  return (
    <div class="story">
      <p class="story-head">{summarizeWhy(why)}</p>
      <ol>
        {said !== undefined && (
          <li class="said">
            <Moment at={new Date(said.startedAt).getTime()} />
            <p>It was said{said.messages > 1 ? `, and answered: ${plural(said.messages, 'message')} in all` : ''}.</p>
            {said.question !== '' && <blockquote>{plainText(said.question, 300)}</blockquote>}
          </li>
        )}
        {why.causes.map((cause) => (
          <Step
            key={`${cause.at} ${cause.kind}`}
            cause={cause}
            turn={turn}
            since={causes.get(cause.episode) ?? null}
            elsewhere={elsewhere}
          />
        ))}
        {why.causes.length === 0 && why.inPrompt < why.entries && (
          <li>
            <p>What took it out is not known any more.</p>
          </li>
        )}
        <li class="now">
          <p class="when">Now</p>
          <p>{describeNow(why, last)}</p>
          {last !== undefined && last.summary !== null && why.inPrompt < why.entries && last.kind !== 'session-ended' && (
            <blockquote class="summary">{plainLines(last.summary)}</blockquote>
          )}
          <p class="row">
            <Link view="chat" of={of} more={why.branch === undefined ? { turn } : { branch: String(why.branch) }} class="button tight">
              Read it word for word
            </Link>
            <Link view="timeline" of={of} more={{ turn }} class="button bare tight">
              Its timeline
            </Link>
          </p>
        </li>
      </ol>
      {!why.complete && <p class="hint">Earlier runs have passed their retention: what happened in them, only the store knows.</p>}
      {why.problems.map((problem) => (
        <p key={problem} class="note warn">
          A run cannot be replayed with this version: {plainText(problem, 300)}
        </p>
      ))}
    </div>
  );
}

function turnAfter(turn: string): string {
  return `turn_${String(turnNumber(turn) + 1).padStart(4, '0')}`;
}

function summarizeWhy({ turn, entries, inPrompt, shortened }: Why): string {
  const name = `Turn ${turnNumber(turn)}`;
  if (inPrompt === 0) return `${name} is no longer in the prompt.`;
  if (inPrompt < entries) return `${name} is partly in the prompt: ${inPrompt} of its ${plural(entries, 'message')}.`;
  return shortened.length > 0
    ? `${name} is in the prompt, and not all of it word for word.`
    : `${name} is not forgotten: all of it is in the prompt.`;
}

const TITLES: Readonly<Record<Cause['kind'], string>> = {
  compacted: 'Compaction',
  truncated: 'Truncation',
  trimmed: 'Trim',
  'session-ended': '/new',
  rewound: 'Rewind',
  returned: 'Undo',
  other: 'An event',
};

interface StepProps {
  readonly cause: Cause;
  readonly turn: string;
  readonly since: string | null;
  readonly elsewhere: Origin | undefined;
}

function Step({ cause, turn, since, elsewhere }: StepProps): JSX.Element {
  const { kind, at, tokens, failure, epoch, from } = cause;
  return (
    <li class={kind === 'returned' ? 'is-back' : 'is-gone'}>
      <Moment at={at} />
      <p>
        <strong>{TITLES[kind]}.</strong> {describeCause(cause, turn, since)}
      </p>
      {from === 'store' && elsewhere !== undefined && (
        <p class="small quiet">
          That was before the fork, in{' '}
          <Link view="context" of={elsewhere.conversation} more={{ part: 'turns', why: turn }}>
            {nameConversation(
              elsewhere.conversation,
              conversations.value.all.find(({ id }) => id === elsewhere.conversation),
            )}
          </Link>
          , whose story of this turn has more.
        </p>
      )}
      {tokens !== null && (
        <p class="small quiet num">
          {count(tokens.before)} → {count(tokens.after)} tokens, epoch {epoch}
          {from === 'store' ? ', as the store has it' : ''}
        </p>
      )}
      {failure !== null && <p class="small is-bad">No usable summary at the first try: {plainText(failure, 300)}</p>}
    </li>
  );
}

const SINCE: Readonly<Record<string, string>> = {
  asked: 'A person asked for it',
  'context-full': 'The model refused a longer prompt',
  ratio: 'The context had passed its share of the window',
  budget: 'The context had passed its budget',
  hard: 'The context had passed the hard line',
};

function describeCause({ kind, turns, model, method, episode }: Cause, turn: string, since: string | null): string {
  const others = turns.filter((one) => one !== turn);
  const together = others.length === 0 ? '' : ` together with ${turnSpans(others)}`;
  const by =
    method === 'rules'
      ? 'by rules, since no model gave a usable summary'
      : model === null
        ? 'by a version that did not keep by whom'
        : `by ${plainText(model, 80)}`;
  switch (kind) {
    case 'compacted':
      return `${SINCE[since ?? ''] ?? 'The context was to be smaller'}, so it became memory${together}: the summary ${episode ?? ''}, made ${by}, took its place.`;
    case 'truncated':
      return `The context was over its last line, so the oldest was left out${together}, until the next summary.`;
    case 'trimmed':
      return `Long-term memory had it already, so the prompt keeps its summary ${episode ?? ''} instead${together}.`;
    case 'session-ended':
      return 'A person cleared the session, and the next one began without its turns.';
    case 'rewound':
      return 'A person went back to an earlier turn: it was cut out, and is a branch now.';
    case 'returned':
      return 'The compaction was taken back, and it was in the prompt again.';
    case 'other':
      return 'Something else took it out.';
  }
}

function describeNow({ inPrompt, entries, shortened, hasEnded }: Why, last: Cause | undefined): string {
  if (inPrompt === entries && shortened.length === 0) return 'The model sees all of it, word for word.';
  if (inPrompt === entries) return 'The model sees it with long parts shortened, and can read the rest with a tool.';
  if (hasEnded) return 'The model has what MEMORY.md kept of it, and what it finds in HISTORY.';
  switch (last?.kind) {
    case 'compacted':
    case 'trimmed':
      return 'In its place the model has this summary, and can read the turns again with a tool:';
    case 'truncated':
      return 'In its place the model has a notice that something was left out.';
    case 'rewound':
      return 'The model has nothing of it. A fork from it goes on where it was.';
    default:
      return 'The model has nothing of it.';
  }
}

function Moment({ at }: { readonly at: number }): JSX.Element {
  const date = new Date(at);
  return (
    <p class="when">
      <time dateTime={date.toISOString()}>{date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })}</time>
    </p>
  );
}
