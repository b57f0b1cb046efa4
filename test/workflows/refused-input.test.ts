/** A file that the provider refuses: its turn is answered without it, and the conversation goes on. */
import { fault, httpError, promptTooLong } from '../support/provider-apis/faults.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { callTool, callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { createStage, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';

/** Base64 of what this provider refuses, and of what it takes. */
const [BAD, GOOD] = ['YmFk', 'Z29vZA=='];
const picture = (base64: string) => ({ mediaType: 'image/png', base64 });

const stage = createStage();
let refusal: (request: ApiRequest) => Reply | undefined = () => undefined;
let asked: ApiRequest[] = [];
let world: World;

beforeAll(async () => {
  world = await startWorld({
    answer: (request) => {
      asked.push(request);
      return refusal(request) ?? stage.answer(request);
    },
  });
});
afterAll(() => world.close());
beforeEach(() => {
  asked = [];
  refusal = (request) => (sent(request).includes(BAD) ? httpError(400, { message: 'Could not process image' }) : undefined);
});

const sent = (request: ApiRequest | undefined): string => JSON.stringify(request?.messages);

test('the message is answered in words, and so are the next ones, each with one request', async () => {
  const id = world.id();
  stage.play(id, text('I cannot see it.'), text('Hello.'));
  expect(await world.client.send(id, { text: say(id, 'what is this?'), images: [picture(BAD)] }, { start: {} })).toMatchObject({
    text: 'I cannot see it.',
    stopReason: 'end',
  });
  expect(asked).toHaveLength(2);
  expect(sent(asked[1])).toContain(
    'A picture (image/png, 1 KB) that the provider could not read, and that is left out: 400 Could not process image',
  );
  expect(await world.client.send(id, say(id, 'hello'))).toMatchObject({ text: 'Hello.' });
  expect(asked).toHaveLength(3);
  expect(sent(asked[2])).toContain(sent(asked[1]).slice(1, -1));
});

test('of several files the one that is refused goes, and the others stay', async () => {
  const id = world.id();
  await world.client.send(id, { text: say(id, 'three'), images: [picture(GOOD), picture(BAD), picture(GOOD)] }, { start: {} });
  expect(asked).toHaveLength(3);
  expect(sent(asked[2]).split(GOOD)).toHaveLength(3);
  expect(sent(asked[2])).not.toContain(BAD);
});

test('of a message that has lost one file, another one that is refused later goes for good too', async () => {
  const id = world.id();
  await world.client.send(id, { text: say(id, 'two'), images: [picture(BAD), picture(GOOD)] }, { start: {} });
  asked = [];
  refusal = (request) => (sent(request).includes('"image"') ? httpError(400, { message: 'no images' }) : undefined);
  await world.client.send(id, say(id, 'another model'));
  expect(asked).toHaveLength(2);
  await world.client.send(id, say(id, 'hello'));
  expect(asked).toHaveLength(3);
  expect(sent(asked[2])).not.toContain(GOOD);
});

test('a file of an earlier message, which another provider had taken, goes with all files, and six requests are the most', async () => {
  const id = world.id();
  refusal = () => undefined;
  await world.client.send(id, { text: say(id, 'first'), images: [picture(BAD)] }, { start: {} });
  asked = [];
  refusal = (request) => (sent(request).includes('"image"') ? httpError(400, { message: 'no images' }) : undefined);
  await world.client.send(id, { text: say(id, 'then'), images: [picture(GOOD), picture(GOOD), picture(GOOD)] });
  expect(asked).toHaveLength(6);
  expect(await world.client.send(id, say(id, 'hello'))).toMatchObject({ stopReason: 'end' });
  expect(asked).toHaveLength(7);
});

test('a request that is refused without its files too is refused as it was, and takes no file away', async () => {
  const id = world.id();
  refusal = () => httpError(400, { message: 'temperature: no' });
  const turn = await world.client
    .send(id, { text: say(id, 'what is this?'), images: [picture(GOOD)] }, { start: {} })
    .catch((error: unknown) => error);
  expect(JSON.stringify(turn) + String(turn)).toContain('temperature');
  refusal = () => undefined;
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ stopReason: 'end' });
  expect(sent(asked.at(-1))).toContain(GOOD);
});

describe('a text that the provider refuses', () => {
  const POISON = 'DROP TABLE students';
  const refuses = (status: number, words: string) => (request: ApiRequest) =>
    sent(request).includes(words) ? httpError(status, { message: 'request was filtered' }) : undefined;

  // A filter of prompts (Azure/azure-sdk-for-net#36354), and a firewall before the provider.
  test.each([400, 403, 422])('costs its own turn (%d), and stands as words in later prompts', async (status) => {
    const id = world.id();
    refusal = refuses(status, POISON);
    await world.client.send(id, say(id, 'hi'), { start: {} });
    const failed: unknown = await world.client.send(id, say(id, POISON)).catch((error: unknown) => error);
    expect(JSON.stringify(failed) + String(failed)).toContain('request was filtered');
    asked = [];
    expect(await world.client.send(id, say(id, 'hello'))).toMatchObject({ stopReason: 'end' });
    // The same once more, since a gateway may err, and then without it.
    expect(asked).toHaveLength(3);
    expect(sent(asked[2])).toContain('A message is left out here, since the provider refused the request with it');
    expect(await world.client.send(id, say(id, 'and again'))).toMatchObject({ stopReason: 'end' });
    expect(asked).toHaveLength(4);
    expect((await world.client.history(id)).some(({ message }) => JSON.stringify(message).includes(POISON))).toBe(true);
  });

  test('in the result of a tool costs that result, and the call is not made again', async () => {
    const id = world.id();
    refusal = refuses(400, '"content":"20');
    stage.play(id, callTool('get_time'), text('I could not read the time.'));
    expect(await world.client.send(id, say(id, 'what time is it?'), { start: {} })).toMatchObject({
      text: 'I could not read the time.',
      toolCalls: 1,
    });
    expect(sent(asked.at(-1))).toContain('The result of get_time is left out, since the provider refused it');
  });

  test('in an answer of its own costs that answer', async () => {
    const id = world.id();
    stage.play(id, text(`Never write ${POISON}.`));
    refusal = refuses(400, POISON);
    await world.client.send(id, say(id, 'what should I never write?'), { start: {} });
    asked = [];
    expect(await world.client.send(id, say(id, 'hello'))).toMatchObject({ stopReason: 'end' });
    expect(await world.client.send(id, say(id, 'hello again'))).toMatchObject({ stopReason: 'end' });
    expect(asked.length).toBeLessThanOrEqual(7);
    expect(sent(asked.at(-1))).not.toContain(POISON);
  });
});

test('a refusal without a reason, of a prompt longer than any before: it is tried once with a shorter one, and the size is learnt', async () => {
  const id = world.id();
  const MOST = 10_500;
  refusal = (request) => (sent(request).length > MOST ? httpError(400, { message: 'bad request' }) : undefined);
  await world.client.send(id, say(id, 'hi'), { start: {} });
  const turns: unknown[] = [];
  for (let at = 0; at < 8; at++) turns.push(await world.client.send(id, say(id, `${at} ${'The ledger of the harbour. '.repeat(70)}`)));
  expect(turns).toEqual(Array.from({ length: 8 }, () => expect.objectContaining({ stopReason: 'end' })));
  const { epoch, assumedBudget, budget } = await world.client.context(id);
  expect(epoch).toBeGreaterThan(1);
  expect(budget).toBeLessThan(assumedBudget ?? 0);
});

test('the size is learnt once in a turn, however many rounds follow', async () => {
  await world.writeAgent('plain', { tools: ['get_time'], memory: { enabled: false } });
  const MOST = 9_000;
  const budgetAfter = async (rounds: number): Promise<number> => {
    const id = world.id();
    let left = 0;
    refusal = (request) => {
      if (sent(request).length > MOST) return httpError(400, { message: 'bad request' });
      return left > 0 && (request.tools?.length ?? 0) > 0 && left-- > 0 ? callTool('get_time') : undefined;
    };
    await world.client.send(id, say(id, 'hi'), { start: { agent: 'plain' } });
    for (let at = 0; at < 3; at++) await world.client.send(id, say(id, `${at} ${'The ledger of the harbour. '.repeat(90)}`));
    left = rounds;
    const turn = await world.client.send(id, say(id, `and ${'The ledger of the harbour. '.repeat(90)}`));
    expect(turn).toMatchObject({ stopReason: 'end', toolCalls: rounds });
    const { budget, assumedBudget } = await world.client.context(id);
    expect(budget).toBeLessThan(assumedBudget ?? 0);
    return budget;
  };
  const [none, many] = [await budgetAfter(0), await budgetAfter(4)];
  expect(many).toBeGreaterThan(none * 0.9);
});

test('one refusal that is not repeated leaves nothing out', async () => {
  const id = world.id();
  await world.client.send(id, say(id, 'hi'), { start: {} });
  const once = [httpError(403, { message: 'blocked by the gateway' })];
  refusal = () => once.shift();
  asked = [];
  expect(await world.client.send(id, say(id, 'hello'))).toMatchObject({ stopReason: 'end' });
  expect(asked).toHaveLength(2);
  expect(sent(asked[1])).not.toContain('left out');
});

test('a prompt that is called too long for another reason is found as others are, once a shorter one has not helped', async () => {
  const id = world.id();
  refusal = (request) => (sent(request).includes('xyzzy') ? promptTooLong() : undefined);
  await world.client.send(id, say(id, 'hi'), { start: {} });
  await world.client.send(id, say(id, 'xyzzy')).catch(() => undefined);
  await world.client.send(id, say(id, 'hello?')).catch(() => undefined);
  expect(await world.client.send(id, say(id, 'hello'))).toMatchObject({ stopReason: 'end' });
});

test('what refused tries have cost is counted, each of them', async () => {
  const id = world.id();
  const usage = { input_tokens: 7, output_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  refusal = (request) =>
    sent(request).includes(BAD) ? { ...fault({ kind: 'error-event', at: 2, type: 'invalid_request_error' }), usage } : undefined;
  stage.play(id, { ...text('Seen.'), usage: { ...usage, output_tokens: 3 } });
  const before = (await world.client.usage()).total.usage.inputTokens;
  await world.client.send(id, { text: say(id, 'two'), images: [picture(BAD), picture(BAD)] }, { start: {} });
  // Three times four attempts, then without one picture, the other, and both.
  expect(asked).toHaveLength(15);
  expect((await world.client.usage()).total.usage.inputTokens - before).toBe(15 * 7);
});

test('a refused result of a tool, and pictures beside it cost no more than six requests', async () => {
  const id = world.id();
  refusal = (request) => (/"tool_result"[^}]*attack/.test(sent(request)) ? httpError(400, { message: 'filtered' }) : undefined);
  stage.play(id, callTools({ name: 'write_file', input: { path: 'attack.txt', content: 'x' } }), text('Hello.'));
  await world.client.send(id, { text: say(id, 'write it'), images: [picture(GOOD)] }, { start: {} }).catch(() => undefined);
  const before = asked.length;
  const answer = await world.client.send(id, { text: say(id, 'hello'), images: [picture(GOOD), picture(GOOD), picture(GOOD)] });
  expect(asked.length - before).toBeLessThanOrEqual(6);
  expect(answer).toMatchObject({ stopReason: 'end' });
  expect(sent(asked.at(-1))).toContain('The result of write_file is left out, since the provider refused it: 400 filtered');
});

test('a server that has no eyes may say so as its own fault (llama.cpp, with 500): the picture goes all the same', async () => {
  const id = world.id();
  const words = 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj';
  refusal = (request) => (sent(request).includes('"image"') ? httpError(500, { message: words }) : undefined);
  expect(await world.client.send(id, { text: say(id, 'what is this?'), images: [picture(GOOD)] }, { start: {} })).toMatchObject({
    stopReason: 'end',
  });
  expect(asked).toHaveLength(2);
});
