import fc from 'fast-check';
import type { AssistantBlock, ConversationMessage, MediaSource, JsonValue, ToolOutcome } from '../../src/records/message.js';
import { renderRequest } from '../../src/models/anthropic/render.js';
import { CONTINUE, INTERRUPTED, normalize } from '../../src/models/normalize.js';
import { checkRequest } from '../support/provider-apis/check-request.js';
import { call, opaque, request, result, says, stopped, thinking, user } from './builders.js';

const normalized = (...messages: ConversationMessage[]): ConversationMessage[] => normalize(messages, { provider: 'anthropic' });

const MISSING = 'No result was recorded: the call was interrupted and its outcome is unknown.';

test('a valid conversation comes out unchanged', () => {
  const valid = [
    user('read both'),
    says(thinking('two files'), 'Reading.', call('t1/c1'), call('t1/c2')),
    result('t1/c1'),
    result('t1/c2', 'no such file', 'error'),
    says('Only one is there.'),
    user('thanks'),
    user('and now?'),
  ];
  expect(normalized(...valid)).toEqual(valid);
});

describe('tool calls and their results', () => {
  test('a late result moves to its call', () => {
    expect(normalized(user('go'), says(call('c1')), user('hurry'), result('c1'))).toEqual([
      user('go'),
      says(call('c1')),
      result('c1'),
      user('hurry'),
    ]);
  });

  test('results in another order are put in the order of the calls', () => {
    expect(normalized(user('go'), says(call('c1'), call('c2')), result('c2', 'two'), result('c1', 'one'))).toEqual([
      user('go'),
      says(call('c1'), call('c2')),
      result('c1', 'one'),
      result('c2', 'two'),
    ]);
  });

  test('a result that was written before its call is found', () => {
    expect(normalized(user('go'), result('c1', 'early'), says(call('c1')))).toEqual([user('go'), says(call('c1')), result('c1', 'early')]);
  });

  test('a missing result is made up: interrupted, its outcome unknown', () => {
    expect(normalized(user('go'), says(call('c1')), user('well?'))).toEqual([
      user('go'),
      says(call('c1')),
      result('c1', MISSING, 'unknown'),
      user('well?'),
    ]);
  });

  test('a call in an answer that was cut off has certainly not run, and the model is told so', () => {
    expect(normalized(user('go'), stopped('max-tokens', call('c1')))).toEqual([
      user('go'),
      stopped('max-tokens', call('c1')),
      result('c1', 'The answer ended before the call could be made.', 'cancelled'),
    ]);
  });

  test('of two results for one call the first counts', () => {
    expect(normalized(user('go'), says(call('c1')), result('c1', 'first'), result('c1', 'second'))).toEqual([
      user('go'),
      says(call('c1')),
      result('c1', 'first'),
    ]);
  });

  test('a result without a call is dropped', () => {
    expect(normalized(user('go'), result('c9'))).toEqual([user('go')]);
  });

  test('the same id called twice becomes two, each with the result that followed it', () => {
    expect(normalized(user('go'), says(call('c1')), result('c1', 'one'), says(call('c1')), result('c1', 'two'))).toEqual([
      user('go'),
      says(call('c1')),
      result('c1', 'one'),
      says(call('c1-2')),
      result('c1-2', 'two'),
    ]);
  });

  test('an id made unique does not take the place of one that is there', () => {
    const ids = normalized(user('go'), says(call('c1'), call('c1'), call('c1-2'))).flatMap((message) =>
      message.role === 'tool' ? [message.callId] : [],
    );
    expect(ids).toEqual(['c1', 'c1-3', 'c1-2']);
  });

  test('two calls of one id in one message share out its results', () => {
    expect(normalized(user('go'), says(call('c1'), call('c1')), result('c1', 'one'), result('c1', 'two')).slice(2)).toEqual([
      result('c1', 'one'),
      result('c1-2', 'two'),
    ]);
  });

  test('the result of an unanswered earlier call is not taken from a later one of the same id', () => {
    expect(normalized(user('go'), says(call('c1')), user('again'), says(call('c1')), result('c1', 'mine')).slice(1)).toEqual([
      says(call('c1')),
      result('c1', MISSING, 'unknown'),
      user('again'),
      says(call('c1-2')),
      result('c1-2', 'mine'),
    ]);
  });
});

describe('the ends of the list', () => {
  test('leading answers are dropped together with their results, which nobody else gets', () => {
    expect(normalized(says(call('c1')), result('c1', 'old'), user('go'), says(call('c1')))).toEqual([
      user('go'),
      says(call('c1')),
      result('c1', MISSING, 'unknown'),
    ]);
  });

  test('after an answer at the end the model is asked to go on', () => {
    expect(normalized(user('go'), stopped('pause', 'Half'))).toEqual([user('go'), stopped('pause', 'Half'), CONTINUE]);
  });

  test('between two answers in a row too', () => {
    expect(normalized(user('go'), stopped('max-tokens', 'Half'), says('whole'), user('ok'))).toEqual([
      user('go'),
      stopped('max-tokens', 'Half'),
      CONTINUE,
      says('whole'),
      user('ok'),
    ]);
  });

  test('of nothing at all something can still be asked', () => {
    expect(normalized()).toEqual([CONTINUE]);
    expect(normalized(says('hello?'), user('  '))).toEqual([CONTINUE]);
  });
});

describe('an interrupted answer', () => {
  test('is followed by a word that it was', () => {
    expect(normalized(user('count'), stopped('interrupted', '1, 2,'), user('stop'))).toEqual([
      user('count'),
      stopped('interrupted', '1, 2,'),
      INTERRUPTED,
      user('stop'),
    ]);
  });

  test('of which nothing was kept leaves the word', () => {
    expect(normalized(user('count'), stopped('interrupted'), user('never mind'))).toEqual([user('count'), INTERRUPTED, user('never mind')]);
  });
});

describe('blocks', () => {
  test('thinking goes back to its maker as it was, and to nobody else', () => {
    const list = [user('go'), says(thinking('hm'), 'Yes.'), user('ok')];
    expect(normalize(list, { provider: 'anthropic' })).toEqual(list);
    expect(normalize(list, { provider: 'openai' })).toEqual([user('go'), says('Yes.'), user('ok')]);
  });

  test('a message that was nothing but thinking is dropped', () => {
    expect(normalized(user('go'), says(thinking('hm')), user('ok'))).toEqual([user('go'), user('ok')]);
  });

  test('thinking that led to nothing is dropped at the end of a message, redacted or not', () => {
    const redacted = opaque({ type: 'redacted_thinking', data: 'x' });
    expect(normalized(user('go'), says(redacted, 'Yes.', thinking('hm'), redacted), user('ok'))).toEqual([
      user('go'),
      says(redacted, 'Yes.'),
      user('ok'),
    ]);
  });

  test('reasoning that led to nothing is dropped likewise: it is refused without what it led to', () => {
    const reasoning = opaque({ type: 'reasoning', id: 'rs_1' }, 'openai-responses');
    const messages = [user('go'), says(reasoning, 'Yes.', reasoning), user('ok')];
    expect(normalize(messages, { provider: 'openai-responses' })[1]).toEqual(says(reasoning, 'Yes.'));
  });

  test('an opaque block that is damaged or another provider’s is dropped', () => {
    const whole = opaque({ type: 'server_tool_use', id: 'x' });
    const damaged = [
      opaque(null),
      opaque(['type']),
      opaque({ id: 'x' }),
      opaque({ type: 'x', id: '\ud83d' }),
      opaque({ type: 'x' }, 'openai'),
    ];
    expect(normalized(user('go'), says(whole, ...damaged, 'Yes.'), user('ok'))).toEqual([user('go'), says(whole, 'Yes.'), user('ok')]);
  });

  test('unsigned thinking is for people', () => {
    expect(normalized(user('go'), says(thinking('hm', 'anthropic', ''), 'Yes.'), user('ok'))).toEqual([
      user('go'),
      says('Yes.'),
      user('ok'),
    ]);
  });

  test('blank texts and empty messages are dropped', () => {
    expect(normalized(user('go'), says(' \n', 'Yes.'), user(''), says(), user('ok'))).toEqual([user('go'), says('Yes.'), user('ok')]);
  });

  test('half a character is replaced everywhere but in thinking, which is dropped whole', () => {
    const list = normalized(
      user('a\ud83d'),
      says(thinking('b\ud83d'), 'c\ude00', call('c1', 'write_file', { d: ['e\ud83d'] })),
      result('c1', 'f\udfff'),
    );
    expect(list).toEqual([user('a\ufffd'), says('c\ufffd', call('c1', 'write_file', { d: ['e\ufffd'] })), result('c1', 'f\ufffd')]);
  });
});

describe('for any list of messages', () => {
  const text = fc.oneof(
    fc.constantFrom('', ' ', '\n', 'a', 'b \ud83d', '\ude00', '😀'),
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.constant({ ref: 'body/1', sha256: 'x', bytes: 9, preview: 'cut \ud83d' }),
  );
  const plain = fc.oneof(fc.constantFrom('', 'x \ud83d', '\udc00'), fc.string({ maxLength: 4 }));
  const callId = fc.oneof(fc.constantFrom('t1/c1', 't1_c1', 't1/c2', 't1/c1-2', '', '\ud83d'), fc.string({ maxLength: 3 }));
  const provider = fc.constantFrom('anthropic', 'openai');
  const json = fc.oneof(fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' }) as fc.Arbitrary<JsonValue>, fc.constant({ k: '\ud83d' }));
  const block: fc.Arbitrary<AssistantBlock> = fc.oneof(
    fc.record({ kind: fc.constant('text' as const), text }),
    fc.record({ kind: fc.constant('thinking' as const), text: plain, provider, signature: fc.constantFrom('', 's', undefined) }),
    fc.record({
      kind: fc.constant('opaque' as const),
      provider,
      value: fc.oneof(json, fc.constantFrom<JsonValue>({ type: 'redacted_thinking', data: 'x' })),
    }),
    fc.record({ kind: fc.constant('tool-call' as const), callId, name: plain, input: json }),
  );
  const image: fc.Arbitrary<MediaSource> = fc.oneof(
    fc.record({ mediaType: fc.constantFrom('image/png', 'text/html', ''), url: fc.constantFrom('https://x/y.png', 'file:///x', '\ud83d') }),
    fc.record({ mediaType: fc.constantFrom('image/png', 'image/bmp'), base64: fc.constantFrom('', 'aGk=') }),
    fc.record({ mediaType: fc.constant('image/png'), ref: fc.constantFrom('body/2', '\ud83d') }),
  );
  const message: fc.Arbitrary<ConversationMessage> = fc.oneof(
    fc.record(
      { role: fc.constant('user' as const), text, images: fc.array(image, { maxLength: 2 }), video: fc.array(image, { maxLength: 1 }) },
      { requiredKeys: ['role', 'text'] },
    ),
    fc.record({
      role: fc.constant('assistant' as const),
      blocks: fc.array(block, { maxLength: 4 }),
      model: fc.constant('anthropic/claude'),
      stop: fc.constantFrom('end' as const, 'tool-calls' as const, 'max-tokens' as const, 'interrupted' as const, 'pause' as const),
    }),
    fc.record({
      role: fc.constant('tool' as const),
      callId,
      name: plain,
      outcome: fc.constantFrom<ToolOutcome>('ok', 'error', 'rejected', 'cancelled', 'unknown'),
      text,
    }),
  );
  const list = fc.array(message, { maxLength: 12 });
  // An opaque block is the provider's own word; the checker knows those of the API only.
  const known = list.map((messages) =>
    messages.map((one) =>
      one.role === 'assistant'
        ? { ...one, blocks: one.blocks.filter((part) => part.kind !== 'opaque' || JSON.stringify(part.value).includes('redacted')) }
        : one,
    ),
  );

  test('the rendered request is one that the API takes', () => {
    fc.assert(
      fc.property(known, (messages) => {
        const body = renderRequest(request({ messages: normalize(messages, { provider: 'anthropic' }) }));
        expect(checkRequest(body)?.message).toBeUndefined();
      }),
      { numRuns: 2_000 },
    );
  });

  test('normalizing again changes nothing, also for another provider', () => {
    fc.assert(
      fc.property(list, provider, (messages, to) => {
        const once = normalize(messages, { provider: to });
        expect(normalize(once, { provider: to })).toEqual(once);
        expect(normalize(JSON.parse(JSON.stringify(once)), { provider: to })).toEqual(once);
      }),
      { numRuns: 1_000 },
    );
  });

  test('what a person said is never lost, nor its order', () => {
    fc.assert(
      fc.property(list, (messages) => {
        const spoken = (some: readonly ConversationMessage[]): ConversationMessage[] =>
          some.filter(({ role, ...rest }) => role === 'user' && JSON.stringify(rest).includes('KEEP'));
        const marked = messages.map((one, at): ConversationMessage => (one.role === 'user' ? { role: one.role, text: `KEEP ${at}` } : one));
        expect(spoken(normalize(marked, { provider: 'anthropic' }))).toEqual(spoken(marked));
      }),
    );
  });

  test('an answer is never edited inside a block', () => {
    fc.assert(
      fc.property(list, (messages) => {
        const wellFormed = messages.filter((one) => !/\p{Surrogate}/u.test(JSON.stringify(one).replace(/\\ud[89a-f]/gi, '\ud800')));
        const before = new Set(wellFormed.flatMap((one) => (one.role === 'assistant' ? one.blocks : [])));
        const after = normalize(wellFormed, { provider: 'anthropic' }).flatMap((one) => (one.role === 'assistant' ? one.blocks : []));
        expect(after.filter((part) => part.kind !== 'tool-call' && !before.has(part))).toEqual([]);
      }),
    );
  });
});

test('any valid conversation comes out unchanged', () => {
  const word = fc.constantFrom('one', 'two', 'three');
  const turn = fc.tuple(word, fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }), word);
  fc.assert(
    fc.property(fc.array(turn, { minLength: 1, maxLength: 5 }), (turns) => {
      const messages = turns.flatMap(([asked, rounds, answered], t): ConversationMessage[] => [
        user(asked),
        ...rounds.flatMap((calls, r): ConversationMessage[] => {
          const ids = Array.from({ length: calls }, (_, c) => `turn_${t}/c${r}-${c}`);
          return [says(thinking('hm'), ...ids.map((id) => call(id))), ...ids.map((id) => result(id))];
        }),
        says(answered),
      ]);
      const valid = [...messages, user('next')];
      expect(normalized(...valid)).toEqual(valid);
    }),
  );
});
