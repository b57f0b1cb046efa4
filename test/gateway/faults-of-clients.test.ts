/**
 * kill -9 of everything there is, while three unmodified clients stream from a gateway in a process of its own: server-sent events with
 * Last-Event-ID, the AI SDK's transport, and OpenAI's Responses with `starting_after`. Each comes back and ends with the whole answer; one
 * that never comes back leaves nothing.
 */
import { DefaultChatTransport, readUIMessageStream, type UIMessage, type UIMessageChunk } from 'ai';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import OpenAI from 'openai';
import { Redis } from 'ioredis';
import { readResponseId } from '../../src/gateway/openai/response-id.js';
import { answerText } from '../../src/records/message.js';
import { ask, beginToRead, Reader, TOKEN, type Asking } from '../support/event-reader.js';
import { gate, text, type Gate } from '../support/provider-apis/reply.js';
import { LONG, sceneTest, until, type GatewayProcess, type Scene, type SceneOptions } from '../support/scene.js';
import type { WorkerProcess } from '../support/worker-process.js';

const ANSWER = 'Один два três 四 five six seven eight nine ten — 🦔 eleven twelve, and a last word: déjà vu.';

interface StreamClient {
  /** Reads until there is a part of the answer, and leaves. */
  begin(): Promise<void>;
  /** Comes back once; true when it has the end. */
  comeBack(): Promise<boolean>;
  /** The text that it shows at the end. */
  final(): string;
  conversation(): string;
}

/** Where the gateway is now. */
type Where = () => GatewayProcess;

const to =
  (where: Where): Asking =>
  (path, init) =>
    fetch(`${where().url}${path}`, init);

function eventClient(where: Where, id: string): StreamClient {
  const reader = new Reader();
  return {
    begin: () => beginToRead(to(where), id, reader),
    async comeBack() {
      await reader.follow(() => to(where), id);
      return true;
    },
    final() {
      expect(reader.ends).toHaveLength(1);
      expect(reader.drawn).toBe(reader.ends[0]);
      return reader.drawn;
    },
    conversation: () => id,
  };
}

function chatClient(where: Where, chatId: string): StreamClient {
  const transport = (): DefaultChatTransport<UIMessage> =>
    new DefaultChatTransport({ api: `${where().url}/api/chat`, headers: { authorization: `Bearer ${TOKEN}` } });
  let last: UIMessage | undefined;
  const read = async (stream: ReadableStream<UIMessageChunk>, enough: (shown: string) => boolean): Promise<void> => {
    for await (const message of readUIMessageStream({ stream, terminateOnError: true })) {
      last = message;
      if (enough(shown())) break;
    }
  };
  const shown = (): string =>
    (last?.parts ?? [])
      .flatMap((part) => (part.type === 'text' && part.providerMetadata?.['perdura']?.['void'] !== true ? [part.text] : []))
      .join('');
  return {
    async begin() {
      const messages: UIMessage[] = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'count' }] }];
      const stream = await transport().sendMessages({
        chatId, messages, trigger: 'submit-message', messageId: undefined, abortSignal: undefined,
      }); // prettier-ignore
      await read(stream, (so) => so !== '');
    },
    async comeBack() {
      const stream = await transport().reconnectToStream({ chatId });
      if (stream !== null) await read(stream, () => false);
      else {
        // Nothing runs any more: a page has loaded what was said.
        const response = await ask(to(where), 'GET', `/v1/conversations/${chatId}/turns/turn_0001`, { accept: 'application/json' });
        const { text: said } = (await response.json()) as { text: string };
        last = { id: 'm2', role: 'assistant', parts: [{ type: 'text', text: said }] };
      }
      return shown() === ANSWER;
    },
    final: shown,
    conversation: () => chatId,
  };
}

function responsesClient(where: Where): StreamClient {
  const openai = (): OpenAI => new OpenAI({ apiKey: TOKEN, baseURL: `${where().url}/v1`, maxRetries: 0 });
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  let id = '';
  return {
    async begin() {
      for await (const event of await openai().responses.create({ model: 'default', input: 'count', stream: true })) {
        events.push(event);
        if (event.type === 'response.created') id = event.response.id;
        if (event.type === 'response.output_text.delta') break;
      }
    },
    async comeBack() {
      const after = events.at(-1)?.sequence_number ?? 0;
      for await (const event of await openai().responses.retrieve(id, { stream: true, starting_after: after })) events.push(event);
      return events.at(-1)?.type === 'response.completed';
    },
    final() {
      expect(events.map(({ sequence_number: n }) => n)).toEqual(events.map((_, at) => at));
      const last = events.at(-1);
      if (last?.type !== 'response.completed') return `ended with ${String(last?.type)}`;
      return last.response.output
        .flatMap((item) => (item.type === 'message' ? item.content : []))
        .map((part) => ('text' in part ? part.text : ''))
        .join('');
    },
    conversation: () => readResponseId(id, 'id').conversation,
  };
}

interface Struck {
  readonly scene: Scene;
  readonly gateway: GatewayProcess;
  readonly worker: WorkerProcess;
  readonly held: Gate;
}

interface Fault {
  readonly what: string;
  readonly options?: SceneOptions;
  /** What is killed, and what comes in its place. Answers the gateway that there is then. */
  readonly strike: (struck: Struck) => Promise<GatewayProcess>;
  /** Model calls of one turn: the worker's death takes its call along. */
  readonly calls?: number;
  /** What other files see less of, with these clients or with others. */
  readonly isLong?: boolean;
}

const FAULTS: readonly Fault[] = [
  {
    what: 'the gateway, and another one takes over',
    isLong: true,
    async strike({ scene, gateway }) {
      const behind = await scene.startGateway();
      await gateway.kill();
      return behind;
    },
  },
  {
    what: 'the gateway, which is started again on its port',
    async strike({ scene, gateway }) {
      await gateway.kill();
      return scene.startGateway({ port: gateway.port });
    },
  },
  {
    what: 'the gateway and the worker',
    isLong: true,
    calls: 2,
    async strike({ scene, gateway, worker, held }) {
      await Promise.all([gateway.kill(), worker.kill()]);
      held.release();
      const [, again] = await Promise.all([scene.startWorker(), scene.startGateway({ port: gateway.port })]);
      return again;
    },
  },
  {
    what: 'Redis, which comes back with its data',
    isLong: true,
    async strike({ scene, gateway }) {
      await scene.redis.kill();
      await scene.restartRedis();
      return gateway;
    },
  },
  {
    what: 'Redis, which comes back without its data',
    async strike({ scene, gateway }) {
      await scene.redis.kill();
      await rm(join(scene.dir, 'redis'), { recursive: true });
      await mkdir(join(scene.dir, 'redis'));
      await scene.restartRedis();
      return gateway;
    },
  },
  {
    what: 'Temporal, which comes back with its database',
    isLong: true,
    options: { ownTemporal: true },
    async strike({ scene, gateway }) {
      await scene.killTemporal();
      await scene.restartTemporal();
      return gateway;
    },
  },
];

async function openStreams(where: Where): Promise<number> {
  const response = await ask(to(where), 'GET', '/metrics', { accept: 'text/plain' });
  return Number(/^perdura_gateway_open_streams (\d+)$/m.exec(await response.text())?.[1] ?? NaN);
}

for (const { what, options, strike, calls = 1 } of FAULTS.filter(({ isLong }) => LONG || isLong !== true)) {
  sceneTest(
    `kill -9 of ${what}: each client comes back, and ends with the whole answer`,
    { redis: true, impatient: true, ...options },
    async (scene) => {
      const held = gate({ chars: 20 });
      scene.api.play(...Array.from({ length: 4 }, () => ({ reply: { ...text(ANSWER), hold: held } })));
      scene.api.play(...Array.from({ length: 8 }, () => ({ reply: text(ANSWER) })));
      const worker = await scene.startWorker();
      let gateway = await scene.startGateway();
      const where: Where = () => gateway;
      const clients = [eventClient(where, scene.id()), chatClient(where, scene.id()), responsesClient(where)];
      const lost = eventClient(where, scene.id());
      await Promise.all([...clients, lost].map((client) => client.begin()));

      gateway = await strike({ scene, gateway, worker, held });
      held.release();
      await Promise.all(clients.map((client) => until('the end of the answer', () => client.comeBack(), 80_000)));

      expect(clients.map((client) => client.final())).toEqual([ANSWER, ANSWER, ANSWER]);
      expect(scene.api.hits).toHaveLength(4 * calls);
      for (const client of [...clients, lost]) {
        const id = client.conversation();
        await until('its only turn', async () => (await scene.client.status(id)).turns === 1);
        const said = async (): Promise<string> => (await scene.client.history(id)).map(({ message }) => answerText(message)).join('');
        await until('what the store has', async () => (await said()) === ANSWER);
      }
      await until('no stream that is open', async () => (await openStreams(where)) === 0);
      const redis = new Redis(scene.redis.url);
      const blocked = async (): Promise<number> => String(await redis.call('CLIENT', 'LIST')).split(' flags=b ').length - 1;
      await until('no reader of a feed', async () => (await blocked()) === 0);
      redis.disconnect();
    },
    150_000,
  );
}
