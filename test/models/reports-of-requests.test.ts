/** What public reports say that servers refuse in a request, and that it is then made in a form that they take. */
import { call, result, says, user } from './builders.js';
import { api, ask, delta, openai, playServer, refusal, sse, whole, type SentBody } from './compatible-server.js';

playServer();

const history = [user('What time is it?'), says(call('a', 'get_time')), result('a', 'noon', 'ok', 'get_time'), user('Thanks. And?')];
const hi = sse(delta({ content: 'Hi' }, 'stop'));

test('can1357/oh-my-pi#1227: Bedrock behind LiteLLM wants tools where calls are in the history', async () => {
  const words =
    'litellm.BadRequestError: BedrockException - {"message":"The toolConfig field must be defined when using toolUse and toolResult content blocks."}';
  api.reply = ({ tools, messages }) =>
    (tools ?? []).length === 0 && messages.some(({ role }) => role === 'tool')
      ? refusal(400, { error: { message: words, code: '400' } })
      : hi;
  const model = openai();
  expect(await ask(model, { messages: history })).toBe('end: Hi');
  expect(await ask(model, { messages: history })).toBe('end: Hi');
  expect(api.bodies).toHaveLength(3);
  // A request without calls stays as it is.
  await ask(model);
  expect(api.bodies.at(-1)).not.toHaveProperty('tools');
});

test('browser-use/browser-use#1243: the same, as LiteLLM says it before it asks', async () => {
  const words =
    "litellm.UnsupportedParamsError: Bedrock doesn't support tool calling without `tools=` param specified. Pass `tools=` param";
  api.reply = ({ tools }) => (tools === undefined ? refusal(400, { error: { message: words } }) : hi);
  expect(await ask(openai(), { messages: history })).toBe('end: Hi');
  expect(api.bodies).toHaveLength(2);
});

test('RooCodeInc/Roo-Code#274, nomic-ai/gpt4all#3150: a model that cannot stream', async () => {
  const words = "Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported.";
  api.reply = ({ stream }) =>
    stream === true
      ? refusal(400, { error: { message: words, type: 'invalid_request_error', param: 'stream', code: 'unsupported_value' } })
      : { type: 'application/json', body: JSON.stringify(whole({ content: 'Hello!' })) };
  const model = openai();
  expect(await ask(model)).toBe('end: Hello!');
  expect(await ask(model)).toBe('end: Hello!');
  expect(api.bodies).toHaveLength(3);
  expect(api.bodies.at(-1)).not.toHaveProperty('stream_options');
});

test.each<[string, string, number]>([
  [
    'diffbot/code-gpt-docs#284',
    'max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you provided 8192.',
    4096,
  ],
  ['shiaho777/web-to-app#442', 'Invalid max_tokens value, the valid range of max_tokens is [1, 4000]', 4000],
])('%s: more is wished for than the model may say', async (_report, message, most) => {
  api.reply = ({ max_tokens: wished }) => (wished > most ? refusal(400, { error: { message, type: 'invalid_request_error' } }) : hi);
  const model = openai();
  expect(await ask(model, { maxTokens: 8_192 })).toBe('end: Hi');
  expect(await ask(model, { maxTokens: 8_192 })).toBe('end: Hi');
  expect(api.bodies.map(({ max_tokens: wished }) => wished)).toEqual([8_192, most, most]);
});

// vllm-project/vllm, vllm/entrypoints/openai: its words for prompt and answer together, older and newer; the prompt has 2,778 tokens.
test.each<[string, (window: number, wished: number) => string, number[]]>([
  [
    'that counts',
    (window, wished) =>
      `'max_tokens' or 'max_completion_tokens' is too large: ${wished}. This model's maximum context length is ${window} tokens and your request has 2778 input tokens (${wished} > ${window} - 2778).`,
    [8_192, 1_318],
  ],
  [
    'that stops counting',
    (window, wished) =>
      `This model's maximum context length is ${window} tokens. However, you requested ${wished} output tokens and your prompt contains at least ${Math.max(1, window - wished + 1)} input tokens, for a total of at least ${window + 1} tokens.`,
    [8_192, 4_095, 2_047, 1_023],
  ],
])('a vLLM %s: prompt and answer do not fit its window together', async (_what, words, wishes) => {
  api.reply = ({ max_tokens: wished }) =>
    2_778 + wished > 4_096 ? refusal(400, { error: { message: words(4_096, wished), code: 400 } }) : hi;
  expect(await ask(openai(), { maxTokens: 8_192 })).toBe('end: Hi');
  expect(api.bodies.map(({ max_tokens: wished }) => wished)).toEqual(wishes);
});

test('a prompt that leaves no room for an answer is one that is too long', async () => {
  api.reply = () =>
    refusal(400, { error: { message: "This model's maximum context length is 4096 tokens and your request has 4000 input tokens" } });
  expect(await ask(openai(), { maxTokens: 8_192 })).toMatch(/^context-full: /);
  expect(api.bodies).toHaveLength(1);
});

// abetlen/llama-cpp-python, its server of 0.3.36 as tried.
test('llama-cpp-python wants a string where a message has calls alone', async () => {
  const words =
    "7 validation errors:\n  {'type': 'literal_error', 'loc': ('body', 'messages', 2, 'ChatCompletionRequestUserMessage', 'role'), 'msg': \"Input should be 'user'\"}\n" +
    "  {'type': 'string_type', 'loc': ('body', 'messages', 2, 'ChatCompletionRequestAssistantMessage', 'content'), 'msg': 'Input should be a valid string', 'input': None}";
  api.reply = ({ messages }) =>
    messages.some(({ content }) => content === null) ? refusal(500, { error: { message: words, type: 'internal_server_error' } }) : hi;
  const model = openai();
  expect(await ask(model, { messages: history })).toBe('end: Hi');
  expect(await ask(model, { messages: history })).toBe('end: Hi');
  expect(api.bodies).toHaveLength(3);
});

test('llama-cpp-python ends a stream before it begins where the prompt is too long: without one it says so', async () => {
  api.reply = ({ stream }) =>
    stream === true
      ? { body: '' }
      : refusal(400, {
          error: {
            message:
              "This model's maximum context length is 8192 tokens. However, you requested 9077 tokens (9017 in the messages, 60 in the completion).",
            code: 'context_length_exceeded',
          },
        });
  expect(await ask(openai())).toMatch(/^context-full: .*9017/);
  expect(api.bodies).toHaveLength(2);
  // Later requests want a stream again.
  api.reply = () => hi;
  expect(await ask(openai())).toBe('end: Hi');
  expect(api.bodies.at(-1)?.stream).toBe(true);
});

test('ggml-org/llama.cpp#25510, aws-samples/bedrock-access-gateway#258: arguments in the history are always JSON', async () => {
  const strict = ({ messages }: SentBody): boolean =>
    messages.every(({ tool_calls: calls = [] }) => calls.every((one) => typeof JSON.parse(one.function.arguments) === 'object'));
  api.reply = (body) => (strict(body) ? hi : refusal(500, { error: { message: 'Failed to parse tool call arguments as JSON' } }));
  const odd = [call('a', 'one', null), call('b', 'two', {}), call('c', 'three', 'text')];
  const answers = ['a', 'b', 'c'].map((id) => result(id, 'done', 'ok', 'one'));
  expect(await ask(openai(), { messages: [user('Go.'), says(...odd), ...answers] })).toBe('end: Hi');
});
