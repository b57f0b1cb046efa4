/** A file that the provider refuses: its turn is answered without it, and the conversation goes on. */
import { httpError } from '../support/provider-apis/faults.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { text, type Reply } from '../support/provider-apis/reply.js';
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
