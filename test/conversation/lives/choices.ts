/** What may happen in a life, as data that fast-check draws and shrinks. A choice names nothing that must exist: it picks among what there is. */
import fc from 'fast-check';

type Plain = 'reset' | 'interrupt' | 'close' | 'rewind' | 'model' | 'due' | 'step' | 'rename' | 'rejected';

/** One choice of the world: something arrives, something in flight ends somehow, time passes. */
export type Choice =
  | {
      readonly kind: 'say';
      readonly id: number;
      readonly delivery: 'queue' | 'steer' | 'interrupt';
      readonly bytes: number;
      readonly brings?: 'picture' | 'output' | 'context';
    }
  | { readonly kind: 'withdraw'; readonly id: number }
  | { readonly kind: Plain }
  | { readonly kind: 'ask'; readonly what: 'compaction' | 'undo' | 'truncation' | 'truncate' | 'compact' }
  | { readonly kind: 'edit'; readonly op: 'drop' | 'move' | 'clear'; readonly which: number; readonly before: number }
  | { readonly kind: 'app'; readonly id: number; readonly what: number }
  | { readonly kind: 'mode'; readonly mode: 'auto' | 'stepping' }
  | { readonly kind: 'break'; readonly at: number }
  | { readonly kind: 'budget'; readonly maxTokens: number }
  | { readonly kind: 'decide'; readonly which: number; readonly decision: 'approve' | 'deny' | 'always' | 'stray' }
  | { readonly kind: 'child'; readonly which: number; readonly news: 'ended' | 'again' | 'asks' | 'stands' | 'paused' }
  | { readonly kind: 'news'; readonly isAgain: boolean }
  | { readonly kind: 'time'; readonly ms: number }
  | { readonly kind: 'end'; readonly which: number; readonly how: number; readonly tools: number };

const plain = (weight: number, kind: Plain) => ({ weight, arbitrary: fc.constant<Choice>({ kind }) });
const one = <Kind extends Choice['kind']>(
  weight: number,
  kind: Kind,
  fields: { readonly [Field in Exclude<keyof Extract<Choice, { kind: Kind }>, 'kind'>]: fc.Arbitrary<unknown> },
) => ({ weight, arbitrary: fc.record({ kind: fc.constant(kind), ...fields }) as unknown as fc.Arbitrary<Choice> });

const deliveries = fc.constantFrom('queue', 'queue', 'steer', 'interrupt');
const lengths = fc.oneof({ weight: 40, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.constant(90_000) }, fc.constant(800_000));
const brought = fc.constantFrom(undefined, undefined, undefined, undefined, 'picture', 'output', 'context');

const ORDINARY = [
  one(24, 'say', { id: fc.nat(30), delivery: deliveries, bytes: lengths, brings: brought }),
  one(2, 'withdraw', { id: fc.nat(30) }),
  ...[plain(2, 'reset'), plain(2, 'interrupt'), plain(2, 'rewind'), plain(2, 'model'), plain(1, 'close'), plain(1, 'rename')],
  plain(1, 'rejected'),
  one(5, 'ask', { what: fc.constantFrom('compaction', 'compaction', 'undo', 'truncation', 'truncate', 'compact') }),
  one(2, 'edit', { op: fc.constantFrom('drop', 'move', 'clear'), which: fc.nat(5), before: fc.nat(5) }),
  one(2, 'app', { id: fc.nat(9), what: fc.nat(7) }),
  one(1, 'budget', { maxTokens: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 5_000 })) }),
  one(12, 'decide', { which: fc.nat(3), decision: fc.constantFrom('approve', 'always', 'deny', 'always', 'stray') }),
  one(8, 'child', { which: fc.nat(3), news: fc.constantFrom('ended', 'ended', 'again', 'asks', 'stands', 'paused') }),
  one(8, 'news', { isAgain: fc.boolean() }),
  one(16, 'time', { ms: fc.integer({ min: 1, max: 5_000 }) }),
  one(90, 'end', {
    which: fc.nat(20),
    how: fc.constantFrom(0, 1, 2, 3, 4, 5, 5, 5, 5, 6, 7, 8, 9),
    tools: fc.integer({ min: 1, max: 20 }),
  }),
];
const STEPPED = [one(4, 'mode', { mode: fc.constantFrom('auto', 'stepping') }), plain(6, 'step'), one(2, 'break', { at: fc.nat(3) })];

/** `due`: a run may have to hand over. */
export function choices(maxLength: number, { steps = true, due = true } = {}): fc.Arbitrary<Choice[]> {
  return fc.array(fc.oneof(...ORDINARY, ...(steps ? STEPPED : []), ...(due ? [plain(4, 'due')] : [])), { maxLength, size: 'max' });
}
