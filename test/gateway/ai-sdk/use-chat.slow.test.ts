/** `useChat` of React, unchanged, in a page (jsdom) against a real gateway and worker: a page is closed and opened again mid-answer. */
import type * as Ai from 'ai';
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../../src/gateway/index.js';
import { askUser } from '../../../src/tools/builtin/conversation-tools.js';
import { gate, callTool, text } from '../../support/provider-apis/reply.js';
import { createStage, resultTexts, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';
import { becomePage, mountChat, window, type Helpers } from './page.js';

const TOKEN = 'a-token-that-only-tests-have';
const stage = createStage();
let world: World;
let served: ServedGateway;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [askUser] });
  becomePage();
  served = await serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port: 0 });
});
afterAll(async () => {
  await served.close();
  await world.close();
  window.close();
});

interface Page {
  chat(): Helpers;
  close(): void;
}

function openPage(id: string): Promise<Page> {
  const { lastAssistantMessageIsCompleteWithToolCalls: isAnswered } = require('ai') as typeof Ai;
  return mountChat(id, { url: served.url, token: TOKEN, init: () => ({ sendAutomaticallyWhen: isAnswered }) });
}

const lines = ({ chat }: Page): string[] =>
  chat().messages.map(
    ({ id, role, parts }) => `${role} ${id}: ${parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('|')}`,
  );

test('a page that is opened again in the middle of an answer shows it once, to its end', async () => {
  const id = world.id();
  const held = gate({ chars: 10 });
  stage.play(id, text('Hello.'), { ...text('One two three four five.'), hold: held });
  const first = await openPage(id);
  await first.chat().sendMessage({ text: say(id, 'hi') });
  void first.chat().sendMessage({ text: 'count' });
  await held.reached;
  await waitFor(
    () => lines(first).at(-1),
    (line) => line?.includes('One') === true,
  );
  await first.chat().stop();
  first.close();

  const second = await openPage(id);
  await waitFor(
    () => second.chat().status,
    (status) => status === 'streaming',
  );
  held.release();
  await waitFor(
    () => second.chat().status,
    (status) => status === 'ready',
  );
  const [hi, , count] = second.chat().messages.map(({ id: own }) => own);
  expect(lines(second)).toEqual([
    `user ${hi}: ${say(id, 'hi')}`,
    'assistant turn_0001: Hello.',
    `user ${count}: count`,
    'assistant turn_0002: One two three four five.',
  ]);
  expect(
    first
      .chat()
      .messages.filter(({ role }) => role === 'user')
      .map(({ id: own }) => own),
  ).toEqual([hi, count]);
  second.close();
});

test('a question is answered by the page, and the answer goes on by itself', async () => {
  const id = world.id();
  stage.play(id, callTool('ask_user', { question: 'Which?' }), (request) => text(`So: ${resultTexts(request).join()}`));
  const page = await openPage(id);
  await page.chat().sendMessage({ text: say(id, 'paint') });
  const part = page
    .chat()
    .messages.at(-1)
    ?.parts.find(({ type }) => type === 'tool-ask_user');
  expect(part).toMatchObject({ state: 'input-available', input: { question: 'Which?' } });
  await page.chat().addToolOutput({ tool: 'ask_user' as never, toolCallId: 'turn_0001/c1', output: 'Blue' as never });
  await waitFor(
    () => lines(page).at(-1) ?? '',
    (line) => line.includes('So: ') && page.chat().status === 'ready',
  );
  expect(lines(page)).toHaveLength(2);
  expect(stage.requests(id)).toHaveLength(2);
  page.close();
});
