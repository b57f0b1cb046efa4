import {
  checkProcessors,
  memoryIngest,
  MEMORY_INGEST_ORDER,
  runProcessors,
  type InputProcessor,
  type ProcessorContext,
} from '../../src/memory/processors.js';

const CONTEXT: ProcessorContext = { conversation: 'conv_8', scope: 'default', session: 1, turn: 'turn_0001' };

/** As a person would write one: what looks like a key never reaches memory or a model. */
const redactSecrets: InputProcessor = {
  name: 'redact-secrets',
  order: 500,
  process: (text) => text.replace(/\b(?:sk|ghp|xox[bp])[-_][\w-]{8,}/g, '[redacted]'),
};

const appending = (name: string, order: number): InputProcessor => ({ name, order, process: (text) => `${text} ${name}` });

test('processors run by their order, each on what the one before made of the text', async () => {
  const processors = [appending('c', 700), appending('a', -1), appending('b2', 5), appending('b1', 5)];
  expect(await runProcessors(processors, 'text', CONTEXT)).toBe('text a b1 b2 c');
  expect(await runProcessors([], 'text', CONTEXT)).toBe('text');
});

test('memory’s own runs at 900 and stores what the model will see: a redacted secret is stored nowhere', async () => {
  const stored: unknown[] = [];
  const ingest = memoryIngest<ProcessorContext>('MemoryIngestInputProcessor', async (text, context) => void stored.push({ text, context }));
  expect(MEMORY_INGEST_ORDER).toBe(900);
  expect(ingest).toMatchObject({ name: 'MemoryIngestInputProcessor', order: 900 });
  expect(await runProcessors([ingest, redactSecrets], 'use sk-abcdefgh1234 here', CONTEXT)).toBe('use [redacted] here');
  expect(stored).toEqual([{ text: 'use [redacted] here', context: CONTEXT }]);
});

test('run again on the same text they make the same of it', async () => {
  const once = await runProcessors([redactSecrets], 'key ghp_0123456789', CONTEXT);
  expect(await runProcessors([redactSecrets], 'key ghp_0123456789', CONTEXT)).toBe(once);
  expect(await runProcessors([redactSecrets], once, CONTEXT)).toBe(once);
});

test.each([
  [
    'throws',
    () => {
      throw new Error('no pattern');
    },
    'no pattern',
  ],
  ['rejects', () => Promise.reject(new Error('no pattern')), 'no pattern'],
  ['hands back nothing', () => undefined as unknown as string, 'it handed back undefined, no text'],
  ['hands back null', () => null as unknown as string, 'it handed back null, no text'],
])('one that %s is named, and the text goes no further', async (_, process, reason) => {
  const stored: string[] = [];
  const processors = [
    { name: 'mine', order: 500, process },
    memoryIngest('MemoryIngestInputProcessor', async (text) => void stored.push(text)),
  ];
  await expect(runProcessors(processors, 'secret', CONTEXT)).rejects.toMatchObject({
    name: 'ProcessorFailed',
    processor: 'mine',
    message: `the processor mine failed: ${reason}; the text was not taken in, correct the processor`,
  });
  expect(stored).toEqual([]);
});

test('a store that is away is no fault of a processor', async () => {
  const away = new Error('redis closed');
  await expect(runProcessors([memoryIngest('MemoryIngestInputProcessor', () => Promise.reject(away))], 'text', CONTEXT)).rejects.toBe(away);
});

test('what could not work is refused before the first message', () => {
  expect(() => checkProcessors([redactSecrets, appending('a', 899.5)])).not.toThrow();
  expect(() => checkProcessors([appending('late', 900)])).toThrow(/cannot use the processor late: its order is 900, .* below 900/);
  expect(() => checkProcessors([appending('odd', NaN)])).toThrow('its order is NaN');
  expect(() => checkProcessors([appending('a', 1), appending('a', 2)])).toThrow('two processors with the name a');
  expect(() => checkProcessors([appending(' ', 1)])).toThrow('without a name');
});
