import { loadConfig, secretsOf, type LogLevel } from '../../src/config.js';
import { createLog, createRedactor } from '../../src/telemetry/log.js';

const CANARY = 'sk-ant-canary/7"+é';

function logOf({ level = 'info' as LogLevel, readable = false, secrets = [CANARY] } = {}) {
  const written: string[] = [];
  const redactor = createRedactor(secrets);
  const log = createLog({ level, redactor, readable, stream: { write: (line) => written.push(line) } });
  return { log, redactor, written, lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

test('a line is JSON, with what people look for first, and a conversation is not said twice', () => {
  const { log, lines } = logOf();
  log.info('model answered', { workflowId: 'c-1', taskQueue: 'perdura', attempt: 2, turn: 't3', outputTokens: 7 });
  expect(lines()).toEqual([
    {
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      pid: process.pid,
      conversation: 'c-1',
      turn: 't3',
      attempt: 2,
      taskQueue: 'perdura',
      outputTokens: 7,
      msg: 'model answered',
    },
  ]);
});

test('a secret is nowhere: not in messages, fields and their names, errors, stacks, causes, nor in a URL', () => {
  const { log, written } = logOf({ level: 'trace' });
  const cause = Object.assign(new Error(`refused ${CANARY}`), { headers: { 'x-api-key': 'another', given: CANARY } });
  log.warn(`key ${CANARY}`, { error: new Error(`cannot use ${CANARY}`, { cause }) });
  log.log('ERROR', 'deep', { list: [{ a: { b: [CANARY] } }], [CANARY]: 1 });
  log.trace('url', { url: `redis://:${encodeURIComponent(CANARY)}@host`, body: JSON.stringify({ key: CANARY }) });
  const all = written.join('');
  expect(written).toHaveLength(3);
  for (const part of ['canary', 'another', encodeURIComponent(CANARY)]) expect(all).not.toContain(part);
  expect(all).toContain('refused [redacted]');
});

test('a secret that becomes known later is kept too', () => {
  const { log, redactor, written } = logOf({ secrets: [] });
  redactor.add(['from-a-profile']);
  log.info('key from-a-profile');
  expect(written.join('')).not.toContain('from-a-profile');
});

test('the secrets of the settings are the key, the passwords in URLs and what Temporal is given', () => {
  const config = loadConfig(
    {
      ANTHROPIC_API_KEY: 'sk-1',
      REDIS_URL: 'redis://ada:p%40ss@host:6379/0',
      TEMPORAL_API_KEY: 'tk-1',
      TEMPORAL_GRPC_META_TOKEN: 'meta',
      TEMPORAL_NAMESPACE: 'agents',
    },
    '/nowhere',
  );
  expect(secretsOf(config)).toEqual(['sk-1', 'p%40ss', 'p@ss', 'tk-1', 'meta']);
});

test('what goes round, is deep or is no data does not stop a line', () => {
  const { log, lines } = logOf();
  const round: Record<string, unknown> = { big: 1n, bytes: Buffer.from('abc') };
  round['itself'] = round;
  log.info('odd', { round });
  expect(lines()[0]).toMatchObject({ round: { big: '1', bytes: '3 bytes' } });
});

test('below its level nothing is written', () => {
  const { log, written } = logOf({ level: 'warn' });
  log.info('no');
  log.debug('no');
  expect(written).toEqual([]);
});

test('on a terminal a line is for eyes, and what is in it commands nothing', () => {
  const { log, written } = logOf({ readable: true });
  log.warn('tool \x1b]0;title\x07finished', { workflowId: 'c-1', turn: 't1', error: new Error('it broke') });
  const [line = ''] = written;
  expect(line).toMatch(/^\d\d:\d\d:\d\d .*warn .*tool {2}\]0;title finished .*conversation=c-1 turn=t1/);
  expect(line).toMatch(/\n {4}Error: it broke\n/);
  expect(line).not.toContain('\x07');
});

test.each([true, false])('no character steers a terminal that shows the log, readable: %s', (readable) => {
  const { log, written } = logOf({ readable });
  const hostile = 'a\x9b2J\x9d0;x\x9c\u202eb\u200bc\u{e0041}d\u2028e\x1b[8mf';
  log.warn(hostile, { tool: hostile, error: new Error(hostile) });
  const plain = written.join('').replace(/\x1b\[(2|22|33|39)m/g, '');
  expect(plain).not.toMatch(/[^\P{C}\n]|[\u2028\u2029]/u);
  if (!readable) expect(JSON.parse(written.join(''))).toMatchObject({ msg: hostile, tool: hostile });
});
