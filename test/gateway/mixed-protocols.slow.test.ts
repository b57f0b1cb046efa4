/**
 * One conversation, all protocols at once, in sequences by chance: every message that was accepted is answered once, whoever sent it and how
 * often; rewinds, forks, retries and resets do what they say. The model is a list of words and the answers of an echo.
 */
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { responseId } from '../../src/gateway/openai/responses.js';
import { answerTo, echo } from '../support/echo-model.js';
import { framesOf, TOKEN } from '../support/event-reader.js';
import { createRandom, LONG } from '../support/scene.js';
import { startWorld, type World } from '../support/world.js';

const ROUNDS = LONG ? 600 : 30;
let world: World;
let app: GatewayApp;
const faults: string[] = [];

beforeAll(async () => {
  world = await startWorld({ answer: (request) => echo(request) });
  app = createGateway({
    client: world.client,
    authenticate: oneToken(TOKEN),
    requestsPerMinute: 1_000_000,
    log: (line) => faults.push(line),
    agents: () => Promise.resolve(['default']),
  });
});
afterAll(() => world.close());

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const response = await app.request(`http://localhost${path}`, {
    method,
    headers: { host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
  return response;
}
const json = async <T>(...asked: Parameters<typeof ask>): Promise<T> => (await ask(...asked)).json() as Promise<T>;

interface Sent {
  readonly conversation: string;
  readonly messageId: string;
  readonly word: string;
}

/** Sends, and answers with the text that its client shows in the end. */
type Send = (sent: Sent) => Promise<string>;

const path = ({ conversation }: Sent): string => `/v1/conversations/${conversation}`;

/** The end of a turn, as a stream of it shows it. */
async function waitForEnd(response: Response): Promise<string> {
  for await (const { event, data } of framesOf(response)) {
    if (event === 'turn-finished') return (JSON.parse(data) as { result: { text: string } }).result.text;
  }
  throw new Error('the stream ended before its turn');
}

/** Those that name a message by an id take the same id from each other as the same message. */
const BY_ID: Readonly<Record<string, Send>> = {
  async waited(sent) {
    const body = { id: sent.messageId, text: sent.word, start: {} };
    return (await json<{ text: string }>('POST', `${path(sent)}/messages`, body)).text;
  },
  async streamed(sent) {
    const body = { id: sent.messageId, text: sent.word, start: {} };
    return waitForEnd(await ask('POST', `${path(sent)}/messages`, body, { accept: 'text/event-stream' }));
  },
  async leftAndResumed(sent) {
    const body = { id: sent.messageId, text: sent.word, start: {} };
    const response = await ask('POST', `${path(sent)}/messages`, body, { accept: 'text/event-stream' });
    let [turn, last] = ['', '0'];
    for await (const { id, event, data } of framesOf(response)) {
      if (event === 'submitted') turn = (JSON.parse(data) as { turn: string }).turn;
      last = id ?? last;
      if (event !== 'submitted') break;
    }
    return waitForEnd(await ask('GET', `${path(sent)}/turns/${turn}/events`, undefined, { 'last-event-id': last }));
  },
  async enqueued(sent) {
    const body = { id: sent.messageId, text: sent.word, start: {} };
    const { turn } = await json<{ turn: string }>('POST', `${path(sent)}/messages?mode=enqueue`, body);
    return (await json<{ text: string }>('GET', `${path(sent)}/turns/${turn}?wait=60`)).text;
  },
  async chat({ conversation, messageId, word }) {
    const body = { model: 'default', messages: [{ role: 'user', content: word }] };
    const headers = { 'x-perdura-conversation': conversation, 'idempotency-key': messageId };
    const answer = await json<{ choices: { message: { content: string } }[] }>('POST', '/v1/chat/completions', body, headers);
    return answer.choices[0]?.message.content ?? '';
  },
  async responses({ conversation, messageId, word }) {
    const answer = await json<Answered>(
      'POST',
      '/v1/responses',
      { model: 'default', input: word, conversation },
      { 'idempotency-key': messageId },
    );
    return outputOf(answer);
  },
  async mcp({ conversation, messageId, word }) {
    const call = { name: 'send_message', arguments: { conversation, text: word, message_id: messageId } };
    const answer = await ask('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }, {
      accept: 'application/json, text/event-stream',
    }); // prettier-ignore
    const [, data = ''] = /^data: (.*)$/m.exec(await answer.text()) ?? [];
    const { result } = JSON.parse(data) as { result: { content: { text: string }[] } };
    return (JSON.parse(result.content[0]?.text ?? '{}') as { answer: string }).answer;
  },
};

interface Answered {
  readonly id: string;
  readonly output: readonly { readonly content?: readonly { readonly text?: string }[] }[];
}

const outputOf = ({ output }: Answered): string => output.flatMap(({ content }) => content ?? []).map(({ text }) => text ?? '').join(''); // prettier-ignore

const SENDS: Readonly<Record<string, Send>> = {
  ...BY_ID,
  async useChat({ conversation, messageId, word }) {
    const messages = [{ id: messageId, role: 'user', parts: [{ type: 'text', text: word }] }];
    const response = await ask('POST', '/api/chat', { id: conversation, messages, trigger: 'submit-message' });
    const deltas = [...(await response.text()).matchAll(/^data: (\{.*"type":"text-delta".*\})$/gm)];
    return deltas.map(([, data]) => (JSON.parse(data ?? '{}') as { delta: string }).delta).join('');
  },
};

interface Said {
  readonly word: string;
  readonly turn: string;
}

/** What the conversation has, of which each message must have its own answer, once. */
async function saidIn(conversation: string): Promise<Said[]> {
  const { entries } = await json<{ entries: { turn: string; message: { role: string; text?: string; blocks?: { text?: string }[] } }[] }>(
    'GET',
    `/v1/conversations/${conversation}/entries`,
  );
  const said: Said[] = [];
  for (let at = 0; at < entries.length; at += 2) {
    const [question, answer] = [entries[at], entries[at + 1]];
    const word = question?.message.text ?? '';
    expect([question?.message.role, answer?.message.role, answer?.turn]).toEqual(['user', 'assistant', question?.turn]);
    expect((answer?.message.blocks ?? []).map(({ text }) => text ?? '').join('')).toBe(answerTo(word));
    said.push({ word, turn: question?.turn ?? '' });
  }
  return said;
}

const wordsOf = (said: readonly Said[]): string[] => said.map(({ word }) => word);

test('whatever is done through whatever protocol, each message is answered once', async () => {
  const random = createRandom();
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random.next() * all.length)] as T;
  const done: string[] = [];
  let count = 0;
  const conversations = [world.id(), world.id()];
  /** Of each conversation, what is in it now, and what was sent. */
  const model = new Map<string, { said: Said[]; sent: Sent[] }>(conversations.map((id) => [id, { said: [], sent: [] }]));

  const round = async (conversation: string): Promise<void> => {
    const known = model.get(conversation);
    if (!known) return;
    const isEmpty = known.said.length === 0;
    const what = isEmpty ? 0 : random.next();
    const sending = async (name: string, sent: Sent): Promise<void> => {
      done.push(`${conversation.slice(0, 6)} ${name} ${sent.word}`);
      expect(await SENDS[name]?.(sent)).toBe(answerTo(sent.word));
    };
    const fresh = (): Sent => ({ conversation, messageId: `m${(count += 1)}`, word: `w${count}` });
    const unchanged = async (): Promise<void> => expect(await saidIn(conversation)).toEqual(known.said);

    if (what < 0.6) {
      const all = Array.from({ length: isEmpty ? 1 : 1 + Math.floor(random.next() * 3) }, fresh);
      const again = random.next() < 0.3 ? all.slice(0, 1) : [];
      await Promise.all([
        ...all.map((sent) => sending(pick(Object.keys(again.includes(sent) ? BY_ID : SENDS)), sent)),
        ...again.map((sent) => sending(pick(Object.keys(BY_ID)), sent)),
      ]);
      const said = await saidIn(conversation);
      expect(said.slice(0, known.said.length)).toEqual(known.said);
      expect(wordsOf(said.slice(known.said.length)).sort()).toEqual(all.map(({ word }) => word).sort());
      known.said = said;
      known.sent.push(...all);
    } else if (what < 0.68) {
      const old = known.sent.filter(({ word }) => wordsOf(known.said).includes(word));
      if (old.length > 0) await sending(pick(Object.keys(BY_ID)), pick(old));
      await unchanged();
    } else if (what < 0.76) {
      const { turn } = pick(known.said);
      done.push(`${conversation.slice(0, 6)} rewind ${turn}`);
      await json('POST', `/v1/conversations/${conversation}/rewind`, { to: turn });
      known.said = known.said.slice(0, known.said.findIndex((one) => one.turn === turn) + 1);
      await unchanged();
    } else if (what < 0.82) {
      done.push(`${conversation.slice(0, 6)} retry`);
      const { text } = await json<{ text: string }>('POST', `/v1/conversations/${conversation}/retry`, {});
      expect(text).toBe(answerTo(known.said.at(-1)?.word ?? ''));
      const said = await saidIn(conversation);
      expect(wordsOf(said)).toEqual(wordsOf(known.said));
      known.said = said;
    } else if (what < 0.88) {
      const { turn } = pick(known.said);
      const id = world.id();
      done.push(`${conversation.slice(0, 6)} fork ${turn}`);
      await json('POST', `/v1/conversations/${conversation}/fork`, { at: turn, id });
      const upTo = known.said.findIndex((one) => one.turn === turn) + 1;
      expect(wordsOf(await saidIn(id))).toEqual(wordsOf(known.said.slice(0, upTo)));
      await unchanged();
    } else if (what < 0.94) {
      const { turn } = pick(known.said);
      const word = `w${(count += 1)}`;
      done.push(`${conversation.slice(0, 6)} previous ${turn} ${word}`);
      const answer = await json<Answered>('POST', '/v1/responses', {
        model: 'default', input: word, previous_response_id: responseId(conversation, turn),
      }); // prettier-ignore
      expect(outputOf(answer)).toBe(answerTo(word));
      // After the newest turn it goes on there, after another one in a fork.
      if (turn === known.said.at(-1)?.turn) {
        const said = await saidIn(conversation);
        if (said.length > known.said.length) {
          expect(wordsOf(said)).toEqual([...wordsOf(known.said), word]);
          known.said = said;
        }
      }
      await unchanged();
    } else {
      done.push(`${conversation.slice(0, 6)} reset`);
      await ask('POST', `/v1/conversations/${conversation}/${pick(['reset', 'interrupt'])}`, {});
      await unchanged();
    }
  };

  try {
    for (const id of conversations) await json('POST', '/v1/conversations', { id });
    for (let at = 0; at < ROUNDS; at += 1) await Promise.all(conversations.map(round));
    expect(faults).toEqual([]);
    const listed = await json<{ conversations: { id: string }[] }>('GET', '/v1/conversations?limit=200');
    expect(listed.conversations.map(({ id }) => id)).toEqual(expect.arrayContaining(conversations));
  } catch (error) {
    throw new Error(`with PERDURA_SEED=${random.seed}, after\n${done.slice(-30).join('\n')}`, { cause: error });
  }
  process.stderr.write(`  ∎ ${done.length} operations, ${count} messages\n`);
});
