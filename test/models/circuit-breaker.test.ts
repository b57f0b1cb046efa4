/** What a worker has seen of models that cannot answer: when they are not asked, and when they are again. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCircuits, type Circuits, type OpenCircuit, readCircuits, writeCircuits } from '../../src/models/circuit-breaker.js';
import { checkCircuits } from '../../src/cli/doctor/checks.js';
import { ModelFailure, type ModelFailureKind } from '../../src/models/model.js';

const [BIG, SMALL] = ['anthropic/big', 'anthropic/small'];

interface Watched extends Circuits {
  readonly pass: (ms: number) => void;
  readonly fails: (name: string, kind: ModelFailureKind, times?: number, retryAfterMs?: number) => void;
  readonly changes: (readonly [of: string, open: readonly string[]])[];
}

function circuits(): Watched {
  let at = 1_000;
  const changes: Watched['changes'] = [];
  const made = createCircuits({ now: () => at, changed: (open, of) => void changes.push([of, open.map((one) => one.of)]) });
  return {
    ...made,
    changes,
    pass: (ms) => void (at += ms),
    fails(name, kind, times = 1, retryAfterMs) {
      for (let i = 0; i < times; i++)
        made.note(name, new ModelFailure(kind, 'it failed', retryAfterMs === undefined ? {} : { retryAfterMs }));
    },
  };
}

test('a model is asked until it has failed three times in a row', () => {
  const { fails, refusal, note } = circuits();
  fails(BIG, 'overloaded', 2);
  expect(refusal(BIG)).toBeUndefined();
  note(BIG);
  fails(BIG, 'overloaded', 2);
  expect(refusal(BIG)).toBeUndefined();
  fails(BIG, 'overloaded');
  expect(refusal(BIG)).toMatchObject({
    type: 'overloaded',
    transient: true,
    retryAfterMs: 30_000,
    message: expect.stringContaining('not called') as unknown,
  });
});

test('an overload or a limit is one model’s, a fault of the server or the way to it is the provider’s', () => {
  for (const kind of ['overloaded', 'rate-limit'] as const) {
    const { fails, refusal } = circuits();
    fails(BIG, kind, 3);
    expect([refusal(BIG) !== undefined, refusal(SMALL) !== undefined]).toEqual([true, false]);
  }
  for (const kind of ['server', 'timeout', 'connection', 'broken-stream'] as const) {
    const { fails, refusal } = circuits();
    fails(BIG, kind, 3);
    expect([refusal(BIG) !== undefined, refusal(SMALL) !== undefined, refusal('openai/x') !== undefined]).toEqual([true, true, false]);
  }
});

test.each(['auth', 'invalid-request', 'context-full', 'not-found', 'missing-key'] as const)('%s closes no way, and opens one', (kind) => {
  const { fails, refusal } = circuits();
  fails(BIG, kind, 9);
  expect(refusal(BIG)).toBeUndefined();
  fails(BIG, 'server', 2);
  fails(BIG, kind);
  fails(BIG, 'server', 2);
  expect(refusal(BIG)).toBeUndefined();
});

test('after its rest one call tries, the others wait for what it finds', () => {
  const { fails, refusal, note, pass, open } = circuits();
  fails(BIG, 'server', 3);
  pass(29_999);
  expect(refusal(BIG)).toBeDefined();
  pass(1);
  expect(refusal(BIG)).toBeUndefined();
  expect(refusal(SMALL)).toBeDefined();
  fails(BIG, 'server');
  pass(29_000);
  expect(refusal(SMALL)).toBeDefined();
  pass(1_000);
  expect(refusal(SMALL)).toBeUndefined();
  note(SMALL);
  expect([refusal(BIG), refusal(SMALL)]).toEqual([undefined, undefined]);
  expect(open()).toEqual([]);
});

test('a try that never ends keeps nobody away for longer than another rest', () => {
  const { fails, refusal, pass } = circuits();
  fails(BIG, 'server', 3);
  pass(30_000);
  expect(refusal(BIG)).toBeUndefined();
  expect(refusal(BIG)).toBeDefined();
  pass(30_000);
  expect(refusal(BIG)).toBeUndefined();
});

test('it rests for as long as the provider has asked, within ten minutes', () => {
  const { fails, refusal } = circuits();
  fails(BIG, 'rate-limit', 3, 120_000);
  expect(refusal(BIG)).toMatchObject({ retryAfterMs: 120_000 });
  fails(SMALL, 'rate-limit', 3, 10 * 3_600_000);
  expect(refusal(SMALL)).toMatchObject({ retryAfterMs: 600_000 });
});

test('each change is reported once, with what is open', () => {
  const { fails, note, changes } = circuits();
  fails(BIG, 'server', 3);
  note(BIG);
  note(BIG);
  expect(changes).toEqual([
    ['anthropic', ['anthropic']],
    ['anthropic', []],
  ]);
});

test('names without end are not kept', () => {
  const { fails, open } = circuits();
  for (let i = 0; i < 500; i++) fails(`anthropic/m${i}`, 'overloaded', 3);
  expect(open().length).toBeLessThanOrEqual(200);
});

describe('for the doctor', () => {
  let dir: string;
  beforeEach(async () => void (dir = await mkdtemp(join(tmpdir(), 'perdura-circuits-'))));
  afterEach(() => rm(dir, { recursive: true, force: true }));
  const one: OpenCircuit = { of: 'anthropic', reason: 'server', message: '503', until: 31_000 };

  test('what a living worker of the folder does not ask is there, of a dead one or a broken file nothing', async () => {
    expect(readCircuits(dir)).toEqual([]);
    writeCircuits(dir, [one]);
    await writeFile(join(dir, '.perdura', 'circuits', '999999999.json'), JSON.stringify({ v: 1, open: [one] }));
    await writeFile(join(dir, '.perdura', 'circuits', '1.json'), '{');
    expect(readCircuits(dir)).toEqual([{ ...one, pid: process.pid }]);
    expect(checkCircuits(dir, 1_000)).toEqual([
      expect.objectContaining({
        what: 'Fallback',
        health: 'warning',
        found: expect.stringMatching(/does not ask anthropic for 30 s more.*server: 503/) as unknown,
      }),
    ]);
    writeCircuits(dir, []);
    expect(readCircuits(dir)).toEqual([]);
  });

  test('a folder that cannot be written to is no reason to fail', async () => {
    await writeFile(join(dir, 'file'), '');
    expect(() => writeCircuits(join(dir, 'file'), [one])).not.toThrow();
    expect(readCircuits(join(dir, 'file'))).toEqual([]);
  });
});
