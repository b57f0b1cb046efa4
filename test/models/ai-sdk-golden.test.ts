/** What becomes of a conversation in the requests of the AI SDK's packages, and what strict servers say to it. */
import type { ModelFailure, ModelRequest, ModelResponse } from '../../src/models/model.js';
import { normalize } from '../../src/models/normalize.js';
import type { AssistantMessage, ConversationMessage } from '../../src/records/message.js';
import { httpError } from '../support/provider-apis/faults.js';
import { callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { makers, modelOf, type MakerName } from './ai-sdk-makers.js';
import { call, request, result, says, user } from './builders.js';
import { goldenRequest, oddMessages } from './golden.js';
import { KEY, type Api } from './subjects.js';

const names = Object.keys(makers) as MakerName[];
const tools = [{ name: 'write_file', description: 'Writes.', inputSchema: { type: 'object', properties: {} } }];
const thinking = { text: 'I think.', signature: 'c2lnbmF0dXJl' };
const OUT_OF_TURN = "request 1 was refused: 400 Unexpected role 'user' after role 'tool'";

let api: Api;
afterEach(() => api.close());

type Ask = (reply: Reply, parts?: Partial<ModelRequest>) => Promise<ModelResponse>;

/** Asks as a worker does: with a history that is normalized for the provider. */
async function open(name: MakerName): Promise<Ask> {
  api = await makers[name].start();
  const model = modelOf(name, api.url);
  return async (reply, parts = {}) => {
    api.play({ reply });
    const messages = normalize(parts.messages ?? [user('hello')], { provider: name });
    const whole = request({ model: makers[name].model, ...parts, messages });
    return await model.stream(whole, { signal: new AbortController().signal, onDelta: () => {} });
  };
}

const answered = (name: MakerName, { blocks, stop }: ModelResponse): AssistantMessage => ({
  role: 'assistant',
  blocks,
  stop,
  model: `${name}/${makers[name].model}`,
});

const resultsOf = ({ blocks }: ModelResponse): ConversationMessage[] =>
  blocks.flatMap((block) => (block.kind === 'tool-call' ? [result(block.callId, 'done', 'ok', block.name)] : []));

const sent = (n: number): string => JSON.stringify(api.hits.at(n)?.body);

/** One line for each message, and for each field that is no list. */
function lines(body: unknown): string {
  return Object.entries(body as object)
    .flatMap(([field, value]) =>
      Array.isArray(value) ? value.map((one) => `${field}[]: ${JSON.stringify(one)}`) : [`${field}: ${JSON.stringify(value)}`],
    )
    .join('\n');
}

async function golden(name: MakerName): Promise<string> {
  const ask = await open(name);
  await ask(text('You are welcome.'), goldenRequest(makers[name].model));
  expect(api.problems).toEqual(name.startsWith('mistral') ? [OUT_OF_TURN] : []);
  return lines(api.hits.at(-1)?.body);
}

describe('the golden request', () => {
  test('of Bedrock', async () => {
    expect(await golden('bedrock')).toMatchInlineSnapshot(`
     "system[]: {"text":"You are terse."}
     system[]: {"cachePoint":{"type":"default"}}
     messages[]: {"role":"user","content":[{"image":{"format":"png","source":{"bytes":"aGk="}}},{"text":"What is in these?"}]}
     messages[]: {"role":"assistant","content":[{"text":"Let me look."},{"toolUse":{"toolUseId":"9c8b36532","name":"read_file","input":{"path":"a.txt"}}},{"toolUse":{"toolUseId":"9364ad556","name":"read_file","input":{"path":"b.txt"}}}]}
     messages[]: {"role":"user","content":[{"toolResult":{"toolUseId":"9c8b36532","content":[{"text":"hello"}]}},{"toolResult":{"toolUseId":"9364ad556","content":[{"text":"Error: no such file"}]}},{"text":"And?"},{"cachePoint":{"type":"default"}}]}
     messages[]: {"role":"assistant","content":[{"text":"One is not there."}]}
     messages[]: {"role":"user","content":[{"text":"Thanks."},{"cachePoint":{"type":"default"}}]}
     additionalModelResponseFieldPaths[]: "/delta/stop_sequence"
     inferenceConfig: {"maxTokens":1000}
     toolConfig: {"tools":[{"toolSpec":{"name":"read_file","description":"Reads a file.","inputSchema":{"json":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}}]}
     modelId: "us.anthropic.claude-sonnet-4-5-20250929-v1:0""
    `);
  });
  test('of Azure, whose Responses API keeps nothing', async () => {
    expect(await golden('azure')).toMatchInlineSnapshot(`
     "model: "gpt-5-mini"
     input[]: {"role":"developer","content":"You are terse."}
     input[]: {"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk="},{"type":"input_text","text":"What is in these?"}]}
     input[]: {"role":"assistant","content":[{"type":"output_text","text":"Let me look."}]}
     input[]: {"type":"function_call","call_id":"9c8b36532","name":"read_file","arguments":"{\\"path\\":\\"a.txt\\"}"}
     input[]: {"type":"function_call","call_id":"9364ad556","name":"read_file","arguments":"{\\"path\\":\\"b.txt\\"}"}
     input[]: {"type":"function_call_output","call_id":"9c8b36532","output":"hello"}
     input[]: {"type":"function_call_output","call_id":"9364ad556","output":"Error: no such file"}
     input[]: {"role":"user","content":[{"type":"input_text","text":"And?"}]}
     input[]: {"role":"assistant","content":[{"type":"output_text","text":"One is not there."}]}
     input[]: {"role":"user","content":[{"type":"input_text","text":"Thanks."}]}
     max_output_tokens: 1000
     store: false
     include[]: "reasoning.encrypted_content"
     tools[]: {"type":"function","name":"read_file","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"strict":false}
     stream: true"
    `);
  });
  test('of a deployment of Azure', async () => {
    expect(await golden('azure-chat')).toMatchInlineSnapshot(`
     "model: "gpt-4.1"
     max_tokens: 1000
     messages[]: {"role":"system","content":"You are terse."}
     messages[]: {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"text","text":"What is in these?"}]}
     messages[]: {"role":"assistant","content":"Let me look.","tool_calls":[{"id":"9c8b36532","type":"function","function":{"name":"read_file","arguments":"{\\"path\\":\\"a.txt\\"}"}},{"id":"9364ad556","type":"function","function":{"name":"read_file","arguments":"{\\"path\\":\\"b.txt\\"}"}}]}
     messages[]: {"role":"tool","tool_call_id":"9c8b36532","content":"hello"}
     messages[]: {"role":"tool","tool_call_id":"9364ad556","content":"Error: no such file"}
     messages[]: {"role":"user","content":"And?"}
     messages[]: {"role":"assistant","content":"One is not there."}
     messages[]: {"role":"user","content":"Thanks."}
     tools[]: {"type":"function","function":{"name":"read_file","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}
     stream: true
     stream_options: {"include_usage":true}"
    `);
  });
  test('of Vertex', async () => {
    expect(await golden('vertex')).toMatchInlineSnapshot(`
     "generationConfig: {"maxOutputTokens":1000}
     contents[]: {"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}},{"text":"What is in these?"}]}
     contents[]: {"role":"model","parts":[{"text":"Let me look."},{"functionCall":{"name":"read_file","args":{"path":"a.txt"}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"read_file","args":{"path":"b.txt"}},"thoughtSignature":"skip_thought_signature_validator"}]}
     contents[]: {"role":"user","parts":[{"functionResponse":{"name":"read_file","response":{"name":"read_file","content":"hello"}}},{"functionResponse":{"name":"read_file","response":{"name":"read_file","content":"Error: no such file"}}}]}
     contents[]: {"role":"user","parts":[{"text":"And?"}]}
     contents[]: {"role":"model","parts":[{"text":"One is not there."}]}
     contents[]: {"role":"user","parts":[{"text":"Thanks."}]}
     systemInstruction: {"parts":[{"text":"You are terse."}]}
     tools[]: {"functionDeclarations":[{"name":"read_file","description":"Reads a file.","parameters":{"required":["path"],"type":"object","properties":{"path":{"type":"string"}}}}]}
     model: "gemini-3-pro-preview"
     method: "streamGenerateContent""
    `);
  });
  test('of Mistral', async () => {
    expect(await golden('mistral')).toMatchInlineSnapshot(`
     "model: "magistral-medium-latest"
     max_tokens: 1000
     messages[]: {"role":"system","content":"You are terse."}
     messages[]: {"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,aGk="},{"type":"text","text":"What is in these?"}]}
     messages[]: {"role":"assistant","content":"Let me look.","tool_calls":[{"id":"9c8b36532","type":"function","function":{"name":"read_file","arguments":"{\\"path\\":\\"a.txt\\"}"}},{"id":"9364ad556","type":"function","function":{"name":"read_file","arguments":"{\\"path\\":\\"b.txt\\"}"}}]}
     messages[]: {"role":"tool","name":"read_file","tool_call_id":"9c8b36532","content":"hello"}
     messages[]: {"role":"tool","name":"read_file","tool_call_id":"9364ad556","content":"Error: no such file"}
     messages[]: {"role":"assistant","content":"I have read the results."}
     messages[]: {"role":"user","content":[{"type":"text","text":"And?"}]}
     messages[]: {"role":"assistant","content":"One is not there."}
     messages[]: {"role":"user","content":[{"type":"text","text":"Thanks."}]}
     tools[]: {"type":"function","function":{"name":"read_file","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}
     stream: true"
    `);
  });
  test('of version 2 of the interface is that of version 3', async () => {
    const ofV2 = await golden('mistral-v2');
    await api.close();
    expect(ofV2.replace(makers['mistral-v2'].model, makers.mistral.model)).toEqual(await golden('mistral'));
  });
});

describe.each(names)('%s', (name) => {
  test('an answer with thoughts and calls goes back with all that its maker signed', async () => {
    const ask = await open(name);
    const reply = { thinking, text: 'I will.', ...callTools({ name: 'write_file', input: { path: 'a' } }, { name: 'write_file' }) };
    const first = await ask(reply, { tools });
    expect(first.blocks.filter(({ kind }) => kind === 'tool-call')).toHaveLength(2);
    const messages = [user('hello'), answered(name, first), ...resultsOf(first)];
    const second = await ask(text('Done.'), { tools, messages });
    await ask(text('Good.'), { tools, messages: [...messages, answered(name, second), user('And?')] });
    expect(api.problems).toEqual([]);
    const signed = { bedrock: true, azure: true, vertex: true, 'vertex-express': true }[name as string] ?? false;
    expect([sent(1), sent(2)].map((body) => body.includes(thinking.signature))).toEqual([signed, signed]);
  });

  test('goes to another model of the same provider, which takes nothing that the first has signed', async () => {
    const ask = await open(name);
    const first = await ask({ thinking, text: 'I will.', ...callTools({ name: 'write_file' }) }, { tools });
    const model = { bedrock: 'us.amazon.nova-pro-v1:0', azure: 'gpt-6', vertex: 'gemini-3.5-flash' }[name as string] ?? 'gpt-5';
    const changed = { model, tools, messages: [user('hello'), answered(name, first), ...resultsOf(first)] };
    await ask(text('Done.'), changed);
    expect(api.problems).toEqual([]);
    expect(sent(-1)).not.toContain(thinking.signature);
  });

  test('everything that can go wrong with a message is made fit', async () => {
    const ask = await open(name);
    await ask(text('Well.'), { tools, messages: oddMessages });
    expect(api.problems).toEqual([]);
  });

  test('a history of calls is told in words where there are no tools', async () => {
    const ask = await open(name);
    const { messages } = goldenRequest(makers[name].model);
    await ask(text('A summary.'), { messages });
    expect(api.problems).toEqual([]);
    expect(sent(-1)).toContain('no such file');
    expect(sent(-1)).toContain('Called read_file with');
  });

  test('a document goes without words too, and an answer of a schema where there are no tools', async () => {
    const ask = await open(name);
    const documents = [{ mediaType: 'application/pdf', base64: 'JVBERi0xLjc=' }];
    const answerSchema = {
      name: 'verdict',
      schema: { type: 'object', properties: { verdict: { type: 'string' } }, required: ['verdict'] },
    };
    const { blocks } = await ask(text('{"verdict":"yes"}'), { messages: [{ ...user(''), documents }], answerSchema });
    expect(blocks.filter(({ kind }) => kind === 'text')).toEqual([{ kind: 'text', text: '{"verdict":"yes"}' }]);
    expect(sent(-1)).toContain('"verdict"');
    expect(api.problems).toEqual([]);
  });
});

describe('what a server refuses is learnt, and asked no second time', () => {
  test('a user right after a result', async () => {
    const ask = await open('mistral');
    const { messages, tools: offered } = goldenRequest('');
    for (let n = 0; n < 2; n++) await ask(text('Yes.'), { messages, tools: offered });
    expect(api.problems).toEqual([OUT_OF_TURN]);
    expect(api.hits).toHaveLength(3);
  });

  test('a cache that a model does not have', async () => {
    const ask = await open('bedrock');
    const refused = httpError(403, { message: 'You invoked an unsupported model or your request did not allow prompt caching.' });
    api.play({ reply: refused });
    await ask(text('Yes.'));
    await ask(text('Yes.'));
    expect([0, 1, 2].map((n) => sent(n).includes('cachePoint'))).toEqual([true, false, false]);
  });

  test('an answer that would be too long', async () => {
    const ask = await open('bedrock');
    const message =
      'The maximum tokens you requested exceeds the model limit of 500. Try again with a maximum tokens value that is lower than 500.';
    api.play({ reply: httpError(400, { message }) });
    await ask(text('Yes.'));
    expect([0, 1].map((n) => (api.hits[n]?.body as { inferenceConfig: object }).inferenceConfig)).toEqual([
      { maxTokens: 1_000 },
      { maxTokens: 499 },
    ]);
  });

  test('a schema that a model does not take', async () => {
    const ask = await open('azure-chat');
    api.play({
      reply: httpError(400, { message: "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model." }),
    });
    const answerSchema = { name: 'verdict', schema: { type: 'object', properties: { verdict: { type: 'string' } } } };
    await ask(text('Yes.'), { answerSchema });
    expect([0, 1].map((n) => sent(n).includes('json_schema'))).toEqual([true, false]);
  });

  test('a signature that is no more: of one request alone', async () => {
    const ask = await open('bedrock');
    const first = await ask({ thinking, text: 'Yes.' });
    const spoilt = answered('bedrock', {
      ...first,
      blocks: first.blocks.map((block) =>
        'signature' in block ? { ...block, signature: block.signature?.replace('sig-', 'odd-') } : block,
      ),
    });
    await ask(text('No.'), { messages: [user('hello'), spoilt, user('and?')] });
    expect(api.problems).toEqual([expect.stringContaining('Invalid `signature` in `thinking` block')]);
    await ask(text('No.'), { messages: [user('hello'), answered('bedrock', first), user('and?')] });
    expect(sent(-1)).toContain(thinking.signature);
  });

  test('nothing else: a request is made once', async () => {
    const ask = await open('azure');
    await expect(ask(httpError(400, { message: 'wrong' }))).rejects.toMatchObject({ kind: 'invalid-request' });
    expect(api.hits).toHaveLength(1);
  });
});

test('what Bedrock calls its faults is known, over HTTP and in the stream', async () => {
  const ask = await open('bedrock');
  const failing = (reply: Reply): Promise<ModelFailure> =>
    ask(reply).then(
      () => Promise.reject(new Error('no failure')),
      (error: unknown) => error as ModelFailure,
    );
  const named = (type: string, status: number): Reply => ({
    fault: { kind: 'status', status, message: 'no', headers: { 'x-amzn-errortype': `${type}:http://internal.amazon.com/` } },
  });
  expect((await failing(named('ThrottlingException', 400))).kind).toBe('rate-limit');
  expect((await failing(named('ModelErrorException', 424))).kind).toBe('server');
  expect((await failing(named('ExpiredTokenException', 403))).kind).toBe('auth');
  const slow: Reply = { text: 'half', fault: { kind: 'error-event', at: 2, message: 'Too many tokens, please wait before trying again.' } };
  expect((await failing(slow)).kind).toBe('overloaded');
});

test('a wrong name of the limit stays a refusal with its words: the package chooses it by the name of the deployment', async () => {
  api = await makers['azure-chat'].start();
  const model = modelOf('azure-chat', api.url, KEY);
  const asked = model.stream(request({ model: 'none' }), { signal: new AbortController().signal, onDelta: () => {} });
  await expect(asked).rejects.toMatchObject({
    kind: 'not-found',
    message: expect.stringContaining('deployment for this resource does not exist'),
  });
});

test('what is written down stays: calls and names in a form that all of them take', async () => {
  const ask = await open('mistral');
  await ask(text('Yes.'), {
    tools: [{ ...tools[0]!, name: '9lives' }],
    messages: [user('a'), says(call('turn_0001/c1', '9lives')), result('turn_0001/c1', '', 'ok', '9lives')],
  });
  expect(sent(0)).toContain('"_9lives"');
  expect(sent(0)).toMatch(/"tool_call_id":"[a-z0-9]{9}"/);
});
