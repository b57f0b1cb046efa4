/** What a person reads who asks what the model sees, and why it does not know something. */
import { formatSpans, renderKnown, renderWhy } from '../../../src/cli/commands/context.js';
import { textOfDrawn, type StyledLine } from '../../../src/cli/terminal/terminal-text.js';
import { describeOutcome, renderContext } from '../../../src/cli/views/state.js';
import type { ContextIndex } from '../../../src/conversation/protocol/contract.js';
import { knownTurns, type WhyAnswer, findReasons } from '../../../src/insight/why.js';
import type { Leaving } from '../../../src/conversation/replay/past.js';
import { turnId } from '../../../src/records/identity.js';
import type { ConversationMessage, Entry } from '../../../src/records/message.js';
import type { EpisodeRecord } from '../../../src/stores/store.js';
import { answer, calls, result, user } from '../../memory/builders.js';
import { measure } from './measure.js';

const INDEX: ContextIndex = {
  epoch: 3,
  session: 1,
  budget: 190_000,
  compactsAt: 152_000,
  total: 61_450,
  reported: 58_210,
  compactions: 2,
  canUndo: true,
  chunks: [
    { kind: 'SYSTEM', tokens: 3_200 },
    { kind: 'MEMORY', tokens: 1_250, ref: 'body:1' },
    {
      kind: 'WORKING_FLOW',
      tokens: 57_000,
      slots: [
        [41, 60],
        [62, 62],
      ],
    },
  ],
};

function drawn(lines: readonly StyledLine[]): string {
  return lines.map(textOfDrawn).join('\n');
}

test('the parts of the context stand in a table with their shares, and facts below it', () => {
  expect(drawn(renderContext(INDEX, { width: 80, measure }))).toMatchInlineSnapshot(`
   "PART               TOKENS  SHARE
   system and tools    3,200    2 %
   memory              1,250   <1 %
   messages           57,000   38 %
   free               90,550   60 %
   in all             61,450   40 %
   compacted from    152,000  100 %
   fits              190,000  125 %
   21 messages in epoch 3
   compacted 2 times; the last one can be taken back
   the last prompt as its provider counted it: 58,210 tokens
   what came since is estimated by its scripts: four Latin letters are a token"
  `);
});

test('before the first turn there is no table, and more than fits leaves nothing free', () => {
  const nothing: ContextIndex = { ...INDEX, budget: 0, compactsAt: 0, total: 0, reported: null, compactions: 0, chunks: [] };
  expect(drawn(renderContext(nothing, { measure }))).toContain('known once the first turn has begun');
  expect(drawn(renderContext({ ...INDEX, total: 400_000 }, { measure }))).toMatch(/free +0 +0 %/);
});

test('at no width between 20 and 120 does a line of it pass the edge', () => {
  for (let width = 20; width <= 120; width++) {
    const widest = Math.max(...renderContext(INDEX, { width, measure }).map((line) => measure(textOfDrawn(line))));
    expect([width, widest <= width]).toEqual([width, true]);
  }
});

test('the outcome of a compaction and what trims have left are described', () => {
  expect(describeOutcome({ kind: 'compacted', epoch: 2, turns: 1, method: 'rules', tokensBefore: 4000, tokensAfter: 900 })).toBe(
    '1 turn is memory now, summarized by rules, since the model gave no usable summary: 4,000 tokens of messages are 900 now',
  );
  expect(describeOutcome({ kind: 'failed', message: 'store away' })).toBe('the conversation is as it was: store away');
  const window = { consolidated: 42, trimsFrom: 50_000, trims: 1, messages: 84, unsummarized: 40 };
  const facts = drawn(renderContext({ ...INDEX, window }, { measure }));
  expect(facts).toContain('long-term memory has 42 of these: they leave when the prompt passes 50,000 tokens');
  expect(facts).toContain(
    "trimmed once: 84 messages left the prompt; its memory has long-term memory's summary of 44, shortened lines of 40",
  );
});

/** Turn, session, messages; slots from 1. */
function entriesFrom(...turns: readonly (readonly [turn: number, session: number, ...messages: ConversationMessage[]])[]): Entry[] {
  let slot = 0;
  return turns.flatMap(([turn, session, ...messages]) =>
    messages.map((message, seq): Entry => ({ v: 1, slot: ++slot, turn: turnId(turn), seq, session, ts: slot, message })),
  );
}

const EPISODE: EpisodeRecord = {
  ...{ id: 'ep_0001', ts: 5, turn_ids: [turnId(2), turnId(3)], summary: 'They met.', tags: [], salience: 0.5 },
  ...{ session: 2, epoch: 2, slots: [[3, 6]] },
};

const entries = entriesFrom(
  [1, 1, user('of the old session'), answer('yes')],
  [2, 2, user('a'), answer('b')],
  [3, 2, user('c'), answer('d')],
  [4, 2, user('left out'), answer('too')],
  [5, 2, user('a paste '.repeat(200)), calls(['c1']), { ...result('c1'), item: { id: 'mem_a', citation: 'long' } }, answer('e')],
  [6, 2, user('now'), { role: 'user', from: 'notice', text: 'The context fills.' }, answer('f')],
);
const index = {
  session: 2,
  chunks: [{ kind: 'WORKING_FLOW', tokens: 9, slots: [[9, 15]] }],
  cited: [[9, 9]],
  leftOut: [[7, 8]],
} as const;

test('of each turn a row names whether the model sees it, and how the rest is had', () => {
  expect(drawn(renderKnown('chat', knownTurns(index, entries, [EPISODE]), { measure }))).toMatchInlineSnapshot(`
   "
   SEEN           TURNS  THE REST
   word for word  5–6    
   by its ends    5      retrieve_from_memory: mem_msg_9
   by a line      5      retrieve_from_memory: mem_a
   as a summary   2–3    ep_0001: perdura memory --of chat --list
   not now        4      left out until the next summary: perdura debug context chat --compact
   no longer      1      of a session that /new ended: MEMORY.md, perdura history"
  `);
  const whole = { session: 1, chunks: [{ kind: 'WORKING_FLOW', tokens: 9, slots: [[1, 2]] }] } as const;
  expect(renderKnown('chat', knownTurns(whole, entries.slice(0, 2), []), { measure })).toEqual([]);
  expect(formatSpans([9, 1, 2, 4].map(turnId))).toBe('1–2, 4, 9');
});

const LEFT: Leaving = {
  ...{ kind: 'truncated', event: 'truncate completed', at: 1_000, epoch: 1, session: 2, slots: [7], allSlots: [7, 8] },
  ...{ tokens: { before: 9_000, after: 6_000 }, model: 'a/b' },
};

function why(more: Partial<WhyAnswer>): string {
  const nothing = { entries: 2, shortened: [], inPrompt: 0, causes: [], complete: true, problems: [] };
  const look = { timeFormat: 'iso', now: 10_000, measure } as const;
  return drawn(renderWhy({ id: 'chat', turn: 'turn_0004', hasEnded: false, ...nothing, ...more }, look));
}

test('what happened stands in the order in which it happened, from the history and from the store', () => {
  const made = {
    inputsHash: 'i',
    compactor: 'c',
    method: 'rules',
    model: 'a/b',
    failure: 'no answer',
    tokensBefore: 1,
    tokensAfter: 1,
  } as const;
  const later = { ...EPISODE, turn_ids: [turnId(4)], made };
  const causes = findReasons('turn_0004', [LEFT], [later], () => 'turn_0004');
  expect(why({ causes })).toMatchInlineSnapshot(`
   "turn_0004 is no longer in the prompt: none of its 2 messages is
     what the model has instead: the summary ep_0001 below: whole while it is among the newest, then in short; read_episode reads the turns again
     word for word: perdura show chat --turn 4

   WHEN                      CAUSE      EPOCH  TURNS  TOKENS         EPISODE  BY
   1970-01-01T00:00:01.000Z  truncated      1  4      9,000 → 6,000           
   1970-01-01T00:00:05.000Z  compacted      2  4                     ep_0001  rules, without a/b: no answer
     ep_0001: They met."
  `);
});

test.each([
  ['left out', { causes: findReasons('turn_0004', [LEFT], [], () => undefined) }, 'a notice that something was left out'],
  ['of a session that ended', { causes: findReasons('turn_0004', [{ ...LEFT, kind: 'session-ended' }], [], () => undefined) }, 'MEMORY.md'],
  [
    'rewound',
    { branch: 1, causes: findReasons('turn_0004', [{ ...LEFT, kind: 'rewound' }], [], () => undefined) },
    'perdura fork chat --at 4',
  ],
] as const)('%s: it names what the model has instead', (_, more, words) => {
  expect(why(more)).toContain(`what the model has instead: `);
  expect(why(more)).toContain(words);
  if ('branch' in more) expect(why(more)).toContain('word for word: perdura show chat --branch 1 --turn 4');
});

test('what is in the prompt and shortened is not reported as whole', () => {
  const shortened = [{ turn: 'turn_0004', kind: 'message', item: 'mem_msg_7' }] as const;
  expect(why({ inPrompt: 2, shortened })).toMatch(/^turn_0004 is in the prompt, and not all of it word for word\n {2}.*\(mem_msg_7\)\n/);
  expect(why({ inPrompt: 2 })).toBe('turn_0004 is not forgotten: all of its 2 messages are in the prompt');
  const causes = findReasons('turn_0004', [{ ...LEFT, kind: 'trimmed' }], [], () => undefined);
  expect(why({ hasEnded: true, causes })).toMatch(/\n {2}\/new has ended its session\n {2}what the model has instead: MEMORY\.md/);
});
