/** What conformance cannot say over HTTP: the oddities of one provider's stream each. */
import fc from 'fast-check';
import { createAnswer as createGeminiAnswer } from '../../src/models/gemini/client.js';
import type { ModelDelta, ModelFailure } from '../../src/models/model.js';
import { createAnswer as createOllamaAnswer } from '../../src/models/ollama/client.js';
import { createChatAnswer } from '../../src/models/openai/chat-answer.js';
import { createResponsesAnswer } from '../../src/models/openai/responses-answer.js';
import { Refusal } from '../../src/models/refusal.js';

const quiet = (): void => {};

const thrown = (act: () => unknown): unknown => {
  try {
    return act();
  } catch (error) {
    return error;
  }
};

const kindOf = (act: () => unknown): string => (thrown(act) as ModelFailure).kind;

describe('Chat Completions', () => {
  const chunk = (delta: object, finish: string | null = null): object => ({ choices: [{ index: 0, delta, finish_reason: finish }] });

  test('a server that counts no tokens is believed once its stream has ended well', () => {
    const answer = createChatAnswer('openai', quiet);
    answer.take(chunk({ content: 'Hi' }, 'stop'));
    expect(answer.isWhole()).toBe(false);
    answer.end();
    expect(answer.response()).toEqual({
      blocks: [{ kind: 'text', text: 'Hi' }],
      stop: 'end',
      usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0 },
    });
  });

  test('an end without a finish reason is none', () => {
    const answer = createChatAnswer('openai', quiet);
    answer.take(chunk({ content: 'Hi' }));
    answer.end();
    expect(kindOf(() => answer.response())).toBe('broken-stream');
  });

  test('pieces of several calls may be mixed', () => {
    const answer = createChatAnswer('openai', quiet);
    const piece = (index: number, fields: object): object => chunk({ tool_calls: [{ index, ...fields }] });
    answer.take(piece(0, { id: 'a', function: { name: 'one', arguments: '{"n"' } }));
    answer.take(piece(1, { id: 'b', function: { name: 'two', arguments: '{"m"' } }));
    answer.take(piece(0, { function: { arguments: ':1}' } }));
    answer.take(piece(1, { function: { arguments: ':2}' } }));
    answer.take(chunk({}, 'tool_calls'));
    answer.end();
    expect(answer.response().blocks).toEqual([
      { kind: 'tool-call', callId: 'a', name: 'one', input: { n: 1 } },
      { kind: 'tool-call', callId: 'b', name: 'two', input: { m: 2 } },
    ]);
  });

  const callsOf = (...pieces: object[]): object[] => {
    const answer = createChatAnswer('openai', quiet);
    for (const piece of pieces) answer.take(chunk({ tool_calls: [piece] }));
    answer.take(chunk({}, 'tool_calls'));
    answer.end();
    return answer.response().blocks.map((block) => (block.kind === 'tool-call' ? { id: block.callId, [block.name]: block.input } : block));
  };

  // As Ollama (ollama#7881), LM Studio, Gemini's own endpoint, vLLM and others have sent them.
  test.each<[string, object[], object[]]>([
    [
      'all with the index 0',
      [
        { index: 0, id: 'a', function: { name: 'one', arguments: '{"n":1}' } },
        { index: 0, id: 'b', function: { name: 'two', arguments: '{"m":2}' } },
      ],
      [
        { id: 'a', one: { n: 1 } },
        { id: 'b', two: { m: 2 } },
      ],
    ],
    [
      'without an index, in pieces',
      [
        { id: 'a', function: { name: 'one', arguments: '{"n"' } },
        { function: { arguments: ':1}' } },
        { id: 'b', function: { name: 'two', arguments: '' } },
        { function: { arguments: '{"m":2}' } },
      ],
      [
        { id: 'a', one: { n: 1 } },
        { id: 'b', two: { m: 2 } },
      ],
    ],
    [
      'without index and id, each whole',
      [
        { function: { name: 'one', arguments: '{"n":1}' } },
        { function: { name: 'one', arguments: { n: 2 } } },
        { function: { name: 'one' } },
      ],
      [
        { id: '', one: { n: 1 } },
        { id: '', one: { n: 2 } },
        { id: '', one: {} },
      ],
    ],
    [
      'the name in a later piece, and in two',
      [
        { index: 0, id: 'a', function: { arguments: '' } },
        { index: 0, function: { name: 'o' } },
        { index: 0, function: { name: 'ne' } },
      ],
      [{ id: 'a', one: {} }],
    ],
    [
      'the name and the id with every piece',
      [
        { index: 0, id: 'a', function: { name: 'one', arguments: '{"n":"}' } },
        { index: 0, id: 'a', function: { name: 'one', arguments: '"}' } },
        { index: 0, id: 'a', function: { name: 'one', arguments: '{"n":"}"}' } },
      ],
      [{ id: 'a', one: { n: '}' } }],
    ],
    [
      'one id for two',
      [
        { index: 0, id: 'x', function: { name: 'one', arguments: '{"n":1}' } },
        { index: 1, id: 'x', function: { name: 'two', arguments: '{}' } },
      ],
      [
        { id: 'x', one: { n: 1 } },
        { id: 'x', two: {} },
      ],
    ],
    ['arguments of null', [{ index: 0, id: 'a', function: { name: 'one', arguments: null } }], [{ id: 'a', one: {} }]],
    [
      'arguments that are no JSON, which the model is told',
      [{ index: 0, id: 'a', function: { name: 'one', arguments: '{"timeZone": Europe/Berlin}' } }],
      [{ id: 'a', one: { _invalid: expect.stringContaining('not JSON') } }],
    ],
    [
      'arguments in a list',
      [{ index: 0, id: 'a', function: { name: 'one', arguments: [1] } }],
      [{ id: 'a', one: { _invalid: 'not a JSON object' } }],
    ],
  ])('calls: %s', (_what, pieces, calls) => {
    expect(callsOf(...pieces)).toEqual(calls);
  });

  test('however calls are cut into pieces, with an id, an index, or neither, they come out as they are', () => {
    const input = fc.dictionary(fc.stringMatching(/^[a-z]{1,3}$/), fc.string({ unit: 'binary' }), { maxKeys: 3 });
    const call = fc.record({ name: fc.constantFrom('one', 'two'), input, cuts: fc.array(fc.nat(40), { maxLength: 4 }) });
    const names = fc.constantFrom('id and index', 'id', 'index', 'id and index 0', 'neither');
    const property = fc.property(fc.array(call, { minLength: 1, maxLength: 4 }), names, fc.boolean(), (calls, given, repeatsName) => {
      const pieces = calls.flatMap(({ name, input: value, cuts }, at) => {
        const json = JSON.stringify(value);
        const all = [...cuts.map((cut) => Math.min(cut, json.length)).sort((a, b) => a - b), json.length];
        // With neither, an empty piece could be the end of one call or the beginning of another.
        const ends = given === 'neither' ? [...new Set(all)].filter((end) => end > 0) : all;
        return ends.map((end, n) => ({
          ...(given.includes('index') && { index: given.endsWith('0') ? 0 : at }),
          ...(given.includes('id') && n === 0 && { id: `call_${at}` }),
          function: { ...((n === 0 || repeatsName) && { name }), arguments: json.slice(n === 0 ? 0 : ends[n - 1], end) },
        }));
      });
      const wellFormed = (value: object): unknown =>
        JSON.parse(JSON.stringify(value, (_, one) => (typeof one === 'string' ? one.toWellFormed() : one)));
      const expected = calls.map(({ name, input: value }, at) => ({
        id: given.includes('id') ? `call_${at}` : '',
        [name]: wellFormed(value),
      }));
      expect(callsOf(...pieces)).toEqual(expected);
    });
    fc.assert(property, { numRuns: 1_000 });
  });

  test.each([
    [
      'a list of parts',
      {
        content: [
          { type: 'text', text: 'H' },
          { type: 'text', text: 'i' },
        ],
      },
      [{ kind: 'text', text: 'Hi' }],
    ],
    [
      'thoughts in a part',
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
          { type: 'text', text: 'Hi' },
        ],
      },
      [
        { kind: 'thinking', text: 'Hm.', provider: 'openai' },
        { kind: 'text', text: 'Hi' },
      ],
    ],
    [
      'a part that is not known',
      { content: [{ type: 'image_url', image_url: { url: 'x' } }] },
      [{ kind: 'text', text: '[a part of type "image_url", which cannot be shown]' }],
    ],
  ])('content as %s', (_what, delta, blocks) => {
    const answer = createChatAnswer('openai', quiet);
    answer.take(chunk(delta, 'stop'));
    answer.end();
    expect(answer.response().blocks).toEqual(blocks);
  });

  test('a whole message in place of pieces counts, and repeated behind them it does not', () => {
    const message = { content: 'Hi', tool_calls: [{ id: 'a', function: { name: 'one', arguments: '{}' } }] };
    const answers = [
      [{ choices: [{ message, finish_reason: 'tool_calls' }] }],
      [chunk(message), { choices: [{ message, finish_reason: 'tool_calls' }] }],
    ];
    for (const chunks of answers) {
      const answer = createChatAnswer('openai', quiet);
      for (const one of chunks) answer.take(one);
      answer.end();
      expect(answer.response().blocks).toMatchObject([{ text: 'Hi' }, { callId: 'a', name: 'one' }]);
    }
  });

  test.each([
    ['length', 'max-tokens'],
    ['model_length', 'max-tokens'],
    ['sensitive', 'refusal'],
    ['model_context_window_exceeded', 'context-full'],
    ['eos', 'end'],
    ['STOP', 'end'],
  ])('the end %s means %s', (finish, stop) => {
    const answer = createChatAnswer('openai', quiet);
    answer.take(chunk({ content: 'Half' }, finish));
    answer.end();
    expect(answer.response()).toMatchObject({ stop, blocks: [{ text: 'Half' }] });
  });

  test('an end that is not known is said, and counts as cut; one by a fault of the server is none', () => {
    const answer = createChatAnswer('openai', quiet);
    answer.take(chunk({ content: 'Half' }, 'gone_fishing'));
    answer.end();
    expect(answer.response()).toMatchObject({
      stop: 'max-tokens',
      blocks: [{ text: 'Half' }, { text: expect.stringContaining('"gone_fishing"') }],
    });
    const failed = createChatAnswer('openai', quiet);
    failed.take(chunk({ content: 'Half' }, 'network_error'));
    failed.end();
    expect(kindOf(() => failed.response())).toBe('broken-stream');
  });

  test.each(['stop', 'tool_calls', 'function_call'])('a call that finishes with %s is one', (finish) => {
    const answer = createChatAnswer('openai', quiet);
    answer.take(chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'one', arguments: '' } }] }, finish));
    answer.end();
    expect(answer.response()).toMatchObject({ stop: 'tool-calls', blocks: [{ kind: 'tool-call', input: {} }] });
  });

  test.each(['length', 'content_filter', 'gone'])('a call that finishes with %s is none', (finish) => {
    const answer = createChatAnswer('openai', quiet);
    answer.take(chunk({ content: 'I', tool_calls: [{ index: 0, id: 'a', function: { name: 'one', arguments: '{}' } }] }, finish));
    answer.end();
    expect(answer.response().blocks.slice(0, 1)).toEqual([{ kind: 'text', text: 'I' }]);
    expect(answer.response().blocks.filter(({ kind }) => kind === 'tool-call')).toEqual([]);
  });

  test('a character may come in two halves', () => {
    const deltas: ModelDelta[] = [];
    const answer = createChatAnswer('openai', (delta) => deltas.push(delta));
    answer.take(chunk({ content: 'a\ud83d' }));
    answer.take(chunk({ content: '\ude00b' }, 'stop'));
    answer.end();
    expect(deltas).toEqual([
      { kind: 'text', text: 'a' },
      { kind: 'text', text: '😀b' },
    ]);
    expect(answer.response().blocks).toEqual([{ kind: 'text', text: 'a😀b' }]);
  });
});

describe('Responses', () => {
  const reasoning = {
    type: 'reasoning',
    id: 'rs_1',
    summary: [
      { type: 'summary_text', text: 'One.' },
      { type: 'summary_text', text: 'Two.' },
    ],
    encrypted_content: 'c2ln',
  };

  test('reasoning is kept twice: to be read, and to be sent back as it came', () => {
    const deltas: ModelDelta[] = [];
    const answer = createResponsesAnswer('openai-responses', (delta) => deltas.push(delta));
    answer.take({ type: 'response.reasoning_summary_part.added', summary_index: 0 });
    answer.take({ type: 'response.reasoning_summary_text.delta', delta: 'One.' });
    answer.take({ type: 'response.reasoning_summary_part.added', summary_index: 1 });
    answer.take({ type: 'response.reasoning_summary_text.delta', delta: 'Two.' });
    answer.take({ type: 'response.output_item.done', output_index: 0, item: reasoning });
    answer.take({ type: 'response.completed', response: { status: 'completed' } });
    expect(deltas.map((delta) => ('text' in delta ? delta.text : '')).join('')).toBe('One.\n\nTwo.');
    expect(answer.response().blocks).toEqual([
      { kind: 'thinking', text: 'One.\n\nTwo.', provider: 'openai-responses' },
      { kind: 'opaque', provider: 'openai-responses', value: reasoning },
    ]);
  });

  test('reasoning that is not encrypted is to be read only', () => {
    const answer = createResponsesAnswer('openai-responses', quiet);
    const item = { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }] };
    answer.take({ type: 'response.output_item.done', output_index: 0, item });
    answer.take({ type: 'response.completed', response: { status: 'completed' } });
    expect(answer.response().blocks).toEqual([{ kind: 'thinking', text: 'Hm.', provider: 'openai-responses' }]);
  });

  test('items that came only with the last word count', () => {
    const answer = createResponsesAnswer('openai-responses', quiet);
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }];
    answer.take({ type: 'response.completed', response: { status: 'completed', output } });
    expect(answer.response()).toMatchObject({ stop: 'end', blocks: [{ kind: 'text', text: 'Hi' }] });
  });

  test('a response that failed is a refusal', () => {
    const answer = createResponsesAnswer('openai-responses', quiet);
    const response = { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'Slow down.' } };
    const refusal = thrown(() => answer.take({ type: 'response.failed', response }));
    expect(refusal).toBeInstanceOf(Refusal);
    expect((refusal as Refusal).refused).toEqual({ words: 'Slow down.', codes: ['rate_limit_exceeded'] });
  });
});

describe('Gemini', () => {
  const chunk = (parts: readonly object[], finishReason?: string): object => ({
    candidates: [{ content: { role: 'model', parts }, finishReason }],
  });

  test('a signature stands before the call or after the text that it came on', () => {
    const answer = createGeminiAnswer('gemini', quiet);
    answer.take(chunk([{ text: 'Hm.', thought: true }]));
    answer.take(chunk([{ text: 'Let me ' }]));
    answer.take(chunk([{ text: 'look.', thoughtSignature: 'dDE=' }]));
    answer.take(chunk([{ functionCall: { name: 'one', args: {} }, thoughtSignature: 'YzE=' }, { functionCall: { name: 'two' } }], 'STOP'));
    const signature = (on: string, value: string): object => ({
      kind: 'opaque',
      provider: 'gemini',
      value: { type: 'thought_signature', on, signature: value },
    });
    expect(answer.response().blocks).toEqual([
      { kind: 'thinking', text: 'Hm.', provider: 'gemini' },
      { kind: 'text', text: 'Let me look.' },
      signature('text', 'dDE='),
      signature('call', 'YzE='),
      { kind: 'tool-call', callId: 'call_0', name: 'one', input: {} },
      { kind: 'tool-call', callId: 'call_1', name: 'two', input: {} },
    ]);
  });

  test('a tool whose name it could not be offered by is called by its own', () => {
    const answer = createGeminiAnswer('gemini', quiet, ['9lives', 'read_file']);
    answer.take(
      chunk([{ functionCall: { name: '_9lives' } }, { functionCall: { name: 'read_file' } }, { functionCall: { name: 'x' } }], 'STOP'),
    );
    expect(answer.response().blocks).toMatchObject([{ name: '9lives' }, { name: 'read_file' }, { name: 'x' }]);
  });

  test('with a call that is dropped goes its signature', () => {
    const answer = createGeminiAnswer('gemini', quiet);
    answer.take(chunk([{ text: 'I' }, { functionCall: { name: 'one' }, thoughtSignature: 'YzE=' }], 'MAX_TOKENS'));
    expect(answer.response()).toMatchObject({ stop: 'max-tokens', blocks: [{ kind: 'text', text: 'I' }] });
    expect(answer.response().blocks).toHaveLength(1);
  });

  test.each([
    [{ blockReason: 'PROHIBITED_CONTENT' }, 'Gemini gave no answer: PROHIBITED_CONTENT.'],
    [{ blockReason: 'SAFETY', blockReasonMessage: 'Not this.' }, 'Not this.'],
  ])('a prompt that was blocked is a refusal: %j', (promptFeedback, words) => {
    const answer = createGeminiAnswer('gemini', quiet);
    answer.take({ promptFeedback });
    expect(answer.response()).toMatchObject({ stop: 'refusal', blocks: [{ kind: 'text', text: words }] });
  });

  test.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL'])('%s is worth another try', (word) => {
    const answer = createGeminiAnswer('gemini', quiet);
    answer.take(chunk([{ text: 'I' }], word));
    expect(kindOf(() => answer.response())).toBe('broken-stream');
  });
});

describe('Ollama', () => {
  test('an input that came as text is read as JSON', () => {
    const answer = createOllamaAnswer('ollama', quiet);
    answer.take({ message: { content: '', tool_calls: [{ function: { name: 'one', arguments: '{"n":1}' } }] }, done: false });
    answer.take({ message: { content: '' }, done: true, done_reason: 'stop' });
    expect(answer.response()).toMatchObject({ stop: 'tool-calls', blocks: [{ name: 'one', input: { n: 1 } }] });
  });

  test('a last line without a reason is an end', () => {
    const answer = createOllamaAnswer('ollama', quiet);
    answer.take({ message: { content: 'Hi' }, done: true, prompt_eval_count: 7, eval_count: 2 });
    expect(answer.response()).toMatchObject({ stop: 'end', usage: { inputTokens: 7, outputTokens: 2 } });
  });
});
