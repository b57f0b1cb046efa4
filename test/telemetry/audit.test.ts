/** The audit file: what stands in a line, and a disk that does not take it. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConversationEvent } from '../../src/conversation/event.js';
import { createAudit, toLine } from '../../src/telemetry/audit.js';
import type { Observed } from '../../src/telemetry/observer.js';
import { createRedactor } from '../../src/telemetry/log.js';
import { waitFor } from '../support/wait-for.js';

const OF: Observed = { namespace: 'default', conversation: 'c', runId: 'r', notifications: [], change: null };
const AT = Date.UTC(2026, 0, 2);
const message = (text: string): ConversationEvent => ({ kind: 'message-received', messageId: 'm1', text, delivery: 'queue', at: AT });

/** A quick tool that rode, without its text. */
const RAN = {
  life: 'l',
  session: 1,
  turn: 'turn_0001',
  callId: 'turn_0001/c1',
  name: 'get_time',
  slot: 3,
  ts: 1,
  ms: 4,
  outcome: 'ok',
  persisted: true,
} as const;

let dir: string;
let said: { message: string; meta?: Readonly<Record<string, unknown>> }[] = [];
beforeEach(() => {
  said = [];
  dir = mkdtempSync(join(tmpdir(), 'perdura-audit-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function open(file: string, secrets: readonly string[] = []) {
  return createAudit({
    file,
    redactor: createRedactor(secrets),
    log: () => ({ warn: (text, meta) => void said.push({ message: text, meta }) }),
  });
}

test('a line has ids, names and numbers; texts are sizes, whatever they are called and however deep they lie', () => {
  const step: ConversationEvent = {
    kind: 'effect-completed',
    effect: 'model-step',
    id: 'turn_0001/m2',
    at: AT,
    output: {
      kind: 'answered',
      written: { messages: [] },
      tools: [{ ...RAN, text: 'private', contextChange: { ref: 'private', on: null, values: { name: 'private' } } }],
      answer: {
        ...{ life: 'l', session: 1, turn: 'turn_0001', call: 'turn_0001/m2', slot: 2, ts: 1, model: 'anthropic/x' },
        blocks: [{ kind: 'text', text: 'private' }],
        stop: 'end',
        usage: { inputTokens: 5, cachedTokens: 0, outputTokens: 2, costUsd: null },
        plans: [],
        persisted: true,
      },
    },
  };
  expect(toLine(step, OF)).toEqual({
    ts: '2026-01-02T00:00:00.000Z',
    namespace: 'default',
    conversation: 'c',
    runId: 'r',
    kind: 'effect-completed',
    event: {
      effect: 'model-step',
      id: 'turn_0001/m2',
      output: {
        kind: 'answered',
        written: { messagesCount: 0 },
        tools: [{ ...RAN, textCharacters: 7, contextChange: { refCharacters: 7, valuesCharacters: 18 } }],
        answer: {
          ...{ life: 'l', session: 1, turn: 'turn_0001', call: 'turn_0001/m2', slot: 2, ts: 1, model: 'anthropic/x' },
          blocksCount: 1,
          stop: 'end',
          usage: { inputTokens: 5, cachedTokens: 0, outputTokens: 2 },
          plansCount: 0,
          persisted: true,
        },
      },
    },
  });
});

test('why a model step asked no model stands there, and what a step writes is counted', () => {
  const at = AT;
  const of = { written: { messages: [] }, tools: [] };
  const deferred: ConversationEvent = {
    ...{ kind: 'effect-completed', effect: 'model-step', id: 'turn_0001/m1', at },
    output: { ...of, kind: 'deferred', reason: 'budget' },
  };
  expect(toLine(deferred, OF).event).toMatchObject({ output: { kind: 'deferred', reason: 'budget', tools: [] } });
  const started: ConversationEvent = {
    ...{ kind: 'effect-started', effect: 'store-step', id: '7', at },
    input: {
      identity: { life: 'l', agent: 'a', scope: 's' },
      session: 1,
      write: {
        messages: [{ messageId: 'm', slot: 1, turn: 'turn_0001', seq: 1, session: 1, ts: 1, text: 'private' }],
        ...{ settle: [], entries: [], feed: [], startContext: { name: 'private' } },
      },
      rehydrate: [],
    },
  };
  expect(toLine(started, OF).event).toEqual({
    effect: 'store-step',
    id: '7',
    input: {
      identity: { life: 'l', agent: 'a', scope: 's' },
      session: 1,
      write: { messagesCount: 1, settleCount: 0, entriesCount: 0, feedCount: 0, startContextCharacters: 18 },
      rehydrateCount: 0,
    },
  });
});

test('of an application’s payload only its size stands there, also where its fields have names like ours', () => {
  const event: ConversationEvent = { kind: 'app-event-received', id: 'e', type: 't', payload: { name: 'private', id: 'private' }, at: AT };
  expect(toLine(event, OF).event).toEqual({ id: 'e', type: 't', payloadCharacters: 33 });
});

test('appended, 0600 also where the file was open to others, without secrets; another program may move it away', async () => {
  const file = join(dir, 'deep', 'audit.jsonl');
  mkdirSync(join(dir, 'deep'));
  writeFileSync(file, 'older\n');
  chmodSync(file, 0o644);
  const audit = open(file, ['hunter22']);
  audit.observer({ ...message('x'), messageId: 'hunter22' } as ConversationEvent, OF);
  await waitFor(
    () => readFileSync(file, 'utf8'),
    (text) => text.split('\n').length === 3,
  );
  renameSync(file, `${file}.1`);
  audit.observer(message('y'), OF);
  await audit.delivery.close(5_000);
  const [older, first] = readFileSync(`${file}.1`, 'utf8').split('\n');
  expect(older).toBe('older');
  expect(JSON.parse(first ?? '')).toMatchObject({ event: { messageId: '[redacted]', textCharacters: 1 } });
  expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(1);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(`${file}.1`).mode & 0o777).toBe(0o600);
});

test('a file that cannot be written is said once, what is lost is counted, and taking goes on at once', async () => {
  mkdirSync(join(dir, 'a-folder'));
  const audit = open(join(dir, 'a-folder'));
  for (let n = 0; n < 1_200; n++) audit.observer(message('x'), OF);
  await audit.delivery.close(5_000);
  expect(audit.delivery.lost()).toBe(1_200);
  expect(said.filter(({ message: text }) => text.includes('failed'))).toHaveLength(1);
  expect(said.reduce((sum, { meta }) => sum + Number(meta?.['lost'] ?? 0), 0)).toBe(1_200);
});
