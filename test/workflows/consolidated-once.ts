/**
 * Long-term memory gets each turn once, whatever is done to conversations: lives beside a model that fits on a page. A turn knows the turns
 * before it; at the end every conversation that runs is reset, and each turn that is in the past of one was in one consolidation.
 */
import fc from 'fast-check';
import { text } from '../support/provider-apis/reply.js';
import { textOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

interface Known {
  readonly id: string;
  /** Of the present life, by turn: what was said up to it. */
  turns: Map<string, readonly string[]>;
  line: readonly string[];
  isRunning: boolean;
}

export type Action =
  | { readonly kind: 'say' | 'reset' | 'compact' | 'end' | 'edit'; readonly which: number }
  | { readonly kind: 'rewind' | 'fork'; readonly which: number; readonly turn: number };

const which = fc.nat(5);
const turn = fc.nat(20);
export const lives: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('say' as const), which }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('reset' as const, 'compact', 'compact', 'end', 'edit'), which }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('rewind' as const, 'rewind', 'fork'), which, turn }) },
  ),
  { minLength: 6, maxLength: 16 },
);

const stage = createStage({ by: 'last' });
let consolidated: string[] = [];
let world: World;

export async function openWorld(): Promise<void> {
  world = await startWorld({ answer: stage.answer, aside: consolidate, agent: { memory: { memoryWindow: 1_000 } } });
  await world.writeAgent('small', { memory: { memoryWindow: 10, keepCount: 4, trim: 'at-window' } });
}

export const closeWorld = (): Promise<void> => world.close();

function consolidate({ messages }: ApiRequest) {
  const prompt = messages.map(({ content }) => textOf(content)).join('\n');
  if (!prompt.includes('You are a memory consolidation agent')) return undefined;
  consolidated.push(...(prompt.match(/mark-\d+\b/g) ?? []));
  return text(JSON.stringify({ history_entry: '[2026-11-21 10:00] They talked.', memory_update: '' }));
}

class Lives {
  readonly all: Known[] = [];
  private marks = 0;

  constructor(
    readonly scope: string,
    readonly agent: string,
  ) {}

  async begin(turns: number): Promise<void> {
    const life = this.add([]);
    await world.client.start(life.id, { scope: this.scope, agent: this.agent });
    for (let n = 0; n < turns; n++) await this.say(life);
  }

  private add(line: readonly string[]): Known {
    const life = { id: world.id(), turns: new Map<string, readonly string[]>(), line, isRunning: true };
    this.all.push(life);
    return life;
  }

  private ended(life: Known, turnId: string | null, line: readonly string[]): void {
    if (turnId === null) throw new Error('a message began no turn');
    life.line = line;
    life.turns.set(turnId, line);
  }

  private async say(life: Known): Promise<void> {
    const mark = `mark-${(this.marks += 1)}`;
    const { turnId } = await world.client.send(life.id, say(life.id, mark));
    this.ended(life, turnId, [...life.line, mark]);
  }

  async do(action: Action): Promise<void> {
    const life = this.all[action.which % this.all.length];
    if (!life) return;
    if (!life.isRunning) return this.resume(life);
    const turns = [...life.turns];
    switch (action.kind) {
      case 'say':
        return this.say(life);
      case 'reset':
        return void (await world.client.reset(life.id));
      case 'compact':
        return void (await world.client.compact(life.id).catch(() => undefined));
      case 'end':
        if (life.line.length === 0) return;
        life.isRunning = false;
        return world.client.terminate(life.id);
      case 'edit': {
        if (life.line.length === 0) return;
        const mark = `mark-${(this.marks += 1)}`;
        const { turnId } = await world.client.edit(life.id, say(life.id, mark));
        return this.ended(life, turnId, [...life.line.slice(0, -1), mark]);
      }
      case 'rewind': {
        const [to, line] = turns[action.turn % turns.length] ?? [];
        if (to === undefined || line === undefined) return;
        await world.client.rewind(life.id, to);
        life.line = line;
        return;
      }
      case 'fork': {
        const [at, line] = turns[action.turn % turns.length] ?? [];
        if (at === undefined || line === undefined) return;
        const fork = this.add(line);
        await world.client.fork(life.id, { at, id: fork.id });
        // Each turn of its line keeps its number there.
        for (const [one, theirs] of turns) if (theirs.every((mark, i) => line[i] === mark)) fork.turns.set(one, theirs);
        return;
      }
    }
  }

  private async resume(life: Known): Promise<void> {
    await world.client.resume(life.id);
    life.isRunning = true;
    for (const [one, line] of life.turns) if (!line.every((mark, i) => life.line[i] === mark)) life.turns.delete(one);
  }

  async endAll(): Promise<void> {
    for (const life of this.all) if (life.isRunning) await world.client.reset(life.id);
    await waitFor(
      () => world.client.scope(this.scope).status(),
      (status) => status === undefined || (status.queued.length === 0 && status.phase === 'idle'),
    );
  }
}

let scopes = 0;

/** `first`: turns of the conversation that it begins with. */
export async function tryLives(agent: string, first: number, actions: readonly Action[]): Promise<void> {
  consolidated = [];
  const all = new Lives(`once-${process.pid}-${(scopes += 1)}`, agent);
  await all.begin(first);
  for (const action of actions) await all.do(action);
  await all.endAll();
  const expected = [...new Set(all.all.flatMap(({ line, isRunning }) => (isRunning ? line : [])))];
  expect(expected.filter((mark) => !consolidated.includes(mark))).toEqual([]);
  expect(consolidated.filter((mark, i) => consolidated.indexOf(mark) !== i)).toEqual([]);
  expect(world.api.problems).toEqual([]);
}
