import { toModelFailure, type Provider } from '../../src/models/failure.js';
import { toRefusal, Unreachable, type Refused } from '../../src/models/refusal.js';

const provider: Provider = { name: 'p', secrets: [], advice: { auth: 'Check it.' } };

const http = (status: number, headers: Record<string, string> = {}) => ({ status, headers: new Headers(headers), now: 0 });

const kindOf = (error: unknown, answered = false): string => toModelFailure(error, { provider, model: 'm', answered }).kind;

test.each<[string, string, Refused]>([
  [
    'OpenAI’s shape',
    '{"error":{"message":"No.","type":"requests","param":null,"code":"rate_limit_exceeded"}}',
    { status: 429, words: 'No.', codes: ['rate_limit_exceeded', 'requests'] },
  ],
  [
    'Google’s, which has the wait inside',
    '[{"error":{"code":429,"message":"No.","status":"RESOURCE_EXHAUSTED","details":[{"reason":"X"},{"retryDelay":"7.5s"}]}}]',
    { status: 429, words: 'No.', codes: ['X', 'RESOURCE_EXHAUSTED'], retryAfterMs: 7_500 },
  ],
  ['Ollama’s', '{"error":"No."}', { status: 429, words: 'No.', codes: [] }],
  ['plain words', '  No,\n never. ', { status: 429, words: 'No, never.', codes: [] }],
  ['a web page', '<html><title>429 Slow</title></html>', { status: 429, words: '(a web page: 429 Slow)', codes: [] }],
  ['nothing', '', { status: 429, words: '', codes: [] }],
  [
    'FastAPI’s, with the place of each fault',
    '{"detail":[{"loc":["body","messages",2,"role"],"msg":"no such role","type":"value_error"},{"loc":["body","x"],"msg":"extra"}]}',
    { status: 429, words: 'body.messages.2.role: no such role; body.x: extra', codes: [] },
  ],
  [
    'Mistral’s',
    '{"object":"error","message":{"detail":[{"type":"extra","loc":["body","max_completion_tokens"],"msg":"Not permitted"}]},"type":"invalid_request_error"}',
    { status: 429, words: 'body.max_completion_tokens: Not permitted', codes: ['invalid_request_error'] },
  ],
  ['a problem as the RFC has it', '{"title":"Bad","detail":"No such model."}', { status: 429, words: 'No such model.', codes: [] }],
  ['a list of errors', '{"errors":[{"message":"No."},{"message":"Never."}]}', { status: 429, words: 'No.; Never.', codes: [] }],
  ['a shape without words', '{"ok":false,"n":[1]}', { status: 429, words: '', codes: [] }],
])('a refusal is read from %s', (_, body, refused) => {
  expect(toRefusal(body, http(429)).refused).toEqual(refused);
});

test('a wait in the headers goes before one in the body', () => {
  const body = '{"error":{"message":"No.","details":[{"retryDelay":"7s"}]}}';
  expect(toRefusal(body, http(429, { 'retry-after': '3' })).refused.retryAfterMs).toBe(3_000);
});

test('a date is counted from the date of the answer: our own clock may be off', () => {
  const headers = { date: 'Sun, 22 Nov 2026 10:00:00 GMT', 'retry-after': 'Sun, 22 Nov 2026 10:00:03 GMT' };
  expect(toRefusal('', http(429, headers)).refused.retryAfterMs).toBe(3_000);
  expect(toRefusal('', { ...http(429, headers), now: Date.parse('2026-11-22T10:00:40Z') }).refused.retryAfterMs).toBe(3_000);
  const { date: _, ...dateless } = headers;
  expect(toRefusal('', { ...http(429, dateless), now: Date.parse('2026-11-22T10:00:01Z') }).refused.retryAfterMs).toBe(2_000);
  expect(toRefusal('', http(429, { ...headers, 'retry-after': 'Sun, 22 Nov 2026 09:59:00 GMT' })).refused.retryAfterMs).toBeUndefined();
});

test.each<[string, number | undefined, object, string]>([
  ['quota that is used up, though its status says wait', 429, { code: 'insufficient_quota' }, 'billing'],
  ['one request over the limit of a minute', 429, { code: 'rate_limit_exceeded', message: 'Request too large for gpt-5' }, 'too-large'],
  ['a key that Google does not know', 400, { status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] }, 'auth'],
  ['a place that Google does not serve', 400, { message: 'User location is not supported for the API use.' }, 'forbidden'],
  ['a full context', 400, { code: 'context_length_exceeded' }, 'context-full'],
  ['a busy server', 500, { message: 'server busy, please try again.' }, 'overloaded'],
  ['a fault in the middle of a stream', undefined, { message: 'oops' }, 'server'],
  ['a bad prompt in the middle of a stream', undefined, { code: 'invalid_prompt', message: 'no' }, 'invalid-request'],
])('%s is no mere status', (_, status, error, kind) => {
  expect(kindOf(toRefusal({ error }, status === undefined ? undefined : http(status)))).toBe(kind);
});

// As the providers and servers say it, collected from public issues and projects.
test.each([
  ['Anthropic', 'prompt is too long: 213462 tokens > 200000 maximum'],
  ['OpenAI', "This model's maximum context length is 8191 tokens, however you requested 10346 tokens"],
  ['OpenAI, Responses', 'Your input exceeds the context window of this model. Please adjust your input and try again.'],
  ['Google', 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).'],
  ['xAI', "This model's maximum prompt length is 131072 but the request contains 537812 tokens."],
  ['Groq', 'Please reduce the length of the messages or completion.'],
  ['Bedrock', 'Input is too long for requested model.'],
  ['Bedrock, of Titan', 'Too many input tokens. Max input tokens: 8192, request input token count: 9279'],
  ['Mistral', 'Prompt contains 300000 tokens and 0 draft tokens, too large for model with 262144 maximum context length'],
  ['Together', "The input (300 tokens) is longer than the model's context length (200 tokens)."],
  ['GitHub', 'prompt token count of 5000 exceeds the limit of 4096'],
  ['Kimi', 'Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)'],
  ['MiniMax', 'invalid params, context window exceeds limit'],
  ['DashScope', 'Range of input length should be [1, 30000]'],
  ['Z.ai', 'Prompt 超长'],
  ['Ollama', 'prompt too long; exceeded max context length by 12 tokens'],
  ['llama.cpp', 'the request exceeds the available context size, try increasing it'],
  ['llama.cpp, since 2026', 'request (9120 tokens) exceeds the available context size (8192 tokens), try increasing it'],
  ['LM Studio', 'The number of tokens to keep from the initial prompt is greater than the context length.'],
  ['vLLM', "Input length (265330) exceeds model's maximum context length (262144)."],
])('%s says that the context is full', (_who, message) => {
  for (const status of [400, 422, 500]) expect(kindOf(toRefusal({ error: { message } }, http(status)))).toBe('context-full');
});

test.each([
  ['a wish for too long an answer', 'max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens'],
  ['its form at others', 'max_tokens exceeds the limit of 8192'],
  ['a text in a tool', 'tools.0.description: string is longer than 1024'],
  ['a role', 'Expected last role User or Tool but got assistant'],
])('%s is no full context', (_what, message) => {
  expect(kindOf(toRefusal({ error: { message } }, http(400)))).toBe('invalid-request');
});

test('who is not reached is told from who does not answer in time', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  const late = Object.assign(new Error('Connect Timeout Error'), { code: 'UND_ERR_CONNECT_TIMEOUT' });
  expect(kindOf(new Unreachable(new TypeError('fetch failed', { cause: refused })))).toBe('connection');
  expect(kindOf(new Unreachable(new TypeError('fetch failed', { cause: late })))).toBe('timeout');
});

test('an SDK that stumbles over an answer means a broken stream; a mistake of ours does not', () => {
  expect(kindOf(new SyntaxError('Unexpected token'), true)).toBe('broken-stream');
  expect(kindOf(new Error('Incomplete JSON segment at the end'), true)).toBe('broken-stream');
  expect(kindOf(new TypeError('x is not a function'), true)).toBe('invalid-request');
  expect(kindOf(new Error('a key with a line break'))).toBe('invalid-request');
});
