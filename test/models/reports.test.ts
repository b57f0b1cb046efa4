/**
 * What public reports say that servers send in an answer, and what must come of it. A row is a report; the bytes are the reported ones,
 * shortened.
 */
import type { Model } from '../../src/models/model.js';
import { createOllamaModel } from '../../src/models/ollama/client.js';
import { createOpenAIResponsesModel } from '../../src/models/openai/client.js';
import { api, ask, delta, openai, piece, playServer, refusal, sse, whole, type Sent } from './compatible-server.js';

playServer();

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
      'llama.cpp’s server (tools/server/server-common.cpp): no eyes, as a fault of the server',
      refusal(500, {
        error: {
          code: 500,
          message: 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
          type: 'server_error',
        },
      }),
      /^invalid-request: .*image input is not supported/,
    ],
    [
      'llama.cpp’s server: a picture that cannot be read',
      refusal(500, { error: { code: 500, message: 'Failed to load image or audio file', type: 'server_error' } }),
      /^invalid-request: /,
    ],
    [
      'abetlen/llama-cpp-python, its server of 0.3.36 as tried: a file that it does not know, as a fault of the server',
      refusal(500, {
        error: {
          message: "15 validation errors:\n  {'type': 'literal_error', 'loc': ('body', 'messages', 1)}",
          type: 'internal_server_error',
        },
      }),
      /^invalid-request: .*validation errors/,
    ],
    [
      'the same: a picture, in its template',
      refusal(500, { error: { message: 'can only concatenate str (not "list") to str', type: 'internal_server_error' } }),
      /^invalid-request: /,
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
    api.reply = () => sent;
    expect(await ask(openai())).toMatch(wanted);
    expect(api.bodies).toHaveLength(1);
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
    api.reply = () => sent;
    expect(await ask(openai())).toBe(wanted);
    expect(api.bodies).toHaveLength(1);
  });

  test('the same for the Responses API, whole and refused', async () => {
    const model = createOpenAIResponsesModel({ apiKey: 'key-of-a-test', baseURL: `${api.url}/v1` });
    const output = [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello!' }] }];
    api.reply = () => ({ type: 'application/json', body: JSON.stringify({ object: 'response', status: 'completed', output, usage: {} }) });
    expect(await ask(model)).toBe('end: Hello!');
    api.reply = () => ({ type: 'application/json', body: JSON.stringify({ error: { message: 'insufficient balance' } }) });
    expect(await ask(model)).toMatch(/^billing: /);
  });

  test('a stream of many bytes whose first piece is cut inside a letter loses none of them', async () => {
    const text = '吾輩は猫である。'.repeat(500);
    api.reply = () => ({ body: `\n${sse(delta({ content: text }, 'stop')).body}` });
    expect(await ask(openai())).toBe(`end: ${text}`);
  });

  test('vllm-project/vllm#53269: a call that was cut under a good finish reason is no call with half of its input', async () => {
    api.reply = () =>
      sse(piece({ index: 0, id: 'a', function: { name: 'write', arguments: '{"path":"a.txt","con' } }), delta({}, 'tool_calls'));
    const said = await ask(openai());
    expect(said).toMatch(/^tool-calls: write/);
    expect(said).not.toContain('write({"path":"a.txt"})');
  });
});

describe('Ollama', () => {
  const ollama = (): Model => createOllamaModel({ host: api.url });
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
    api.reply = () => sent;
    expect(await ask(ollama())).toMatch(wanted);
  });
});
