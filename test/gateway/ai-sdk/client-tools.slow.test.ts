/** Tools that a page brings, by `useChat` of React, unchanged, in a page (jsdom) against a real gateway and worker. */
import type * as Ai from 'ai';
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../../src/gateway/index.js';
import { callTools, text } from '../../support/provider-apis/reply.js';
import { createStage, resultTexts, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';
import { becomePage, mountChat, window, type Helpers } from './page.js';

const TOKEN = 'a-token-that-only-tests-have';
const headers = { authorization: `Bearer ${TOKEN}` };
const stage = createStage();
let world: World;
let served: ServedGateway;

const weather = {
  description: 'Weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const body = { tools: { weather, choose: { description: 'Asks on the page.' }, wipe: { description: 'Wipes the page.' } } };

beforeAll(async () => {
  world = await startWorld({
    answer: stage.answer,
    tools: [],
    agent: { approvals: [{ tool: 'client__wipe', policy: 'ask' }] },
  });
  becomePage();
  served = await serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port: 0 });
});
afterAll(async () => {
  await served.close();
  await world.close();
  window.close();
});
afterEach(() => expect(world.api.problems).toEqual([]));

interface Page {
  chat(): Helpers;
  /** Cities for which the page's tool ran. */
  readonly ran: string[];
  readonly wiped: string[];
  ready(words: string): Promise<void>;
  close(): void;
}

/** `weather` and `wipe` run by themselves, `choose` waits for a click. */
async function openPage(id: string): Promise<Page> {
  const ai = require('ai') as typeof Ai;
  const [ran, wiped]: [string[], string[]] = [[], []];
  const { chat, close } = await mountChat(id, {
    ...{ url: served.url, token: TOKEN, body },
    init: (own) => ({
      sendAutomaticallyWhen: (state) =>
        ai.lastAssistantMessageIsCompleteWithToolCalls(state) || ai.lastAssistantMessageIsCompleteWithApprovalResponses(state),
      onToolCall({ toolCall: { toolName, toolCallId, input } }) {
        if (toolName === 'wipe') {
          wiped.push(toolCallId);
          void own().addToolOutput({ tool: toolName as never, toolCallId, output: 'wiped' as never });
        }
        if (toolName !== 'weather') return;
        const { city } = input as { city: string };
        ran.push(city);
        void (city === 'Nowhere'
          ? own().addToolOutput({ tool: toolName as never, toolCallId, state: 'output-error', errorText: 'there is no such place' })
          : own().addToolOutput({ tool: toolName as never, toolCallId, output: { rain: true, city } as never }));
      },
    }),
  });
  return {
    chat,
    ran,
    wiped,
    ready: async (words) =>
      void (await waitFor(
        () => texts(chat()),
        (said) => said.includes(words) && chat().status === 'ready',
      )),
    close,
  };
}

const texts = ({ messages }: Helpers): string =>
  messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))).join('|');
const toolParts = ({ messages }: Helpers): object[] =>
  messages.flatMap(({ parts }) => parts.filter(({ type }) => type.startsWith('tool-')) as object[]);
const look = (city: string): { name: string; input: { city: string } } => ({ name: 'client__weather', input: { city } });
const soFar = (request: Parameters<typeof resultTexts>[0]) => text(`So: ${resultTexts(request).join(', ')}`);

test('onToolCall runs the page’s tools, round by round, and each answer goes on with the same message by itself', async () => {
  const id = world.id();
  stage.play(id, { text: 'I look.', ...callTools(look('Oslo'), look('Rome')) }, callTools(look('Nowhere')), soFar);
  const page = await openPage(id);
  await page.chat().sendMessage({ text: say(id, 'look') });
  await page.ready('So: ');
  expect(page.ran).toEqual(['Oslo', 'Rome', 'Nowhere']);
  expect(texts(page.chat())).toContain('So: there is no such place');
  expect(page.chat().messages).toHaveLength(2);
  expect(toolParts(page.chat())).toMatchObject([
    { type: 'tool-weather', state: 'output-available', input: { city: 'Oslo' }, output: { rain: true, city: 'Oslo' } },
    { state: 'output-available', output: { rain: true, city: 'Rome' } },
    { state: 'output-error', errorText: 'there is no such place' },
  ]);
  expect(resultTexts(stage.requests(id)[1])).toEqual(['{"rain":true,"city":"Oslo"}', '{"rain":true,"city":"Rome"}']);
  expect(stage.requests(id)).toHaveLength(3);
  const shown = toolParts(page.chat());
  page.close();

  // A page that is opened later has the same, and runs nothing again.
  const later = await openPage(id);
  await later.ready('So: ');
  const brief = (parts: object[]): unknown[] => parts.map((part) => ({ ...part, providerExecuted: undefined, preliminary: undefined }));
  expect(brief(toolParts(later.chat()))).toEqual(brief(shown));
  expect(later.ran).toEqual([]);
  later.close();
});

test('a page that is closed while its tools are waited for: the one that is opened next runs these, and none that were answered', async () => {
  const id = world.id();
  stage.play(id, callTools(look('Rome')), callTools(look('Oslo'), { name: 'client__choose' }), soFar);
  const first = await openPage(id);
  await first.chat().sendMessage({ text: say(id, 'choose') });
  await waitFor(
    () => world.client.approvals(id),
    (waiting) => waiting.length === 2,
  );
  first.close();
  const second = await openPage(id);
  await waitFor(
    () => [second.ran.length, second.chat().status] as const,
    ([runs, status]) => runs > 0 && status === 'ready',
  );
  expect(second.ran).toEqual(['Oslo']);
  await second.chat().addToolOutput({ tool: 'choose' as never, toolCallId: 'turn_0001/c3', output: '["red"]' as never });
  await second.ready('So: ');
  expect(texts(second.chat())).toContain('So: {"rain":true,"city":"Oslo"}, ["red"]');
  // What the page has given stays as it gave it.
  expect(toolParts(second.chat()).at(-1)).toMatchObject({ type: 'tool-choose', output: '["red"]' });
  expect(second.chat().messages).toHaveLength(2);
  expect(stage.requests(id)).toHaveLength(3);
  second.close();
});

test('a tool that a person must allow first is asked for, and runs on the page after that alone', async () => {
  const id = world.id();
  stage.play(id, callTools({ name: 'client__wipe' }), soFar);
  const page = await openPage(id);
  await page.chat().sendMessage({ text: say(id, 'wipe') });
  expect(page.wiped).toEqual([]);
  expect(toolParts(page.chat())).toMatchObject([{ type: 'tool-wipe', state: 'approval-requested' }]);
  await page.chat().addToolApprovalResponse({ id: 'turn_0001/c1', approved: true });
  await page.ready('So: wiped');
  expect(page.wiped).toEqual(['turn_0001/c1']);
  expect(stage.requests(id)).toHaveLength(2);
  page.close();
});

test('a new message while the page is waited for is refused in words, and a stop ends the wait', async () => {
  const id = world.id();
  stage.play(id, callTools({ name: 'client__choose' }), text('Second.'));
  const page = await openPage(id);
  await page.chat().sendMessage({ text: say(id, 'choose') });
  await page.chat().sendMessage({ text: 'something else' });
  await waitFor(
    () => page.chat().error?.message ?? '',
    (message) => message.includes('choose (turn_0001/c1)'),
  );
  expect((await world.client.status(id)).queued).toBe(0);
  await fetch(`${served.url}/api/chat/${id}/stop`, { method: 'POST', headers });
  await world.client.turn(id, 'turn_0001');
  await page.chat().sendMessage({ text: 'now' });
  await page.ready('Second.');
  page.close();
});

test.each<[string, unknown]>([
  ['a name that no provider takes', { 'a b': {} }],
  ['two of one name', [{ name: 'a' }, { name: 'a' }]],
  ['a schema of no object', [{ name: 'a', inputSchema: { type: 'array' } }]],
  ['what is no tool', ['a']],
])('%s is refused', async (_, tools) => {
  const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'x' }] }];
  const response = await fetch(`${served.url}/api/chat`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ id: world.id(), messages, tools }),
  });
  expect(response.status).toBe(400);
});
