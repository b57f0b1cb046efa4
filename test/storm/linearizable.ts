/**
 * Whether a log of operations could have happened one after the other, each at one moment between its call and its return. The search is
 * Wing and Gong's (1993), with Lowe's memory of what was tried (2017), as in porcupine and knossos. It knows nothing of Perdura: a log is
 * checked against a model of a few lines, and each conversation and each effect has a log of its own.
 *
 * - An operation that nobody heard the end of (`return` is Infinity) may have happened at any time after its call, or never.
 * - Operations of one `process` happen in the order of the log.
 */

export interface Operation {
  /** Milliseconds, all of one clock. */
  readonly call: number;
  readonly return: number;
  readonly process?: string;
}

export interface Model<State, Op> {
  readonly first: State;
  /** The state after it; undefined where it cannot happen. */
  readonly step: (state: State, op: Op) => State | undefined;
  /** Equal for states that nothing can tell apart. */
  readonly key: (state: State) => string;
  /** Which of several to try first, the lowest; default: what returned first. It changes how long a search takes, never what it finds. */
  readonly ranks?: (log: readonly Op[]) => (op: Op) => number;
}

/** `stuck`: what could come next in the longest order that was found, and cannot. */
export type Verdict<Op> =
  { readonly ok: true } | { readonly ok: false; readonly why: 'no order' | 'too many to try'; readonly stuck: readonly Op[] };

const MOST_TRIED = 300_000;

export function linearize<State, Op extends Operation>({ first, step, key, ranks }: Model<State, Op>, log: readonly Op[]): Verdict<Op> {
  const rank = ranks?.(log) ?? ((op: Op) => op.return);
  const ops = log.map((op, at) => ({ op, at })).sort((a, b) => a.op.call - b.op.call || a.at - b.at);
  const place = new Map(ops.map(({ at }, i) => [at, i]));
  const latest = new Map<string, number>();
  /** By place in `ops`: the operation of the same process before it. */
  const before = new Map<number, number>();
  log.forEach(({ process }, at) => {
    if (process === undefined) return;
    const [mine, earlier] = [place.get(at) ?? 0, latest.get(process)];
    if (earlier !== undefined) before.set(mine, earlier);
    latest.set(process, mine);
  });
  const order = ops.map(({ op }) => rank(op));
  const [done, tried] = [ops.map(() => false), new Set<string>()];
  let longest: { readonly count: number; readonly stuck: readonly Op[] } = { count: -1, stuck: [] };

  /** Those that may be next: nothing that is left has returned before their call. */
  const candidates = (): number[] => {
    const found: number[] = [];
    let horizon = Infinity;
    for (let i = done.indexOf(false); i >= 0 && i < ops.length; i++) {
      const op = ops[i]?.op;
      if (done[i] || op === undefined) continue;
      if (op.call > horizon) break;
      horizon = Math.min(horizon, op.return);
      const earlier = before.get(i);
      if (earlier === undefined || done[earlier]) found.push(i);
    }
    return found.sort((a, b) => (order[a] ?? 0) - (order[b] ?? 0));
  };

  const search = (state: State, count: number): boolean => {
    if (ops.every(({ op }, i) => done[i] || op.return === Infinity)) return true;
    const mark = `${done.map(Number).join('')} ${key(state)}`;
    if (tried.has(mark) || tried.size > MOST_TRIED) return false;
    tried.add(mark);
    const next = candidates();
    if (count > longest.count) longest = { count, stuck: next.flatMap((i) => ops[i]?.op ?? []) };
    return next.some((i) => {
      const op = ops[i]?.op;
      const after = op && step(state, op);
      if (after === undefined) return false;
      done[i] = true;
      if (search(after, count + 1)) return true;
      done[i] = false;
      return false;
    });
  };
  if (search(first, 0)) return { ok: true };
  return { ok: false, why: tried.size > MOST_TRIED ? 'too many to try' : 'no order', stuck: longest.stuck };
}

// The queue of one conversation: each message that it accepted is taken once, first come first served, and answered once.

/** `free`: a message that steers or interrupts, and one that stands in place of turns taken back, wait for nobody. */
export type QueueOperation = Operation & { readonly id: string } & (
    | { readonly kind: 'accept'; readonly lane: 'queue' | 'free' }
    /** The model sees it. */
    | { readonly kind: 'take' }
    | { readonly kind: 'withdraw'; readonly withdrawn: boolean }
    /** `names`: the messages that a whole answer says it answers. */
    | { readonly kind: 'answer'; readonly turn: string; readonly outcome: string; readonly names?: readonly string[] }
    /** Nothing waits; `id` is ''. */
    | { readonly kind: 'rest' }
  );

interface QueueState {
  readonly queue: readonly string[];
  readonly free: readonly string[];
  readonly lanes: Readonly<Record<string, 'queue' | 'free'>>;
  /** What became of it: 'taken', 'withdrawn', or its answer. */
  readonly fates: Readonly<Record<string, string>>;
  /** Which message of the queue a turn is of. */
  readonly turns: Readonly<Record<string, string>>;
}

export const queueModel: Model<QueueState, QueueOperation> = {
  // Of many that were accepted at once the queue's order is that in which they were taken.
  ranks(log) {
    const taken = new Map(log.flatMap((op) => (op.kind === 'take' ? [[op.id, op.return - 0.5] as const] : [])));
    return (op) => (op.kind === 'accept' ? (taken.get(op.id) ?? op.return) : op.return);
  },
  first: { queue: [], free: [], lanes: {}, fates: {}, turns: {} },
  key: ({ queue, free, fates, turns }) =>
    JSON.stringify([queue, [...free].sort(), Object.entries(fates).sort(), Object.entries(turns).sort()]),
  step(state, op) {
    const { id } = op;
    const { queue, free, lanes, fates, turns } = state;
    const waits = queue.includes(id) || free.includes(id);
    const leave = (fate: string): QueueState => ({
      ...state,
      queue: queue.filter((one) => one !== id),
      free: free.filter((one) => one !== id),
      fates: { ...fates, [id]: fate },
    });
    switch (op.kind) {
      case 'accept':
        // The same id again is the same message.
        if (waits || fates[id] !== undefined) return state;
        return { ...state, [op.lane]: [...state[op.lane], id], lanes: { ...lanes, [id]: op.lane } };
      case 'take':
        return queue[0] === id || free.includes(id) ? leave('taken') : undefined;
      case 'withdraw':
        if (op.withdrawn !== waits) return undefined;
        return waits ? leave('withdrawn') : state;
      case 'answer': {
        const { turn, outcome, names } = op;
        const fate = fates[id];
        if (fate === undefined || (outcome === 'withdrawn') !== (fate === 'withdrawn')) return undefined;
        if (fate === 'withdrawn') return state;
        if (names !== undefined && !names.includes(id)) return undefined;
        const value = `${turn} ${outcome} ${names?.join() ?? ''}`;
        if (fate !== 'taken') return fate === value ? state : undefined;
        const owner = turns[turn];
        if (lanes[id] === 'queue' && owner !== undefined && owner !== id) return undefined;
        return { ...state, fates: { ...fates, [id]: value }, turns: lanes[id] === 'queue' ? { ...turns, [turn]: id } : turns };
      }
      case 'rest':
        return queue.length + free.length === 0 ? state : undefined;
    }
  },
};

// One effect of the ledger: whoever commits first has committed, for ever; what was fenced before never commits.

type EffectStatus = 'reserved' | 'committed' | 'fenced' | 'conflict' | 'unheard';

/** `given` is what it wanted to commit, `value` what counts. Unheard: the model says what came of it. */
export type EffectOperation = Operation & { readonly status: EffectStatus; readonly value?: string } & (
    | { readonly kind: 'reserve'; readonly hash: string }
    | { readonly kind: 'commit'; readonly hash: string; readonly given: string }
    | { readonly kind: 'fence' }
  );

interface EffectState {
  readonly hash?: string;
  readonly value?: string;
  readonly isFenced?: true;
}

export const effectModel: Model<EffectState, EffectOperation> = {
  first: {},
  key: (state) => JSON.stringify(state),
  step(state, op) {
    const clashes = op.kind !== 'fence' && state.hash !== undefined && state.hash !== op.hash;
    const known = state.value === undefined ? undefined : 'committed';
    const status = state.isFenced ? 'fenced' : clashes ? 'conflict' : (known ?? (op.kind === 'reserve' ? 'reserved' : undefined));
    const agrees = (is: string, value: string | undefined): boolean =>
      op.status === 'unheard' || (op.status === is && (is !== 'committed' || op.value === value));
    switch (op.kind) {
      case 'reserve':
        return agrees(status ?? '', state.value) ? { ...state, ...(status === 'reserved' && { hash: op.hash }) } : undefined;
      case 'commit': {
        if (status !== undefined) return agrees(status, state.value) ? state : undefined;
        return agrees('committed', op.given) ? { hash: op.hash, value: op.given } : undefined;
      }
      case 'fence':
        if (state.value !== undefined) return agrees('committed', state.value) ? state : undefined;
        return agrees('fenced', undefined) ? { ...state, isFenced: true } : undefined;
    }
  },
};
