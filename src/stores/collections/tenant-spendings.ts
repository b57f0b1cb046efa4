/**
 * What each tenant has used, a day and a month at a time. Counted beside the spendings of conversations, which go with them: a budget must
 * not come back because a conversation was deleted.
 */
import { z } from 'zod';
import { NOTHING_USED } from '../../records/shared-budget.js';
import { PERIODS, periodNames, withUsed, type PeriodSum, type PeriodSums } from '../../records/tenant-budget.js';
import type { TenantSpendings } from '../store.js';
import { recordCodec, type OpenCollection } from './collection.js';

/** The last calls that were counted: a call that is counted again, since its answer was lost, is one of them. */
const REMEMBERED = 256;
/** Days and months that stay to be looked at. */
const KEPT = { day: 40, month: 13 };

const amount = z.object({ tokens: z.int(), nanoUsd: z.int() });
const recordSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('day'), name: z.string(), used: amount, told: z.array(z.number()) }),
  z.object({ kind: z.literal('month'), name: z.string(), used: amount, told: z.array(z.number()) }),
  z.object({ kind: z.literal('counted'), name: z.literal(''), ids: z.array(z.string()) }),
]);
type TenantRecord = z.output<typeof recordSchema>;
type SumRecord = Exclude<TenantRecord, { kind: 'counted' }>;

const CODEC = recordCodec<TenantRecord>(recordSchema, ({ kind, name }) => `${kind}:${name}`);

export function createTenantSpendings(open: OpenCollection): TenantSpendings {
  const openFor = (owner: Parameters<TenantSpendings['read']>[0]) => open({ name: 'tenant-spendings', key: owner }, CODEC);
  return {
    async add(owner, id, at, more) {
      let sums = sumsIn([], at);
      await openFor(owner).change(`count what ${owner.tenant} has used`, (records) => {
        const counted = records.find((one) => one.kind === 'counted')?.ids ?? [];
        const before = sumsIn(records, at);
        if (counted.includes(id)) {
          sums = before;
          return undefined;
        }
        sums = { day: withUsed(before.day, more), month: withUsed(before.month, more) };
        const fresh = PERIODS.map((kind): SumRecord => ({ kind, ...toMutable(sums[kind]) }));
        const others = records.filter(
          (one) => one.kind !== 'counted' && !fresh.some((sum) => sum.kind === one.kind && sum.name === one.name),
        );
        return [...newest(others), ...fresh, { kind: 'counted', name: '', ids: [...counted, id].slice(-REMEMBERED) }];
      });
      return sums;
    },

    async read(owner, at) {
      const { items } = await openFor(owner).read(`read what ${owner.tenant} has used`);
      return sumsIn(items, at);
    },

    tell: (owner, period, name, mark) =>
      openFor(owner).change(`note that ${owner.tenant} was told`, (records) => {
        const known = records.find((one) => one.kind === period && one.name === name);
        if (known === undefined || known.kind === 'counted' || known.told.includes(mark)) return undefined;
        return records.map((one) => (one === known ? { ...known, told: [...known.told, mark] } : one));
      }),
  };
}

function sumsIn(records: readonly TenantRecord[], at: number): PeriodSums {
  const names = periodNames(at);
  const read = (kind: 'day' | 'month'): PeriodSum => {
    const known = records.find((one) => one.kind === kind && one.name === names[kind]);
    return known === undefined || known.kind === 'counted' ? { name: names[kind], used: NOTHING_USED, told: [] } : known;
  };
  return { day: read('day'), month: read('month') };
}

function toMutable({ name, used, told }: PeriodSum): { name: string; used: { tokens: number; nanoUsd: number }; told: number[] } {
  return { name, used: { ...used }, told: [...told] };
}

function newest(records: readonly TenantRecord[]): TenantRecord[] {
  return PERIODS.flatMap((kind) =>
    records
      .filter((one) => one.kind === kind)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .slice(1 - KEPT[kind]),
  );
}
