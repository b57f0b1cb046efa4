/** The AI SDK's own transport and reader, unchanged, over a socket, with a real worker. */
import { DefaultChatTransport, readUIMessageStream, type UIMessage, type UIMessageChunk } from 'ai';
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../../src/gateway/index.js';
import { askUser } from '../../../src/tools/builtin/conversation-tools.js';
import { callTool, callTools, gate, text } from '../../support/provider-apis/reply.js';
import { createStage, resultTexts, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';
import { createLookAndPay, LONG } from '../look-and-pay.js';

const TOKEN = 'a-token-that-only-tests-have';
const { tools, paid } = createLookAndPay();
const stage = createStage();
let world: World;
let served: ServedGateway;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [...tools, askUser] });
  served = await serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port: 0 });
});
afterAll(async () => {
  await served.close();
  await world.close();
});
afterEach(() => expect(world.api.problems).toEqual([]));

const transport = (token = TOKEN): DefaultChatTransport<UIMessage> =>
  new DefaultChatTransport({ api: `${served.url}/api/chat`, headers: { authorization: `Bearer ${token}` } });

const user = (id: string, words: string, ...more: UIMessage['parts']): UIMessage => ({
  id,
  role: 'user',
  parts: [...more, { type: 'text', text: words }],
});

interface Sent {
  readonly trigger?: 'submit-message' | 'regenerate-message';
  readonly messageId?: string;
  readonly abortSignal?: AbortSignal;
}

const send = (chatId: string, messages: UIMessage[], { trigger = 'submit-message', messageId, abortSignal }: Sent = {}) =>
  transport().sendMessages({ chatId, messages, trigger, messageId, abortSignal });

/** As a page shows it: the message after the last of its changes. */
async function shown(stream: ReadableStream<UIMessageChunk> | null, message?: UIMessage): Promise<UIMessage> {
  let last: UIMessage | undefined;
  if (stream === null) throw new Error('there is no stream');
  for await (const one of readUIMessageStream({ stream, message: structuredClone(message), terminateOnError: true })) last = one;
  if (last === undefined) throw new Error('nothing was shown');
  return last;
}

/** The parts of a message up to its last answer, where the model has thought, spoken and looked twice. */
const LOOKED = ['step-start', 'reasoning', 'text', 'tool-look', 'tool-look', 'step-start'];

const texts = (message?: UIMessage): string[] => (message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : []));

const words = ({ parts }: UIMessage): string =>
  parts.flatMap((part) => (part.type === 'text' && part.providerMetadata?.['perdura']?.['void'] !== true ? [part.text] : [])).join('|');

/** They may start in any order. */
const calls = ({ parts }: UIMessage): UIMessage['parts'] =>
  parts.flatMap((part) => ('toolCallId' in part ? [part] : [])).sort((one, other) => one.toolCallId.localeCompare(other.toolCallId));

const history = async (id: string): Promise<UIMessage[]> => {
  const response = await fetch(`${served.url}/api/chat/${id}/messages`, { headers: { authorization: `Bearer ${TOKEN}` } });
  return (await response.json()) as UIMessage[];
};

const stop = (id: string): Promise<Response> =>
  fetch(`${served.url}/api/chat/${id}/stop`, { method: 'POST', headers: { authorization: `Bearer ${TOKEN}` } });

test('a message is thought about, looked up and answered; the same id again is the same turn; history has what the stream had', async () => {
  const id = world.id();
  stage.play(
    id,
    {
      thinking: { text: 'Let me look.', signature: 'signed' },
      text: 'I look.',
      toolCalls: [
        { name: 'look', input: { at: LONG } },
        { name: 'look', input: { at: 'nothing' } },
      ],
    },
    text('All is ', 'well.'),
  );
  const message = await shown(await send(id, [user('m1', say(id, 'how is it?'))]));
  expect(message).toMatchObject({ id: 'turn_0001', role: 'assistant', metadata: { turn: 'turn_0001', stopReason: 'end' } });
  expect(message.parts.map(({ type }) => type)).toEqual([...LOOKED, 'text', 'data-usage']);
  expect(calls(message)).toMatchObject([
    { state: 'output-available', input: { at: LONG }, output: `${LONG} ${LONG}` },
    { state: 'output-error', input: { at: 'nothing' }, errorText: expect.stringContaining('there is nothing') },
  ]);
  expect(words(message)).toBe('I look.|All is well.');

  const again = await shown(await send(id, [user('m1', say(id, 'how is it?'))]));
  expect(words(again)).toBe('I look.|All is well.');
  expect(again.id).toBe('turn_0001');
  expect(stage.requests(id)).toHaveLength(2);

  const [said, answer] = await history(id);
  expect(said).toMatchObject({ id: 'm1', role: 'user', parts: [{ type: 'text', text: say(id, 'how is it?') }] });
  expect(answer?.id).toBe('turn_0001');
  expect(answer?.parts.map(({ type }) => type)).toEqual([...LOOKED, 'text', 'text']);
});

test('a page that was closed comes back to the running turn, from its beginning; when nothing runs there is nothing to resume', async () => {
  const id = world.id();
  expect(await transport().reconnectToStream({ chatId: id })).toBeNull();
  const held = gate({ chars: 10 });
  stage.play(id, { ...text('One two three four five.'), hold: held });
  const closed = new AbortController();
  const first = (await send(id, [user('m1', say(id, 'count'))], { abortSignal: closed.signal })).getReader();
  await held.reached;
  await first.read();
  closed.abort();
  const resumed = await transport().reconnectToStream({ chatId: id });
  const seen = shown(resumed);
  held.release();
  expect(words(await seen)).toBe('One two three four five.');
  expect((await world.client.turn(id, 'turn_0001')).stopReason).toBe('end');
  expect(await transport().reconnectToStream({ chatId: id })).toBeNull();
});

test('a failed attempt is marked void where it was shown, and is not there for who comes later', async () => {
  const id = world.id();
  const held = gate({ chars: 6 });
  stage.play(
    id,
    { ...text('Half of it is lost'), chunks: { size: 6, delayMs: 150 }, fault: { kind: 'reset', at: 'before-block-stop' } },
    { ...text('Whole, this time.'), hold: held },
  );
  const live: UIMessage[] = [];
  const stream = await send(id, [user('m1', say(id, 'go'))]);
  const ended = (async () => {
    for await (const one of readUIMessageStream({ stream, terminateOnError: true })) live.push(one);
  })();
  await waitFor(
    () => texts(live.at(-1)).length,
    (count) => count === 2,
  );
  const late = shown(await transport().reconnectToStream({ chatId: id }));
  held.release();
  await ended;
  expect(texts(live.at(-1))).toEqual(['Half of it is lost', 'Whole, this time.']);
  expect(words(live.at(-1) as UIMessage)).toBe('Whole, this time.');
  expect(texts(await late)).toEqual(['Whole, this time.']);
});

test('stop is a route of its own: what was said stays', async () => {
  const id = world.id();
  const held = gate({ chars: 10 });
  stage.play(id, { ...text('One two three four five.'), hold: held });
  const seen = shown(await send(id, [user('m1', say(id, 'count'))]));
  await held.reached;
  expect((await stop(id)).status).toBe(204);
  const message = await seen;
  held.release();
  expect(message.metadata).toMatchObject({ stopReason: 'interrupted' });
  expect('One two three four five.'.startsWith(words(message))).toBe(true);
});

test('approvals: asked together, one allowed and one refused, and the turn goes on in the same message', async () => {
  const id = world.id();
  stage.play(id, callTools({ name: 'pay', input: { to: 'Ada', note: LONG } }, { name: 'pay', input: { to: 'Bob' } }), (request) =>
    text(`Results: ${resultTexts(request).join('; ')}`),
  );
  const first = user('m1', say(id, 'pay them'));
  const asked = await shown(await send(id, [first]));
  expect(calls(asked)).toMatchObject([
    { state: 'approval-requested', input: { to: 'Ada', note: LONG } },
    { state: 'approval-requested', input: { to: 'Bob' } },
  ]);
  expect(paid).toEqual([]);

  const answered = structuredClone(asked) as { id: string; role: 'assistant'; parts: Record<string, unknown>[] };
  for (const part of answered.parts.filter(({ type }) => type === 'tool-pay')) {
    const isAda = (part['input'] as { to: string }).to === 'Ada';
    part['state'] = 'approval-responded';
    part['approval'] = { ...(part['approval'] as object), approved: isAda, ...(!isAda && { reason: 'not him' }) };
  }
  const page = answered as unknown as UIMessage;
  const done = await shown(await send(id, [first, page], { messageId: page.id }), page);
  expect(done.id).toBe(asked.id);
  expect(calls(done)).toMatchObject([{ state: 'output-available', output: 'paid Ada' }, { state: 'output-denied' }]);
  expect(words(done)).toContain('Results: paid Ada; ');
  expect(words(done)).toContain('not him');
  expect(paid).toEqual([{ to: 'Ada', note: LONG }]);
  expect(done.metadata).toMatchObject({ stopReason: 'end' });

  // Said twice, it is decided once.
  expect(words(await shown(await send(id, [first, page]), page))).toBe(words(done));
  expect(paid).toHaveLength(1);
});

test('an approval counts for the arguments that the page has shown', async () => {
  const id = world.id();
  stage.play(id, callTool('pay', { to: 'Ada' }));
  const first = user('m1', say(id, 'pay'));
  const asked = await shown(await send(id, [first]));
  const parts = asked.parts.map((part) =>
    part.type === 'tool-pay'
      ? { ...part, state: 'approval-responded', input: { to: 'Eve' }, approval: { id: 'turn_0001/c1', approved: true } }
      : part,
  );
  await expect(send(id, [first, { ...asked, parts } as UIMessage])).rejects.toThrow(/other arguments/);
  expect(await world.client.approvals(id)).toHaveLength(1);
});

test('a question is answered as a tool of the client, and what waits is shown again to a page that comes back', async () => {
  const id = world.id();
  stage.play(id, callTool('ask_user', { question: 'Which colour?' }), (request) => text(`So: ${resultTexts(request).join()}`));
  const first = user('m1', say(id, 'paint'));
  const asked = await shown(await send(id, [first]));
  expect(asked.parts.at(-1)).toMatchObject({ type: 'tool-ask_user', state: 'input-available', providerExecuted: false });
  const back = await shown(await transport().reconnectToStream({ chatId: id }));
  expect(back.parts).toEqual(asked.parts);
  const parts = asked.parts.map((part) => (part.type === 'tool-ask_user' ? { ...part, state: 'output-available', output: 'Blue' } : part));
  const page = { ...asked, parts } as UIMessage;
  const done = await shown(await send(id, [first, page]), page);
  expect(words(done)).toContain('So: ');
  expect(words(done)).toContain('Blue');
  expect(done.parts.find(({ type }) => type === 'tool-ask_user')).toMatchObject({ state: 'output-available', providerExecuted: true });
});

test('regenerate answers anew, and an edited message is said in place of the old one; the page keeps its ids', async () => {
  const id = world.id();
  stage.play(id, text('First.'), text('Second.'), text('Third.'), text('Fourth.'));
  const [one, two] = [user('m1', say(id, 'one')), user('m2', 'two')];
  const first = await shown(await send(id, [one]));
  expect(words(await shown(await send(id, [one], { trigger: 'regenerate-message', messageId: first.id })))).toBe('Second.');
  expect(words(await shown(await send(id, [one], { trigger: 'regenerate-message' })))).toBe('Third.');
  expect((await history(id)).map(({ id: own }) => own)).toEqual(['m1', 'turn_0003']);
  stage.play(id, text('Fifth.'));
  expect(words(await shown(await send(id, [one, two])))).toBe('Fourth.');
  const edited = user('m1', say(id, 'another'));
  expect(words(await shown(await send(id, [edited], { messageId: 'm1' })))).toBe('Fifth.');
  expect((await history(id)).map(({ parts }) => parts.find((part) => part.type === 'text')?.text)).toEqual([say(id, 'another'), 'Fifth.']);
});

test('a picture of the message reaches the model', async () => {
  const id = world.id();
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const message = user('m1', say(id, 'what is it?'), { type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${png}` });
  await shown(await send(id, [message]));
  expect(JSON.stringify(stage.requests(id)[0])).toContain(png);
  expect((await history(id))[0]?.parts[0]).toEqual({ type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${png}` });
});

test('a turn that fails shows its error, and refusals are words that a page can show', async () => {
  const id = world.id();
  stage.play(id, { fault: { kind: 'status', status: 400, type: 'invalid_request_error', message: 'not like this' } });
  const chunks: UIMessageChunk[] = [];
  for await (const chunk of (await send(id, [user('m1', say(id, 'go'))])) as unknown as AsyncIterable<UIMessageChunk>) chunks.push(chunk);
  expect(chunks.slice(-2)).toMatchObject([
    { type: 'finish', finishReason: 'error', messageMetadata: { stopReason: 'failed' } },
    { type: 'error', errorText: expect.stringContaining('not like this') },
  ]);
  const wrong = transport('wrong').sendMessages({
    chatId: id,
    messages: [user('m2', 'x')],
    trigger: 'submit-message',
    messageId: undefined,
    abortSignal: undefined,
  });
  await expect(wrong).rejects.toThrow(/^this token opens nothing/);
  await expect(send(id, [])).rejects.toThrow(/^messages: /);
  await expect(send(id, [user('', '')])).rejects.toThrow(/^message\.id must be/);
  const pdf = { type: 'file', mediaType: 'application/pdf', url: 'data:application/pdf;base64,AAAA' } as const;
  await expect(send(id, [user('m3', 'read', pdf)])).rejects.toThrow(/application\/pdf/);
});

test('any string is the id of a chat', async () => {
  const id = world.id();
  const chatId = `chat/${id}?ü`;
  expect(words(await shown(await send(chatId, [user('m1', say(id, 'hi'))])))).toBe('Understood.');
  expect(await transport().reconnectToStream({ chatId })).toBeNull();
});

test('broken JSON, and more of it than a request may have, are refused in words', async () => {
  const post = async (body: string): Promise<unknown[]> => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const response = await fetch(`${served.url}/api/chat`, { method: 'POST', headers, body });
    return [response.status, response.headers.get('content-type'), await response.text()];
  };
  expect(await post('{"id":')).toEqual([400, expect.stringContaining('text/plain'), 'the body is no JSON']);
  expect(await post(`"${'x'.repeat(9 * 1024 * 1024)}"`)).toEqual([
    413,
    expect.stringContaining('text/plain'),
    expect.stringContaining('bytes'),
  ]);
});
