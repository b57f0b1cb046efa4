/**
 * What public reports say that servers send, and what must come of it: real clients over loopback HTTP. A row is a report; the bytes are the
 * reported ones, shortened.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AssistantBlock } from '../../src/records/message.js';
import { type Model, ModelFailure, type ModelRequest } from '../../src/models/model.js';
import { createOllamaModel } from '../../src/models/ollama/client.js';
import { createOpenAIModel, createOpenAIResponsesModel } from '../../src/models/openai/client.js';
import { call, request, result, says, user } from './builders.js';

interface Sent {
  readonly status?: number;
  readonly type?: string;
  readonly body: string;
}

interface SentBody {
  readonly messages: readonly {
    readonly role: string;
    readonly tool_calls?: readonly { readonly function: { readonly arguments: string } }[];
  }[];
  readonly tools?: readonly unknown[];
  readonly stream?: boolean;
}

let server: Server;
let bodies: SentBody[];
let reply: (body: SentBody) => Sent;
let url: string;

beforeAll(async () => {
  server = createServer((incoming, outgoing) => {
    let text = '';
    incoming.on('data', (piece: Buffer) => (text += piece.toString()));
    incoming.on('end', () => {
      bodies.push(JSON.parse(text) as SentBody);
      const { status = 200, type = 'text/event-stream', body } = reply(bodies.at(-1)!);
      outgoing.writeHead(status, { 'content-type': type }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

beforeEach(() => {
  bodies = [];
});

afterAll(() => server.close());

const openai = (): Model => createOpenAIModel({ apiKey: 'key-of-a-test', baseURL: `${url}/v1` });

/** `end: text | call({…})`, or `kind: message`. */
async function ask(model: Model, parts: Partial<ModelRequest> = {}): Promise<string> {
  const show = (block: AssistantBlock): string => {
    if (block.kind === 'text') return String(block.text);
    if (block.kind === 'tool-call') return `${block.name}(${JSON.stringify(block.input)})`;
    return block.kind;
  };
  try {
    const { stop, blocks } = await model.stream(request({ model: 'm', ...parts }), {
      signal: new AbortController().signal,
      onDelta: () => {},
    });
    return `${stop}: ${blocks.map(show).join(' | ')}`;
  } catch (error) {
    if (!(error instanceof ModelFailure)) throw error;
    return `${error.kind}: ${error.message}`;
  }
}

const sse = (...chunks: readonly unknown[]): Sent => ({
  body: [...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), 'data: [DONE]\n\n'].join(''),
});
const delta = (piece: object, finish: string | null = null): object => ({ choices: [{ index: 0, delta: piece, finish_reason: finish }] });
const piece = (fields: object): object => delta({ content: null, tool_calls: [fields] });
const refusal = (status: number, body: unknown): Sent => ({ status, type: 'application/json', body: JSON.stringify(body) });
const whole = (message: object, finish = 'stop'): object => ({
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
  usage: { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 },
});

describe('an error in the place of an answer is that error', () => {
  test.each<[string, Sent, RegExp]>([
    [
      'vercel/ai#13506: in a stream',
      sse({ error: { message: 'Context length exceeded', code: 'CONTEXT_LENGTH_EXCEEDED' } }),
      /^context-full: .*Context length exceeded/,
    ],
    [
      'NVIDIA-NeMo/Switchyard#542: SGLang says in the first event that the input is too long',
      sse({
        error: {
          code: 400,
          message:
            'Input length (600013 tokens) exceeds the maximum allowed length (536826 tokens). Use a shorter input or enable --allow-auto-truncate.',
          object: 'error',
          type: 'BAD_REQUEST',
        },
      }),
      /^context-full: .*536826/,
    ],
    ['fox1245/NeoGraph#124: as mere words', sse({ error: 'STREAM_EXPLODED' }), /^(server|broken-stream): .*STREAM_EXPLODED/],
    [
      'nugget/thane-ai-agent#1395: LM Studio sends an event named error',
      {
        body: `event: error\ndata: ${JSON.stringify({ error: { message: 'Trying to keep the first 14538 tokens when context the overflows. However, the model is loaded with context length of only 2048 tokens, which is not enough.' } })}\n\n`,
      },
      /^context-full: .*14538/,
    ],
    [
      'comet-ml/opik#1138: plain JSON that is called a stream',
      { body: JSON.stringify({ code: 429, message: 'Resource has been exhausted (e.g. check quota).', details: 'RESOURCE_EXHAUSTED' }) },
      /^rate-limit: .*Resource has been exhausted/,
    ],
    ['apache/rocketmq-dashboard#2178: a quota', sse({ error: { message: 'quota exceeded' } }), /^(rate-limit|server): .*quota exceeded/],
    [
      'Oaklight/argo-proxy#91: a filter of contents',
      sse({ error: { message: "Error code: 400 - {'error': {'message': 'The response was filtered', 'code': 'content_filter'}}" } }),
      /^invalid-request: .*The response was filtered/,
    ],
    [
      'RooCodeInc/Roo-Code#9105: MiniMax has its own place for it, and status 200',
      {
        type: 'application/json',
        body: JSON.stringify({ choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } }),
      },
      /^billing: .*insufficient balance/,
    ],
    [
      'the same, in a stream',
      sse({ choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } }),
      /^billing: .*insufficient balance/,
    ],
    [
      'MiniMax-AI/MiniMax-M2#62: no money, as a fault of the server',
      refusal(500, { type: 'error', error: { type: 'api_error', message: 'insufficient balance (1008)' }, request_id: 'x' }),
      /^billing: .*insufficient balance/,
    ],
    [
      'modelscope/modelscope#1691: no money, as a limit that passes',
      refusal(429, { error: { http_code: '429', message: 'insufficient balance (1008)', type: 'insufficient_balance_error' } }),
      /^billing: /,
    ],
    [
      'Wei-Shaw/sub2api#890: no money, as a lack of rights',
      refusal(403, { code: 'INSUFFICIENT_BALANCE', message: 'Insufficient account balance' }),
      /^billing: /,
    ],
    [
      'anomalyco/opencode#13015: tokens of a day are no context',
      refusal(400, { message: 'Too many tokens per day, please wait before trying again.' }),
      /^rate-limit: .*Too many tokens per day/,
    ],
    [
      'anomalyco/opencode#13015: nor are those of a minute',
      sse({ error: { message: 'Tokens per minute limit exceeded - too many tokens processed.' } }),
      /^rate-limit: /,
    ],
    [
      'earendil-works/pi#4943: Poolside’s words',
      refusal(400, { error: { message: 'Input length 131393 exceeds the maximum allowed input length of 131040 tokens.', code: 400 } }),
      /^context-full: /,
    ],
    [
      'anthropics/claude-code#1531: what is asked for and what is sent, together',
      refusal(400, {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: 'input length and `max_tokens` exceed context limit: 175272 + 32000 > 200000, decrease input length',
        },
      }),
      /^context-full: /,
    ],
    [
      'continuedev/continue#10758: OpenRouter knows no such model, with 400',
      refusal(400, { error: { message: 'deepseek/deepseek-coder is not a valid model ID', code: 400 } }),
      /^not-found: .*Check the name of the model/,
    ],
    ['anomalyco/opencode#11037: nor does Bedrock', refusal(400, { message: 'The provided model identifier is invalid.' }), /^not-found: /],
    [
      'BerriAI/litellm#3142: nor does LiteLLM (1.108.7, as tried)',
      refusal(400, {
        error: {
          message: '/chat/completions: Invalid model name passed in model=m. Call `/v1/models` to view available models for your key.',
          type: 'invalid_request_error',
          code: '400',
        },
      }),
      /^not-found: /,
    ],
    [
      'LiteLLM 1.108.7 without a database, as tried: a wrong key',
      refusal(400, { error: { message: 'No connected db.', type: 'no_db_connection', param: null, code: '400' } }),
      /^auth: .*Check the key/,
    ],
    [
      'FuzzAnything/PromptFuzz#42: Gemini puts it into a list',
      refusal(400, [
        {
          error: { code: 400, message: 'Invalid JSON payload received. Unknown name "x": Cannot find field.', status: 'INVALID_ARGUMENT' },
        },
      ]),
      /^invalid-request: .*Unknown name "x"/,
    ],
    [
      'ggml-org/llama.cpp#23838: a call that the server cannot read',
      sse(delta({ content: 'Let me see. ' }), {
        error: {
          code: 500,
          message: 'Failed to parse input at pos 395: <|tool_call_start|>[web_search(query=1)]<|tool_call_end|>',
          type: 'server_error',
        },
      }),
      /^(server|broken-stream): .*Failed to parse input at pos 395/,
    ],
  ])('%s', async (_report, sent, wanted) => {
    reply = () => sent;
    expect(await ask(openai())).toMatch(wanted);
    expect(bodies).toHaveLength(1);
  });
});

describe('an answer in another shape is that answer', () => {
  test.each<[string, Sent, string]>([
    [
      'mistralai/mistral-vibe#84: a server that does not stream',
      { type: 'application/json', body: JSON.stringify(whole({ content: 'Hello!' })) },
      'end: Hello!',
    ],
    [
      'the same, with calls',
      {
        type: 'application/json; charset=utf-8',
        body: JSON.stringify(
          whole(
            { content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'one', arguments: '{"n":1}' } }] },
            'tool_calls',
          ),
        ),
      },
      'tool-calls: one({"n":1})',
    ],
    [
      'decolua/9router#3492: whole JSON with the end of a stream behind it',
      { body: `${JSON.stringify(whole({ content: 'Hello!' }))}data: [DONE]\n\n` },
      'end: Hello!',
    ],
    [
      'cline/cline#8384, RooCodeInc/Roo-Code#9105: no choices beside the usage',
      sse(delta({ content: 'Hello!' }), delta({}, 'stop'), { choices: null, usage: { prompt_tokens: 9, completion_tokens: 2 } }),
      'end: Hello!',
    ],
    [
      'sgl-project/sglang#35542, anomalyco/opencode#43328: nulls in later pieces',
      sse(
        piece({ index: 0, id: 'a', type: 'function', function: { name: 'calculator', arguments: '' } }),
        piece({ index: 0, id: null, type: null, function: { name: null, arguments: '{"x":' } }),
        piece({ index: 0, id: null, type: null, function: { name: null, arguments: '1}' } }),
        delta({}, 'tool_calls'),
      ),
      'tool-calls: calculator({"x":1})',
    ],
    [
      'InternLM/lmdeploy#3412: vLLM’s ids, empty in later pieces, at one index',
      sse(
        piece({ index: 0, id: 'call-1', function: { name: 'look', arguments: '' }, type: 'function' }),
        piece({ index: 0, id: '', function: { arguments: '{"a":1}', name: null }, type: 'function' }),
        piece({ index: 0, id: 'call-2', function: { name: 'look', arguments: '' }, type: 'function' }),
        piece({ index: 0, id: '', function: { arguments: '{"a":2}', name: null }, type: 'function' }),
        delta({}, 'tool_calls'),
      ),
      'tool-calls: look({"a":1}) | look({"a":2})',
    ],
    [
      'InternLM/lmdeploy#3412: SGLang’s ids are numbers in text',
      sse(
        piece({ index: 0, id: '0', function: { name: 'look', arguments: '' } }),
        piece({ index: 0, id: '0', function: { arguments: '{"a":1}', name: null } }),
        piece({ index: 0, id: '1', function: { name: 'look', arguments: '' } }),
        piece({ index: 0, id: '1', function: { arguments: '{"a":2}', name: null } }),
        delta({}, 'tool_calls'),
      ),
      'tool-calls: look({"a":1}) | look({"a":2})',
    ],
    [
      'Kilo-Org/cloud#4753: Bedrock’s call without arguments',
      sse(piece({ index: 0, id: 'a', type: 'function', function: { name: 'snapshot', arguments: '' } }), delta({}, 'tool_calls')),
      'tool-calls: snapshot({})',
    ],
    [
      'BerriAI/litellm#12481: Anthropic’s word for an end, over calls',
      sse(piece({ index: 0, id: 'a', function: { name: 'one', arguments: '{"n":1}' } }), delta({}, 'end_turn')),
      'tool-calls: one({"n":1})',
    ],
    [
      'MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks#177: `stop` over a forced call',
      sse(piece({ index: 0, id: 'a', function: { name: 'one', arguments: '{"n":1}' } }), delta({}, 'stop')),
      'tool-calls: one({"n":1})',
    ],
  ])('%s', async (_report, sent, wanted) => {
    reply = () => sent;
    expect(await ask(openai())).toBe(wanted);
    expect(bodies).toHaveLength(1);
  });

  test('the same for the Responses API, whole and refused', async () => {
    const model = createOpenAIResponsesModel({ apiKey: 'key-of-a-test', baseURL: `${url}/v1` });
    const output = [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello!' }] }];
    reply = () => ({ type: 'application/json', body: JSON.stringify({ object: 'response', status: 'completed', output, usage: {} }) });
    expect(await ask(model)).toBe('end: Hello!');
    reply = () => ({ type: 'application/json', body: JSON.stringify({ error: { message: 'insufficient balance' } }) });
    expect(await ask(model)).toMatch(/^billing: /);
  });

  test('a stream of many bytes whose first piece is cut inside a letter loses none of them', async () => {
    const text = '吾輩は猫である。'.repeat(500);
    reply = () => ({ body: `\n${sse(delta({ content: text }, 'stop')).body}` });
    expect(await ask(openai())).toBe(`end: ${text}`);
  });

  test('vllm-project/vllm#53269: a call that was cut under a good finish reason is no call with half of its input', async () => {
    reply = () =>
      sse(piece({ index: 0, id: 'a', function: { name: 'write', arguments: '{"path":"a.txt","con' } }), delta({}, 'tool_calls'));
    const said = await ask(openai());
    expect(said).toMatch(/^tool-calls: write/);
    expect(said).not.toContain('write({"path":"a.txt"})');
  });
});

describe('a request that a server refuses is made in a form that it takes', () => {
  const history = [user('What time is it?'), says(call('a', 'get_time')), result('a', 'noon', 'ok', 'get_time'), user('Thanks. And?')];
  const hi = sse(delta({ content: 'Hi' }, 'stop'));

  test('can1357/oh-my-pi#1227: Bedrock behind LiteLLM wants tools where calls are in the history', async () => {
    const words =
      'litellm.BadRequestError: BedrockException - {"message":"The toolConfig field must be defined when using toolUse and toolResult content blocks."}';
    reply = ({ tools, messages }) =>
      (tools ?? []).length === 0 && messages.some(({ role }) => role === 'tool')
        ? refusal(400, { error: { message: words, code: '400' } })
        : hi;
    const model = openai();
    expect(await ask(model, { messages: history })).toBe('end: Hi');
    expect(await ask(model, { messages: history })).toBe('end: Hi');
    expect(bodies).toHaveLength(3);
    // A request without calls stays as it is.
    await ask(model);
    expect(bodies.at(-1)).not.toHaveProperty('tools');
  });

  test('browser-use/browser-use#1243: the same, as LiteLLM says it before it asks', async () => {
    const words =
      "litellm.UnsupportedParamsError: Bedrock doesn't support tool calling without `tools=` param specified. Pass `tools=` param";
    reply = ({ tools }) => (tools === undefined ? refusal(400, { error: { message: words } }) : hi);
    expect(await ask(openai(), { messages: history })).toBe('end: Hi');
    expect(bodies).toHaveLength(2);
  });

  test('RooCodeInc/Roo-Code#274, nomic-ai/gpt4all#3150: a model that cannot stream', async () => {
    const words = "Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported.";
    reply = ({ stream }) =>
      stream === true
        ? refusal(400, { error: { message: words, type: 'invalid_request_error', param: 'stream', code: 'unsupported_value' } })
        : { type: 'application/json', body: JSON.stringify(whole({ content: 'Hello!' })) };
    const model = openai();
    expect(await ask(model)).toBe('end: Hello!');
    expect(await ask(model)).toBe('end: Hello!');
    expect(bodies).toHaveLength(3);
    expect(bodies.at(-1)).not.toHaveProperty('stream_options');
  });

  test('ggml-org/llama.cpp#25510, aws-samples/bedrock-access-gateway#258: arguments in the history are always JSON', async () => {
    const strict = ({ messages }: SentBody): boolean =>
      messages.every(({ tool_calls: calls = [] }) => calls.every((one) => typeof JSON.parse(one.function.arguments) === 'object'));
    reply = (body) => (strict(body) ? hi : refusal(500, { error: { message: 'Failed to parse tool call arguments as JSON' } }));
    const odd = [call('a', 'one', null), call('b', 'two', {}), call('c', 'three', 'text')];
    const answers = ['a', 'b', 'c'].map((id) => result(id, 'done', 'ok', 'one'));
    expect(await ask(openai(), { messages: [user('Go.'), says(...odd), ...answers] })).toBe('end: Hi');
  });
});

describe('Ollama', () => {
  const ollama = (): Model => createOllamaModel({ host: url });
  const lines = (...values: readonly object[]): Sent => ({
    type: 'application/x-ndjson',
    body: values.map((value) => `${JSON.stringify(value)}\n`).join(''),
  });

  test.each<[string, Sent, RegExp]>([
    [
      'ollama/ollama#11781: an error under a name that is none',
      lines(
        { message: { role: 'assistant', content: 'I write. ' }, done: false },
        { 'error parsing tool call': "invalid character 'c' looking for beginning of value" },
      ),
      /^(server|broken-stream): .*invalid character 'c'/,
    ],
    [
      'ollama/ollama#17638: the server refuses a call of its own model',
      refusal(500, { error: 'error parsing tool call: raw=\'{"input":"x"}]\', err=invalid character after top-level value' }),
      /^(server|broken-stream): .*error parsing tool call/,
    ],
  ])('%s', async (_report, sent, wanted) => {
    reply = () => sent;
    expect(await ask(ollama())).toMatch(wanted);
  });
});
