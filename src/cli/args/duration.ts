import { InvalidArgumentError } from 'commander';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** `30s`, `1.5m`, `500ms`; a bare number is seconds. Answers milliseconds. For an option of commander. */
export function parseDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|min|m|h|d)?$/.exec(text.trim());
  const ms = Number(match?.[1]) * (UNITS[match?.[2] ?? 's'] ?? NaN);
  // Longer ones overflow Node's timers.
  if (!(ms > 0) || ms > 2 ** 31 - 1) throw new InvalidArgumentError('write a duration such as 30s, 5m or 1h.');
  return ms;
}

/** For a schedule. */
export function parseInterval(text: string): number {
  const ms = parseDuration(text);
  if (ms < 60_000) throw new InvalidArgumentError('write a minute or more, such as 30m, 24h or 7d.');
  return ms;
}

export function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError('write a whole number from 1.');
  return count;
}
