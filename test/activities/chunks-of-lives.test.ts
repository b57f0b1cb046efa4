/**
 * Chunks of the application over lives: added, updated, removed and replaced, with turns, rewinds, forks and resumed lives between, in any
 * order. The pure core decides, the activities of rewind and fork do; beside them a list of texts for each turn says what must be there.
 */
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import fc from 'fast-check';
import { agentConfigSchema } from '../../src/agents/agent-config.js';
import type { ConversationDependencies } from '../../src/activities/dependencies.js';
import { openOrigin } from '../../src/activities/lineage/open-origin.js';
import { rewind } from '../../src/activities/lineage/past.js';
import { apply } from '../../src/conversation/apply.js';
import { eventToReduce } from '../../src/conversation/context/app-events.js';
import type { ChunkOperation, NewChunk } from '../../src/conversation/context/reducers.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import type { Effect } from '../../src/conversation/effect.js';
import { withOrigin } from '../../src/conversation/lineage/lineage.js';
import { nextStep } from '../../src/conversation/next-step.js';
import type { Writes } from '../../src/conversation/outbox/writes.js';
import { createModels } from '../../src/models/providers.js';
import { turnId } from '../../src/records/identity.js';
import { listSlots } from '../../src/records/slots.js';
import { shownText } from '../../src/records/message.js';
import type { ConversationKey } from '../../src/stores/store.js';
import { createToolRegistry } from '../../src/tools/tool.js';
import { createSmallStore } from '../conversation/context/small-store.js';
import { open, outputOf, said } from '../conversation/drive.js';

type Change = { readonly kind: ChunkOperation['kind']; readonly which: number; readonly type: string };
type Op = { readonly kind: 'say' | 'resume' } | Change | { readonly kind: 'rewind' | 'fork'; readonly back: number };

const ops: fc.Arbitrary<Op[]> = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('say' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('resume' as const) }) },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constantFrom('ADD' as const, 'ADD' as const, 'UPDATE' as const, 'DELETE' as const, 'BATCH_REPLACE' as const),
        which: fc.nat(5),
        type: fc.constantFrom('WORKING_FLOW', 'STATE'),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('rewind' as const, 'fork' as const), back: fc.nat(3) }) },
  ),
  { minLength: 4, maxLength: 25 },
);

const QUIET = { log: { info: () => undefined, warn: () => undefined }, info: { workflowNamespace: 'default' } } as unknown as Context;

type Texts = readonly string[];
interface Turn {
  readonly number: number;
  /** At its end, and where the next one began: after a rewind these differ. */
  end: Texts;
  left: Texts;
}

function toOperation(kind: ChunkOperation['kind'], id: string | undefined, chunk: NewChunk): ChunkOperation | undefined {
  if (kind === 'ADD') return { kind, chunk };
  if (id === undefined) return undefined;
  if (kind === 'UPDATE') return { kind, id, text: chunk.text };
  return kind === 'DELETE' ? { kind, id } : { kind, ids: [id], chunks: [chunk] };
}

class World {
  private readonly small = createSmallStore();
  private key: ConversationKey = { namespace: 'default', scope: 'default', conversation: 'chat', life: 'l1' };
  private state = open();
  private at = 1_000;
  private line: Turn[] = [];
  private now: Texts = [];
  private isBackInTurn = false;

  private dependencies(): ConversationDependencies {
    const { key, small } = this;
    const agents = () => Promise.resolve({ config: agentConfigSchema.parse({}) });
    const identity = { life: key.life, agent: 'default', scope: key.scope };
    const given = { store: small.store, agents, models: createModels({}), tools: createToolRegistry([]), key, identity };
    return { ...given, defaultModel: 'anthropic/claude-sonnet-5-5' } as unknown as ConversationDependencies;
  }

  private write({ messages, settle, entries }: Writes): void {
    for (const { slot, turn, seq, session, text, messageId } of messages)
      this.small.put(this.key, { v: 1, slot, turn, seq, session, ts: this.at, messageId, message: { role: 'user', text } });
    for (const one of [...entries, ...settle.flatMap(({ entry }) => entry ?? [])]) this.small.put(this.key, one);
  }

  private async output(effect: Effect): Promise<unknown> {
    const output = outputOf(effect);
    if (effect.effect === 'rewind') return rewind(this.dependencies(), effect.input);
    if (effect.effect === 'open-origin') return openOrigin(this.dependencies(), effect.input);
    if (effect.effect === 'store-step') this.write(effect.input.write);
    if (effect.effect === 'model-step') {
      const { turn, session, call, write } = effect.input;
      this.write(write);
      const message = { role: 'assistant', blocks: [{ kind: 'text', text: 'yes' }], model: 'a/b', stop: 'end' } as const;
      this.small.put(this.key, { v: 1, slot: call.slot, turn, seq: call.seq, session, ts: this.at, message });
    }
    return output;
  }

  private tell(event: ConversationEvent): void {
    this.state = apply(this.state, event);
  }

  private async settle(): Promise<void> {
    for (let step = nextStep(this.state); ; step = nextStep(this.state)) {
      const at = (this.at += 1_000);
      if (step.kind === 'begin-turn') this.tell({ kind: 'turn-begun', at });
      else if (step.kind === 'effect') {
        this.tell({ ...step, kind: 'effect-started', at });
        const { effect, id } = step;
        this.tell({ kind: 'effect-completed', effect, id, output: await this.output(step), at } as ConversationEvent);
      } else return;
    }
  }

  private async begin(kind: 'fork' | 'resume', turn?: Turn): Promise<void> {
    const { conversation, life } = this.key;
    const next = `l${(this.at += 1)}`;
    this.key = { ...this.key, life: next, ...(kind === 'fork' && { conversation: next }) };
    const { identity, ...others } = open();
    const origin = { kind, conversation, life, ...(turn && { turn: turnId(turn.number) }) };
    this.state = withOrigin({ ...others, identity: { ...identity, life: next } }, origin);
    await this.settle();
  }

  async do(op: Op): Promise<void> {
    const id = `x${(this.at += 1_000)}`;
    const last = this.line.at(-1);
    switch (op.kind) {
      case 'say': {
        if (last) last.left = this.now;
        this.tell(said(id, { at: this.at }));
        await this.settle();
        this.line.push({ number: this.state.latestTurn, end: this.now, left: this.now });
        this.isBackInTurn = false;
        return;
      }
      case 'resume':
        if (!last) return;
        await this.begin('resume');
        this.line = [...this.line.slice(0, -1).map((turn) => ({ ...turn, end: turn.left })), { ...last, end: this.now, left: this.now }];
        this.isBackInTurn = false;
        return;
      case 'rewind':
      case 'fork': {
        const turn = this.line.at(-1 - (op.back % Math.max(1, this.line.length)));
        if (!turn) return;
        this.line = this.line.slice(0, this.line.indexOf(turn) + 1);
        this.now = turn.end;
        const branches = this.state.branches ?? 0;
        if (op.kind === 'rewind') this.tell({ kind: 'rewind-requested', requestId: id, to: turnId(turn.number), at: this.at });
        if (op.kind === 'fork') await this.begin('fork', turn);
        await this.settle();
        // Where a rewind had nothing to cut, nothing is another branch's.
        this.isBackInTurn = op.kind === 'rewind' && (this.isBackInTurn || (this.state.branches ?? 0) > branches);
        if (op.kind === 'fork') this.line = this.line.map((one) => ({ ...one, end: one === turn ? one.end : one.left }));
        return;
      }
      default:
        await this.reduce(op, id);
        this.now = this.changed(op, id);
        if (last && !this.isBackInTurn) last.end = this.now;
    }
  }

  /** The chunk's text is the event's id. */
  private async reduce({ kind, which, type }: Change, text: string): Promise<void> {
    const chunks = this.chunks();
    const id = chunks[which % Math.max(1, chunks.length)]?.id;
    const chunk = { type, text };
    const operation = toOperation(kind, id, chunk);
    const operations = operation ? [operation] : [];
    this.tell({ kind: 'app-event-received', id: text, type: 'any', payload: null, at: this.at });
    this.tell({ kind: 'app-event-reduced', id: text, reduced: { kind: 'reduced', operations }, at: this.at });
    await this.settle();
  }

  private changed({ kind, which }: Change, text: string): Texts {
    const at = which % Math.max(1, this.now.length);
    if (kind === 'ADD') return [...this.now, text];
    if (this.now.length === 0) return this.now;
    if (kind === 'UPDATE') return this.now.with(at, text);
    const left = this.now.toSpliced(at, 1);
    return kind === 'DELETE' ? left : [...left, text];
  }

  private chunks() {
    const asked = apply(this.state, { kind: 'app-event-received', id: 'asked', type: 'any', payload: null, at: this.at });
    return eventToReduce(asked)?.view.chunks ?? [];
  }

  check(): void {
    expect(this.chunks().map(({ text }) => text)).toEqual(this.now);
    const shown = listSlots(this.state.context).flatMap((slot) => {
      const message = this.small.entry(this.key, slot)?.message;
      return message?.role === 'user' && message.from !== undefined ? [shownText(message.text).replace('[STATE] ', '')] : [];
    });
    // What is read after a turn is of that turn.
    expect(shown.sort()).toEqual([...this.now].sort());
    const counted = this.chunks().reduce((sum, { tokens }) => sum + tokens, 0);
    expect(counted).toBeLessThanOrEqual(this.state.contextTokens);
  }
}

test('chunks are those of the turns that a life has, in their latest versions, whatever led there', async () => {
  await fc.assert(
    fc.asyncProperty(ops, (list) =>
      asyncLocalStorage.run(QUIET, async () => {
        const world = new World();
        for (const op of list) {
          await world.do(op);
          world.check();
        }
      }),
    ),
    { numRuns: process.env['PERDURA_LONG'] === '1' ? 5_000 : 60 },
  );
});
