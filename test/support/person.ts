/** A person with a canary in every kind of content that the product keeps: to be looked for afterwards, as bytes. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { createEmbedder } from '../../src/models/providers.js';
import type { Embedder } from '../../src/models/embedder.js';
import { scopeParts } from '../../src/records/identity.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { startEmbeddingsApi } from './provider-apis/embeddings-api.js';
import type { ApiRequest } from './provider-apis/api-request.js';
import { callTool, callTools, text, type Gate } from './provider-apis/reply.js';
import { WEBHOOK_EVENTS } from '../../src/records/turn-end.js';
import { startRedis } from './redis-server.js';
import { createStage, say, type Stage } from './stage.js';
import { bytesOfFiles, bytesOfRedis } from './store-bytes.js';
import { waitFor } from './wait-for.js';
import { SECRET, startReceiver } from './webhook-receiver.js';
import { startWorld, type World, type WorldOptions } from './world.js';

/** In these is one, under its name. */
const KINDS = [
  ...(['agentName', 'title', 'userMessage', 'toolInput', 'toolResult', 'longResult', 'modelAnswer', 'approvalNote', 'file'] as const),
  ...(['subAgentTask', 'subAgentAnswer', 'messageOfSecondLife', 'summary', 'fact', 'memoryLine', 'history', 'proposal'] as const),
  ...(['forgotten', 'searchIndex', 'signIn', 'queued', 'schedule', 'upload', 'rewound'] as const),
];
type Kind = (typeof KINDS)[number];
export type Canaries = Readonly<Record<Kind, string>>;

export interface Place {
  readonly world: World;
  readonly stage: Stage;
  /** Of whoever is at work with the tool `work`: lets it end, with a canary in its result. */
  letEnd(): void;
  atWork(): boolean;
  /** Their words are what the models answer that consolidate and summarize their conversations. */
  readonly people: Canaries[];
  /** Where such an answer waits. */
  readonly gates: { consolidation?: Gate; summary?: Gate };
  /** Names and contents of all that the store has. */
  bytes(): Promise<string>;
  /** What of these is in the store, and in what Temporal shows of any workflow, by kind. */
  find(canaries: Canaries, runs: readonly TemporalRun[]): Promise<{ readonly store: string[]; readonly temporal: string[] }>;
  /** Of all workflows of this world, every run. */
  runs(): Promise<TemporalRun[]>;
  close(): Promise<void>;
}

export interface TemporalRun {
  readonly workflowId: string;
  readonly runId: string;
}

export function newCanaries(): Canaries {
  return Object.fromEntries(KINDS.map((kind) => [kind, `canary-${kind}-${randomBytes(12).toString('hex')}`])) as Canaries;
}

export async function startPlace(kind: 'files' | 'redis', options: WorldOptions = {}): Promise<Place> {
  const stage = createStage({ by: 'last' });
  const redis = kind === 'redis' ? await startRedis() : undefined;
  const receiver = await startReceiver();
  const embeddings = await startEmbeddingsApi({ means: (word) => word });
  let isAtWork = false;
  let letEnd: () => void = () => undefined;
  /** Of the person whose conversation makes the request. */
  const aside = (request: ApiRequest): ReturnType<typeof text> | undefined => {
    const all = JSON.stringify([request.system, request.messages]);
    const of = (of: Kind): string => people.find((canaries) => all.includes(canaries.userMessage))?.[of] ?? 'nothing special';
    if (all.includes('You are a memory consolidation agent')) {
      const history_entry = `[2026-11-24 10:00] They spoke of ${of('history')}.`;
      const answer = text(JSON.stringify({ history_entry, memory_update: `# Memory\n\n- They like ${of('proposal')}.\n` }));
      return gates.consolidation ? { ...answer, hold: gates.consolidation } : answer;
    }
    if (!all.includes('You condense a part of a conversation')) return undefined;
    const answer = text(
      JSON.stringify({
        episodic: { summary: `They spoke of ${of('summary')}.`, tags: ['harbour'], salience: 0.7 },
        semantic: [{ fact: `They prefer ${of('fact')}.`, tags: ['preference'], confidence: 0.9, salience: 0.8 }],
      }),
    );
    return gates.summary ? { ...answer, hold: gates.summary } : answer;
  };
  const gates: Place['gates'] = {};
  const people: Canaries[] = [];
  const world = await startWorld({
    answer: stage.answer,
    aside,
    redisUrl: redis?.url,
    tools: [
      ...builtinTools,
      defineTool({
        name: 'look_up',
        description: 'Looks something up.',
        input: z.object({ what: z.string(), times: z.number(), answer: z.string() }),
        policy: { repeatable: true },
        run: ({ answer, times }) => `${answer} in a text. `.repeat(times),
      }),
      defineTool({
        name: 'pay',
        description: 'Pays.',
        input: z.object({ euros: z.number() }),
        policy: { approval: 'ask' },
        run: ({ euros }) => `paid ${euros}`,
      }),
      defineTool({
        name: 'work',
        description: 'Works on, whatever happens.',
        input: z.object({ answer: z.string() }),
        run: ({ answer }) => new Promise<string>((resolve) => ((isAtWork = true), (letEnd = () => resolve(`${answer} at last`)))),
      }),
    ],
    embedder: createEmbedder('ollama/nomic-embed-text', { ollama: { host: embeddings.url } }) as Embedder,
    webhooks: { endpoints: [{ url: receiver.url, secrets: [SECRET], events: WEBHOOK_EVENTS }] },
    // A delivery that failed is tried again later, as it would be.
    holds: (why) => why.endsWith('post-webhook'),
    ...options,
  });
  const { temporal, taskQueue } = world;

  const bytes = (): Promise<string> => (redis ? bytesOfRedis(redis.url) : bytesOfFiles(join(world.dir, 'memory')));
  const runs = async (): Promise<TemporalRun[]> => {
    const found: TemporalRun[] = [];
    for (const type of ['conversation', 'memory', 'webhook']) {
      const query = `WorkflowType = '${type}' AND TaskQueue = '${taskQueue}'`;
      for await (const { workflowId, runId } of temporal.workflow.list({ query })) found.push({ workflowId, runId });
    }
    return found;
  };
  return {
    world,
    stage,
    letEnd: () => letEnd(),
    atWork: () => isAtWork,
    bytes,
    runs,
    async find(canaries, known) {
      const shown: string[] = [];
      for (const { workflowId, runId } of known) {
        const handle = temporal.workflow.getHandle(workflowId, runId);
        shown.push(await handle.fetchHistory().then(textOfHistory, () => ''));
        shown.push(
          await handle.describe().then(
            ({ memo, searchAttributes, staticSummary }) => JSON.stringify([memo, searchAttributes, staticSummary]),
            () => '',
          ),
        );
      }
      const [inStore, inTemporal] = [await bytes(), shown.join('\n')];
      const isIn = (where: string, canary: string): boolean => formsOf(canary).some((form) => where.includes(form));
      return {
        store: KINDS.filter((one) => isIn(inStore, canaries[one])),
        temporal: KINDS.filter((one) => isIn(inTemporal, canaries[one])),
      };
    },
    async close() {
      await world.close();
      await receiver.stop();
      await embeddings.close();
      await redis?.stop();
    },
    people,
    gates,
  };
}

/** A text as bytes are written: as it is, and as base64 wherever it begins in it. */
export function formsOf(canary: string): string[] {
  return [
    canary,
    ...[0, 1, 2].map((at) =>
      Buffer.from(' '.repeat(at) + canary)
        .toString('base64')
        .slice(at === 0 ? 0 : 4, -4),
    ),
  ];
}

/** Payloads as the text that they hold. */
function textOfHistory(history: object): string {
  return JSON.stringify(history, (name, value: unknown) =>
    name === 'data' && typeof value === 'string' ? Buffer.from(value, 'base64').toString() : value,
  );
}

/** All kinds but those of which `livePerson` makes nothing. */
export const LIVED = KINDS.filter((kind) => kind !== 'schedule' && kind !== 'upload');

/** Conversations of a scope, with all of it in them; the second one is in the middle of a turn, with more in its queue than is kept there. */
export async function livePerson(
  { world, stage, atWork, people }: Place,
  { scope: qualified, canaries }: { readonly scope: string; readonly canaries: Canaries },
): Promise<{ readonly first: string; readonly second: string }> {
  const { client, store } = world;
  people.push(canaries);
  const start = { agent: canaries.agentName, ...scopeParts(qualified) };
  const key = { namespace: 'default', scope: qualified };
  const [first, child, second] = [world.id(), world.id(), world.id()];
  await world.writeAgent(canaries.agentName, {});

  const look = (answer: string, times: number) => ({ name: 'look_up', input: { what: canaries.toolInput, times, answer } });
  stage.play(first, callTools(look(canaries.toolResult, 1), look(canaries.longResult, 1_000)), text(`It is ${canaries.modelAnswer}.`));
  await client.send(first, say(first, `what of ${canaries.userMessage}?`), { start: { ...start, title: canaries.title } });
  stage.play(first, callTool('pay', { euros: 3 }), text('Paid.'));
  const paid = client.send(first, say(first, 'pay them'));
  const [approval] = await waitFor(
    () => client.approvals(first),
    (waiting) => waiting.length > 0,
  );
  await client.decide(first, { callId: approval?.callId ?? '', decision: 'approve', note: canaries.approvalNote });
  await paid;
  stage.play(first, callTool('delegate', { task: say(child, canaries.subAgentTask), title: 'look' }), text('They know now.'));
  stage.play(child, text(`They say ${canaries.subAgentAnswer}.`));
  await client.send(first, say(first, 'ask another'));
  stage.play(first, text('Never mind.'));
  await client.send(first, say(first, canaries.rewound));
  await client.rewind(first, 'turn_0003');
  const { mediaType, ref } = await client.attach(first, Buffer.from(`%PDF-1.4\n${canaries.file}\n%%EOF`));
  stage.play(first, text('A fine document.'));
  await client.send(first, { text: say(first, 'read this'), documents: [{ mediaType, ref }] } as never);
  for (const n of [1, 2, 3]) await client.send(first, say(first, `and so on, ${n}`));
  if ((await client.compact(first)).kind !== 'compacted') throw new Error('nothing was compacted');
  await client.closeConversation(first);
  await client.outcome(first);
  await client.resume(first);
  stage.play(first, text('Welcome back.'));
  await client.send(first, say(first, canaries.messageOfSecondLife));

  stage.play(second, callTool('work', { answer: `late ${canaries.toolResult}` }));
  await client.start(second, { ...start, title: 'second' });
  await client.message(second, say(second, `begin, ${canaries.userMessage}`));
  await waitFor(
    () => Promise.resolve(atWork()),
    (is) => is,
  );
  // More than a state has room for: the rest is in the store.
  for (let n = 0; n < 20; n += 1) await client.message(second, { text: say(second, `${canaries.queued} ${'and so on '.repeat(1_500)}`) });

  const { version: from } = await store.documents.memory(key);
  const memory = { id: 'by-hand', ts: 1, cause: 'hand', from, text: `- They like ${canaries.memoryLine}.\n`, lines: [] } as const;
  await store.documents.writeMemory(key, memory);
  const fact = { ts: 1, fact: `They prefer ${canaries.fact}.`, tags: [], confidence: 0.9, salience: 0.8 };
  await store.facts.add(key, 'a-batch', [fact], { conversation: first, turn_ids: [] });
  await store.documents.forget(key, { id: 'f1', ts: 1, words: [canaries.forgotten] });
  await store.scopes.writeIndex(key, 'head', Buffer.from(canaries.searchIndex));
  await store.signIns.change({ namespace: 'default', owner: qualified }, 'calendar', () => canaries.signIn);
  return { first, second };
}
