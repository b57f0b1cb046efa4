/** Workers, stores, servers and gateways end in the middle of a stream: its readers come back, and have the whole answer once. */
import { Redis } from 'ioredis';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { createAnswerParts } from '../../src/gateway/core/answer-parts.js';
import type { TurnEvent } from '../../src/gateway/core/follow-turn.js';
import { oneToken } from '../../src/gateway/access/tokens.js';
import { gate, text } from '../support/provider-apis/reply.js';
import { sceneTest, until, type Scene } from '../support/scene.js';

const TOKEN = 'a-token-that-only-tests-have';
const ANSWER = 'One two three four five six seven eight nine ten eleven twelve, and a last word: déjà vu 🎉.';
const REDIS = { redis: true, impatient: true };

const gatewayOf = ({ client }: Scene): GatewayApp => createGateway({ client, authenticate: oneToken(TOKEN), requestsPerMinute: 100_000 });

interface Frame {
  readonly id?: string;
  readonly event: string;
  readonly data: string;
}

/** A client of server-sent events, which notes where it was. */
async function* framesOf(response: Response): AsyncGenerator<Frame> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    const frames = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames) {
      const fields = Object.fromEntries(
        frame.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      if (fields['event'] !== undefined)
        yield { event: fields['event'], data: fields['data'] ?? '', ...(fields['id'] !== undefined && { id: fields['id'] }) };
    }
  }
}

function ask(app: GatewayApp, method: string, path: string, headers: Record<string, string> = {}, body?: unknown): Promise<Response> {
  return Promise.resolve(
    app.request(`http://localhost${path}`, {
      method,
      headers: {
        host: 'localhost',
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json',
        accept: 'text/event-stream',
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
  );
}

/** What a reader drew of the last call, by the rules of answer-parts, and the ends that it saw. */
class Reader {
  readonly ends: string[] = [];
  lastEventId: string | undefined;
  readonly events: TurnEvent[] = [];

  take({ id, event, data }: Frame): void {
    if (id !== undefined) this.lastEventId = id;
    if (event === 'submitted' || event === 'error') return;
    const taken = JSON.parse(data) as TurnEvent;
    this.events.push(taken);
    if (taken.kind === 'turn-finished') this.ends.push(taken.result.text);
  }

  get drawn(): string {
    const parts = createAnswerParts();
    const texts = new Map<string, string>();
    for (const event of this.events.flatMap((one) => [...parts.take(one)])) {
      if (event.kind === 'begin' && event.of === 'text') texts.set(event.part, '');
      if (event.kind === 'grow' && event.of === 'text') texts.set(event.part, (texts.get(event.part) ?? '') + event.text);
      if (event.kind === 'void') for (const part of event.parts) texts.delete(part);
    }
    return [...texts.values()].join('');
  }

  /** Follows the turn to its end, by as many connections as that takes. */
  async follow(app: () => GatewayApp, id: string, turn = 'turn_0001'): Promise<void> {
    await until(
      'the end of the turn',
      async () => {
        const headers = this.lastEventId === undefined ? undefined : { 'last-event-id': this.lastEventId };
        const response = await ask(app(), 'GET', `/v1/conversations/${id}/turns/${turn}/events`, headers);
        if (response.ok) for await (const frame of framesOf(response)) this.take(frame);
        return this.ends.length > 0;
      },
      80_000,
    );
  }
}

/** Sends, reads until a part of the answer is there, and leaves. */
async function beginToRead(app: GatewayApp, id: string, reader: Reader): Promise<void> {
  const response = await ask(app, 'POST', `/v1/conversations/${id}/messages`, {}, { id: 'm1', text: 'count', start: {} });
  for await (const frame of framesOf(response)) {
    reader.take(frame);
    if (frame.event === 'text') break;
  }
}

function endsWell(reader: Reader): void {
  expect(reader.ends).toEqual([ANSWER]);
  expect(reader.drawn).toBe(ANSWER);
}

/** In the middle of the answer: one stays, and one has left and comes back. */
async function twoReaders(app: GatewayApp, id: string): Promise<{ endWell(): Promise<void> }> {
  const back = new Reader();
  await beginToRead(app, id, back);
  const stayed = new Reader();
  const staying = stayed.follow(() => app, id);
  await until('a part of the answer', () => stayed.events.some(({ kind }) => kind === 'text'));
  return {
    async endWell() {
      await Promise.all([staying, back.follow(() => app, id)]);
      endsWell(stayed);
      endsWell(back);
    },
  };
}

sceneTest('kill -9 of the worker: a reader that stayed and one that came back have the whole answer, once', REDIS, async (scene) => {
  scene.api.play({ reply: { ...text(ANSWER), hold: gate({ chars: 20 }) } }, { reply: text(ANSWER) });
  const [app, id] = [gatewayOf(scene), scene.id()];
  const first = await scene.startWorker();
  const readers = await twoReaders(app, id);
  await first.kill();
  await scene.startWorker();
  await readers.endWell();
  expect(scene.api.hits).toHaveLength(2);
});

sceneTest('kill -9 of Redis in the middle of a stream: both have the whole answer, once', REDIS, async (scene) => {
  const held = gate({ chars: 20 });
  scene.api.play({ reply: { ...text(ANSWER), hold: held } });
  const [app, id] = [gatewayOf(scene), scene.id()];
  await scene.startWorker();
  const readers = await twoReaders(app, id);
  await scene.redis.kill();
  held.release();
  await scene.restartRedis();
  await readers.endWell();
});

sceneTest(
  'kill -9 of Temporal in the middle of a stream: both have the whole answer, once',
  { ...REDIS, ownTemporal: true },
  async (scene) => {
    const held = gate({ chars: 20 });
    scene.api.play({ reply: { ...text(ANSWER), hold: held } }, { reply: text(ANSWER) });
    const [app, id] = [gatewayOf(scene), scene.id()];
    await scene.startWorker();
    const readers = await twoReaders(app, id);
    await scene.killTemporal();
    held.release();
    await scene.restartTemporal();
    await readers.endWell();
  },
  120_000,
);

sceneTest('a gateway that dies while it sends: the same id through another one is one turn', REDIS, async (scene) => {
  const held = gate({ chars: 20 });
  scene.api.play({ reply: { ...text(ANSWER), hold: held } });
  const id = scene.id();
  await scene.startWorker();
  const dying = new AbortController();
  const first = createGateway({ client: scene.client, authenticate: oneToken(TOKEN), closing: dying.signal });
  const begun = new Reader();
  const reading = beginToRead(first, id, begun);
  await held.reached;
  dying.abort();
  await reading;
  const second = gatewayOf(scene);
  const again = new Reader();
  const response = await ask(second, 'POST', `/v1/conversations/${id}/messages`, {}, { id: 'm1', text: 'count', start: {} });
  held.release();
  for await (const frame of framesOf(response)) again.take(frame);
  endsWell(again);
  await begun.follow(() => second, id);
  endsWell(begun);
  expect(scene.api.hits).toHaveLength(1);
  expect((await scene.client.status(id)).turns).toBe(1);
});

sceneTest('more readers of one turn than Temporal lets wait: all have its end', REDIS, async (scene) => {
  const held = gate({ chars: 20 });
  scene.api.play({ reply: { ...text(ANSWER), hold: held } });
  const [app, id] = [gatewayOf(scene), scene.id()];
  await scene.startWorker();
  await beginToRead(app, id, new Reader());
  const readers = Array.from({ length: 24 }, () => new Reader());
  const all = Promise.all(readers.map((reader) => reader.follow(() => app, id)));
  await until('a part of the answer everywhere', () => readers.every(({ events }) => events.length > 0));
  held.release();
  await all;
  for (const reader of readers) endsWell(reader);
});

sceneTest('a feed that is lost in the middle of a stream: the whole answer comes at the end, once', REDIS, async (scene) => {
  const held = gate({ chars: 20 });
  scene.api.play({ reply: { ...text(ANSWER), hold: held } });
  const [app, id] = [gatewayOf(scene), scene.id()];
  await scene.startWorker();
  const readers = await twoReaders(app, id);
  const redis = new Redis(scene.redis.url);
  const feeds = await redis.keys('*feed*');
  expect(await redis.del(...feeds)).toBeGreaterThan(0);
  redis.disconnect();
  held.release();
  await readers.endWell();
});
