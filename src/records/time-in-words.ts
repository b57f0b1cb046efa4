/** Moments, spans of time and counts as people and models write and read them; UTC where no zone is named. */

const MOMENT = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?$/;
const DAY_SECONDS = 24 * 60 * 60;

/** Epoch seconds; undefined for what is no moment. Of a day alone it is the beginning, or else the end, which is the next day's beginning. */
export function parseMoment(text: string, ofDay: 'beginning' | 'end' = 'beginning'): number | undefined {
  const [, day, time, zone = 'Z'] = MOMENT.exec(text.trim()) ?? [];
  if (day === undefined || !isDay(day)) return undefined;
  const ms = Date.parse(`${day}T${time ?? '00:00'}${zone}`);
  if (Number.isNaN(ms)) return undefined;
  return ms / 1000 + (time === undefined && ofDay === 'end' ? DAY_SECONDS : 0);
}

/** `Date.parse` takes the 31st of February for the 3rd of March. */
function isDay(day: string): boolean {
  const at = new Date(`${day}T00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day);
}

/** Two digits are enough to compare by. */
export function formatDuration(ms: number): string {
  if (ms < 100) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 99.5) return `${Math.round(minutes)} min`;
  const hours = minutes / 60;
  return hours < 47.5 ? `${Math.round(hours)} h` : `${Math.round(hours / 24)} d`;
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 turn`, `2 turns`; a noun with an irregular plural names it. */
export function formatQuantity(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Of a prompt's tokens; empty where no cache was used. */
export function describeCached({
  inputTokens,
  cachedTokens,
  cacheWriteTokens = 0,
}: {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly cacheWriteTokens?: number | undefined;
}): string {
  if (cachedTokens + cacheWriteTokens === 0) return '';
  const written = cacheWriteTokens > 0 ? `, ${formatCount(cacheWriteTokens)} written to the cache` : '';
  return `${formatCount(cachedTokens)} cached${written}, ${formatCount(Math.max(0, inputTokens - cachedTokens - cacheWriteTokens))} not`;
}

const PREFIX_CAUSES: Readonly<Record<string, string>> = {
  'new epoch': 'a new epoch (a session, a compaction or a trim)',
  memory: 'what left MEMORY.md',
  model: 'another model',
  'agent or tools': 'the agent’s files or tools',
};

/** How often the beginning of the prompt was another, so that no cache had it, and why last. Undefined: never. */
export function describePrefix({
  prefixChanges,
  prefixCause,
}: {
  readonly prefixChanges: number;
  readonly prefixCause: string | null;
}): string | undefined {
  if (prefixChanges === 0 || prefixCause === null) return undefined;
  const cause = PREFIX_CAUSES[prefixCause] ?? prefixCause;
  return `the beginning of the prompt has changed ${formatQuantity(prefixChanges, 'time')}, the last time by ${cause}`;
}

/** For how many days conversations are kept that are over or idle; null: for good. Of a tenant that is not named, `days` counts. */
export interface Retention {
  readonly days: number | null;
  readonly tenants: Readonly<Record<string, number | null>>;
}

const MAX_DAYS = 36_500;

/** `90d,acme=30d,globex=off`. Undefined for what is none. */
export function parseRetention(text: string): Retention | undefined {
  let days: number | null = null;
  const tenants: Record<string, number | null> = Object.create(null) as Record<string, number | null>;
  for (const part of text.split(',').map((one) => one.trim())) {
    const [, tenant, amount, off] = /^(?:([a-z0-9][a-z0-9-]{0,38})=)?(?:(\d{1,5})d|(off))$/.exec(part) ?? [];
    if (amount === undefined && off === undefined) return undefined;
    const wanted = amount === undefined ? null : Number(amount);
    if (wanted !== null && (wanted < 1 || wanted > MAX_DAYS)) return undefined;
    if (tenant === undefined) days = wanted;
    else tenants[tenant] = wanted;
  }
  return { days, tenants };
}

/** Null: for good. */
export function retentionDays({ days, tenants }: Retention, tenant: string | undefined): number | null {
  const named = tenant === undefined ? undefined : tenants[tenant];
  return named === undefined ? days : named;
}
