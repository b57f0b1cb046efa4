/**
 * The audit file (PERDURA_AUDIT_FILE): one line of JSON for each event of each conversation that a worker runs.
 *
 * - No text: of the words of people, models and tools only sizes stand there. For texts there is `perdura admin export`.
 * - Ids, names and kinds are bounded, and secrets are taken out of them: a model has made up the names of tools.
 * - Each batch opens the file anew to append to it: another program may move the file at any time, and several workers may share it.
 * - Mode 0600. A failed write is logged, lost lines are counted and reported, and nothing waits for it.
 */
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ConversationEvent } from '../conversation/event.js';
import type { EffectEvent } from '../conversation/effect.js';
import type { Notification, StateSummary } from '../conversation/views/observation.js';
import { createDelivery, type Delivery, type DeliveryLog, type Observed } from './observer.js';
import { plainJsonLine, type Redactor } from './log.js';
import { isRecord } from '../platform/json.js';

export interface AuditOptions {
  readonly file: string;
  readonly redactor: Pick<Redactor, 'text'>;
  readonly log: () => DeliveryLog;
  readonly onLost?: (count: number) => void;
}

export interface AuditLine {
  readonly ts: string;
  readonly namespace: string;
  readonly conversation: string;
  readonly runId: string;
  readonly kind: ConversationEvent['kind'];
  readonly event: Readonly<Record<string, unknown>>;
  readonly notifications?: readonly Readonly<Record<string, unknown>>[];
}

const MAX_LINES = 10_000;
const BATCH = 500;
const TEXT_CHARACTERS = 200;
const DEEPEST = 4;
const MAX_ITEMS = 50;

/** Strings under these names are ids, names and kinds; any other string is a text. */
const NAMED = new Set(
  (
    'kind effect id messageId resetId requestId callId callIds call turn turnId turns turn_ids child conversation life model name tool type ' +
    'outcome stop stopReason delivery decision mode method compactor inputsHash op status why delivered hash agent agentHash scope consolidation ' +
    'did stepId task_id addedChunks removedChunkIds episode'
  ).split(' '),
);
/** Made by an application, a model or a tool, with names of their choice: only the size is written. */
const FOREIGN = new Set(['payload', 'output', 'context', 'input', 'startContext', 'values']);
/** Lists of which each item stands there, as far as it is an object: what ran. */
const LISTED = new Set(['tools']);
/** Known already from the kind of the event, or of no use to readers of the file. */
const LEFT_OUT = new Set(['at', 'kind', 'signature', 'data']);

export function createAudit({ file, redactor, log, onLost }: AuditOptions): {
  readonly observer: (event: ConversationEvent, of: Observed) => void;
  readonly delivery: Delivery<AuditLine>;
} {
  const delivery = createDelivery<AuditLine>({
    to: `the audit file ${file}`,
    log,
    limit: MAX_LINES,
    batch: BATCH,
    ...(onLost && { onLost }),
    deliver: (lines) => append(file, lines.map((line) => `${plainJsonLine(redactor.text(JSON.stringify(line)))}\n`).join('')),
  });
  return { delivery, observer: (event, of) => delivery.take(toLine(event, of)) };
}

export function toLine(event: ConversationEvent, { namespace, conversation, runId, notifications }: Observed): AuditLine {
  const listed = notifications.map((one) => notification(one));
  return {
    ts: new Date(event.at).toISOString(),
    namespace,
    conversation,
    runId,
    kind: event.kind,
    event: 'effect' in event ? effectFields(event) : fields(event as unknown as Readonly<Record<string, unknown>>, 0),
    ...(listed.length > 0 && { notifications: listed }),
  };
}

/** An effect's input and output are ours, and so is the reason for which a model step did not ask the model. */
function effectFields(event: EffectEvent): Record<string, unknown> {
  const { input, output, ...rest }: Readonly<Record<string, unknown>> = { ...event };
  const { kind, reason, ...values } = isRecord(output) ? output : {};
  return {
    ...fields(rest, 0),
    ...(isRecord(input) && { input: fields(input, 1) }),
    ...(isRecord(output) && {
      output: { ...(kind !== undefined && { kind }), ...(kind === 'deferred' && { reason }), ...fields(values, 1) },
    }),
    ...(typeof output === 'string' && { output }),
  };
}

function notification(one: Notification): Readonly<Record<string, unknown>> {
  const summary = ({ epoch, chunks, contextTokens, queued }: StateSummary) => ({ epoch, chunks, contextTokens, queued });
  if (one.kind === 'state-changed') return { kind: one.kind, before: summary(one.before), after: summary(one.after) };
  return { kind: one.kind, ...fields(one as unknown as Readonly<Record<string, unknown>>, 1) };
}

function fields(of: Readonly<Record<string, unknown>>, depth: number): Record<string, unknown> {
  const kept = Object.entries(of)
    .filter(([name, value]) => !LEFT_OUT.has(name) && value !== undefined && value !== null)
    .slice(0, MAX_ITEMS);
  return Object.fromEntries(kept.map(([name, value]) => shown(name.slice(0, TEXT_CHARACTERS), value, depth)));
}

function shown(name: string, value: unknown, depth: number): [string, unknown] {
  if (typeof value === 'number' || typeof value === 'boolean') return [name, value];
  if (typeof value === 'string') return NAMED.has(name) ? [name, value.slice(0, TEXT_CHARACTERS)] : [`${name}Characters`, value.length];
  if (Array.isArray(value)) {
    const items = value.slice(0, MAX_ITEMS) as readonly unknown[];
    if (NAMED.has(name) && value.every((item) => typeof item === 'string'))
      return [name, (items as readonly string[]).map((item) => item.slice(0, TEXT_CHARACTERS))];
    if (LISTED.has(name) && depth < DEEPEST && value.every(isRecord))
      return [name, items.filter(isRecord).map((item) => fields(item, depth + 1))];
    return [`${name}Count`, value.length];
  }
  if (!isRecord(value)) return [name, null];
  if (FOREIGN.has(name) || depth >= DEEPEST) return [`${name}Characters`, JSON.stringify(value).length];
  return [name, fields(value, depth + 1)];
}

async function append(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(file, 'a', 0o600);
  try {
    // One that was there before may be open to others.
    if ((((await handle.stat()).mode ?? 0) & 0o077) !== 0) await handle.chmod(0o600);
    await handle.appendFile(text, 'utf8');
  } finally {
    await handle.close();
  }
}
