/**
 * A model step that carries two messages, the fence of a call that did not stop, and three quick tools; and conversations that stand
 * still at points of it, for who wants to kill something there.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { callTools, gate, text, type Gate, type Reply } from '../support/provider-apis/reply.js';
import { saidIn } from '../support/echo-model.js';
import { until, type Scene } from '../support/scene.js';
import { stepsOf } from '../support/steps.js';
import type { WorkerProcess } from '../support/worker-process.js';

/** Where the first turn's step stands, deaf to a stop. */
const HANGS = ['write', 'turn_0001/m1', 'after'] as const;
export const FIRST = 'turn_0002/m1';
export const SECOND = 'turn_0002/m2';
export const CALLS = ['turn_0002/c1', 'turn_0002/c2', 'turn_0002/c3'];
/** Slots of the message that the turn begins with, and of the first result. */
export const [MESSAGE_SLOT, RESULT_SLOT] = [3, 7];

/** `thaws`: it goes on when the file `<LEDGER>.thaw` is there. */
export type At = readonly [method: 'write' | 'commit' | 'read', of: string | number, when: 'before' | 'after', thaws?: 'thaws'];

export const AGENT = {
  tools: ['jot', 'compact_context'],
  memory: { enabled: false },
  context: { advanced: { softThreshold: 30_000, hardThreshold: 80_000, truncationThreshold: 100_000 } },
};
export const PRELOAD = join(__dirname, '..', 'support', 'frozen-steps.cjs');

export const OUTPUT_TOKENS = 7;

export interface ScriptedModel {
  readonly answer: (request: ApiRequest) => Reply;
  readonly requests: (id: string) => { readonly first: readonly ApiRequest[]; readonly second: readonly ApiRequest[] };
  readonly gateOf: (id: string) => Gate;
  readonly holdSecond: (ids: ReadonlySet<string>) => void;
}

/** Asks for three tools, and says so when they are done. */
export function createModel(): ScriptedModel {
  const gates = new Map<string, Gate>();
  const asked = new Map<string, { first: ApiRequest[]; second: ApiRequest[] }>();
  let held: ReadonlySet<string> = new Set();
  const gateOf = (id: string): Gate => {
    const known = gates.get(id) ?? gate();
    gates.set(id, known);
    return known;
  };
  const requests = (id: string): { first: ApiRequest[]; second: ApiRequest[] } => {
    const known = asked.get(id) ?? { first: [], second: [] };
    asked.set(id, known);
    return known;
  };
  return {
    gateOf,
    requests,
    holdSecond: (ids) => (held = ids),
    answer(request) {
      const said = saidIn(request);
      const [id = ''] = /^\S+/.exec(said[0] ?? '') ?? [];
      const { first, second } = requests(id);
      if (!JSON.stringify(request.messages).includes('tool_result')) {
        first.push(request);
        const calls = ['a', 'b', 'c'].map((item) => ({ name: 'jot', input: { item } }));
        return { ...callTools(...calls), holdAfter: gateOf(id), usage: { input_tokens: 40_000, output_tokens: 30 } };
      }
      second.push(request);
      const isHeld = held.has(id) && second.length === 1;
      return { ...text('All jotted.'), usage: { input_tokens: 41_000, output_tokens: OUTPUT_TOKENS }, ...(isHeld && { hold: gate() }) };
    },
  };
}

export type Sent = Map<string, readonly Promise<TurnResult>[]> & { readonly worker: WorkerProcess };

/** A first turn that hangs is interrupted and given up; then every conversation stands at its point, or has ended where it has none. */
export async function upToThePoints(
  scene: Scene,
  model: ScriptedModel,
  lives: readonly { readonly id: string; readonly at?: At }[],
  { held = new Set() }: { readonly held?: ReadonlySet<string> } = {},
): Promise<Sent> {
  const points = lives.map(({ id, at }) => [id, [HANGS, ...(at ? [at] : [])]]);
  const worker = await scene.startWorker({ preload: PRELOAD, env: { FREEZE_AT: JSON.stringify(Object.fromEntries(points)) } });
  const isFrozen = (id: string, at: readonly unknown[]): boolean => frozen(scene).includes([id, ...at].join(' '));
  const hanging = lives.map(({ id }) => scene.client.send(id, { id: 'wait', text: `${id} wait` }, { start: {} }));
  await until('all of them hang', () => lives.every(({ id }) => isFrozen(id, HANGS)));
  const sent = new Map<string, Promise<TurnResult>[]>();
  for (const { id } of lives) sent.set(id, [scene.client.send(id, { id: 'do', text: `${id} do it`, delivery: 'interrupt' })]);
  expect((await Promise.all(hanging)).map(({ stopReason }) => stopReason)).toEqual(lives.map(() => 'interrupted'));
  await until('all of them work on their second turn', () =>
    lives.every(({ id, at }) => (at && isFrozen(id, at)) || model.requests(id).first.length > 0),
  );
  for (const { id } of lives) {
    for (const [messageId, words] of [
      ['more', 'one more'],
      ['one', 'and one'],
    ] as const) {
      const steered = scene.client.send(id, { id: messageId, text: `${id} ${words}`, delivery: 'steer' });
      sent.get(id)?.push(steered);
      const queued = (sent.get(id)?.length ?? 0) - 1;
      await until(`${words} has come`, async () => (await scene.client.status(id)).queued === queued);
    }
  }
  for (const { id } of lives) model.gateOf(id).release();
  await until(
    'all of them stand still',
    () => lives.every(({ id, at }) => !at || isFrozen(id, at)) && [...held].every((id) => model.requests(id).second.length > 0),
  );
  return Object.assign(sent, { worker });
}

/** What the model steps of the second turn carried. */
export async function loadsOf(scene: Scene, id: string) {
  const steps = await stepsOf(scene, id);
  return steps.flatMap((step) => {
    if (step.name !== 'model-step' || step.input.turn !== 'turn_0002') return [];
    const { write, tools } = step.input;
    const messages = write.messages.map(({ messageId }) => messageId);
    return [{ messages, fences: write.settle.map(({ effect }) => effect), tools: tools.map(({ callId }) => callId) }];
  });
}

/** How often what does the second turn's work was begun, all of its steps together. */
export async function attemptsOf(scene: Scene, id: string): Promise<number> {
  const steps = await stepsOf(scene, id);
  const own = steps.filter(({ name, input }) => (name === 'model-step' || name === 'run-tool') && input.turn === 'turn_0002');
  return own.reduce((sum, { attempt }) => sum + attempt, 0);
}

function frozen({ dir }: Scene): string[] {
  const file = join(dir, 'ledger.frozen');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
}

export function runsOf(scene: Scene, id: string, callId: string): number {
  const lines = scene.ledger() as unknown as readonly { readonly conversation: string; readonly callId: string }[];
  return lines.filter((line) => line.conversation === id && line.callId === callId).length;
}

/** What the store and the status have of a conversation, without what differs between any two. */
export async function tell({ client }: Scene, id: string) {
  const [history, { usage, turns, queued, phase }] = await Promise.all([client.history(id), client.status(id)]);
  const entries = JSON.parse(JSON.stringify(history.map(({ ts: _, ...entry }) => entry)).replaceAll(id, 'ID')) as unknown[];
  return { entries, usage, turns, queued, phase };
}
