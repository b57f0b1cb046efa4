/** Recorded histories: one file a run, one event a line, long ones compressed, with nothing in it of the machine that recorded it. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Client } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { LATEST_RULES } from '../../src/conversation/opening.js';

export const HISTORIES = join(__dirname, 'histories');

export interface HistoryEvent {
  readonly eventType: string;
  readonly workflowExecutionStartedEventAttributes?: {
    readonly workflowId?: string;
    readonly originalExecutionRunId?: string;
    readonly continuedExecutionRunId?: string;
  };
  readonly [field: string]: unknown;
}

export interface RecordedRun {
  /** File name without its suffix; a run of a chain ends in its number: `hand-over.2`. */
  readonly name: string;
  readonly history: { readonly events: readonly HistoryEvent[] };
}

export function readHistories(): RecordedRun[] {
  return readdirSync(HISTORIES)
    .filter((file) => SUFFIX.test(file))
    .sort()
    .map((file) => ({ name: file.replace(SUFFIX, ''), history: JSON.parse(readText(file)) as RecordedRun['history'] }));
}

const SUFFIX = /\.json(\.gz)?$/;

function readText(file: string): string {
  const bytes = readFileSync(join(HISTORIES, file));
  return (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
}

export function workflowIdOf({ history }: RecordedRun): string {
  return history.events[0]?.workflowExecutionStartedEventAttributes?.workflowId ?? 'fake';
}

/** All runs of a conversation, first to last. */
export async function fetchChain(client: Client, id: string): Promise<RecordedRun['history'][]> {
  const chain: RecordedRun['history'][] = [];
  for (let runId: string | undefined; ;) {
    const fetched = await client.workflow.getHandle(id, runId).fetchHistory();
    const history = scrub(JSON.parse(historyToJSON(fetched))) as RecordedRun['history'];
    chain.unshift(history);
    runId = history.events[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
    if (!runId) return chain;
  }
}

/**
 * Writes every run, in the place of what was there under that name; one of more than `largest` bytes is compressed. Answers their sizes by file. What earlier rules recorded stays:
 * conversations of theirs may still be running somewhere.
 */
export function writeChain(name: string, chain: readonly RecordedRun['history'][], largest: number): Map<string, number> {
  const there = readdirSync(HISTORIES).filter((file) => file.replace(SUFFIX, '').replace(/\.\d+$/, '') === name);
  const earlier = there.find((file) => isOfEarlierRules(readText(file)));
  if (earlier !== undefined) {
    throw new Error(`${earlier} was recorded by earlier rules, which must go on replaying: give the new one another name`);
  }
  const files = chain.map(({ events }, index): readonly [string, Buffer] => {
    const file = chain.length === 1 ? `${name}.json` : `${name}.${index + 1}.json`;
    const text = Buffer.from(`{"events":[\n${events.map((event) => JSON.stringify(event)).join(',\n')}\n]}\n`);
    return text.length > largest ? [`${file}.gz`, gzipSync(text, { level: 9 })] : [file, text];
  });
  const large = files.find(([, bytes]) => bytes.length > largest);
  if (large) throw new Error(`${large[0]} of ${large[1].length} bytes is too large to keep`);
  for (const file of there) rmSync(join(HISTORIES, file));
  for (const [file, bytes] of files) writeFileSync(join(HISTORIES, file), bytes);
  return new Map(files.map(([file, bytes]) => [file, bytes.length]));
}

/** Of the first rules there is no mark in a history. */
function isOfEarlierRules(text: string): boolean {
  if (LATEST_RULES === 1) return false;
  const readable = JSON.stringify(withReadablePayloads(JSON.parse(text)));
  return readable.includes('"workflowType":{"name":"conversation"}') && !readable.includes(`rules-${LATEST_RULES}`);
}

const root = resolve(__dirname, '../..');
const PLACES: readonly (readonly [string | RegExp, string])[] = [
  [new RegExp(`${escaped(tmpdir())}/perdura-[A-Za-z]+-[A-Za-z0-9]+`, 'g'), '/conversation'],
  [root, '/perdura'],
  [tmpdir(), '/temp'],
  [homedir(), '~'],
  ...(hostname().length > 5 ? [[hostname(), 'host'] as const] : []),
];

/** Who worked, where, and in which files: a replay needs none of it. */
export function scrub(value: unknown): unknown {
  if (typeof value === 'string') return scrubText(value);
  if (Array.isArray(value)) return value.map(scrub);
  if (typeof value !== 'object' || value === null) return value;
  const fields = value as Record<string, unknown>;
  if (fields['kind'] === 'TASK_QUEUE_KIND_STICKY') return { ...fields, name: 'sticky' };
  if (isJsonPayload(fields)) return { ...fields, data: scrubPayload(fields['data']) };
  return Object.fromEntries(Object.entries(fields).map(([key, inner]) => [key, scrubField(key, inner)]));
}

function scrubField(key: string, inner: unknown): unknown {
  if (key === 'identity') return 'machine';
  return key === 'stackTrace' ? '' : scrub(inner);
}

function isJsonPayload(fields: Record<string, unknown>): fields is { metadata: unknown; data: string } {
  const encoding = (fields['metadata'] as { encoding?: unknown } | undefined)?.encoding;
  return typeof fields['data'] === 'string' && typeof encoding === 'string' && base64ToText(encoding) === 'json/plain';
}

function scrubPayload(data: string): string {
  const text = base64ToText(data);
  const clean = scrubText(text);
  // What is no UTF-8 comes back as it was.
  return clean === text ? data : Buffer.from(clean).toString('base64');
}

function scrubText(text: string): string {
  return PLACES.reduce((now, [place, name]) => now.replaceAll(place, name), text);
}

/** The same with its payloads readable, for questions about what is in it. */
export function withReadablePayloads(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withReadablePayloads);
  if (typeof value !== 'object' || value === null) return value;
  const fields = value as Record<string, unknown>;
  if (isJsonPayload(fields)) {
    try {
      return JSON.parse(base64ToText(fields.data)) as unknown;
    } catch {
      return fields;
    }
  }
  return Object.fromEntries(Object.entries(fields).map(([key, inner]) => [key, withReadablePayloads(inner)]));
}

function base64ToText(data: string): string {
  return Buffer.from(data, 'base64').toString('utf8');
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
