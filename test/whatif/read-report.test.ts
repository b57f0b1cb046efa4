/** A report's file as anybody may hand it in: read line by line, within bounds, with errors that name the place. */
import * as fc from 'fast-check';
import { MAX_LINE_BYTES, readPlacedLines, readReport, ReportError } from '../../src/whatif/read-report.js';
import type { ReportLine } from '../../src/whatif/report.js';
import { HOSTILE, sampleFile, sampleReport, type SampleOptions } from './sample-report.js';

async function* from(...chunks: readonly (Uint8Array | string)[]): AsyncGenerator<Uint8Array | string, void> {
  for (const chunk of chunks) yield await Promise.resolve(chunk);
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const KINDS: readonly SampleOptions[] = [
  {},
  { candidate: 'worse', judge: 'anthropic/claude-opus-5', skippedEach: 3, gapsEach: 2 },
  { candidate: 'stopped', lanes: ['candidate'] },
  { text: HOSTILE, candidate: 'noisy', conversations: 4 },
];

test.each(KINDS)('what is written is read again: %j', async (options) => {
  const written = await all(sampleReport(options));
  expect(await all(readReport(from(await sampleFile(options)), 'report.jsonl'))).toEqual(JSON.parse(JSON.stringify(written)));
});

test('wherever its bytes are cut, with line ends of any kind, and each line is at its place', async () => {
  const text = await sampleFile({ conversations: 3, text: 'Für 3,50 € 🦔\u2028', candidate: 'words' });
  const plain = await all(readReport(from(text), 'report.jsonl'));
  const bytes = Buffer.from(`\ufeff${text.replaceAll('\n', '\r\n')}\n\n`);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 40 }), async (cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      const parts = places.slice(1).map((to, at) => new Uint8Array(bytes.subarray(places[at], to)));
      const placed = await all(readPlacedLines(from(...parts), 'report.jsonl'));
      expect(placed.map(({ line }) => line)).toEqual(plain);
      for (const { line, from: begin, to } of placed) {
        expect(JSON.parse(bytes.subarray(begin, to).toString().replace('\ufeff', ''))).toEqual(JSON.parse(JSON.stringify(line)));
      }
    }),
    { numRuns: 30 },
  );
});

const HEADER = '{"kind":"header","version":1,"madeAt":"2026","changes":[],"policy":"stop","memory":"recorded","lanes":["candidate"]}';
const SUM = { modelCalls: 1, inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: null, modelMs: 1 };
const LANE = { divergence: null, turns: [] as unknown[], sum: SUM, recordedSum: SUM };
const line = (candidate: object): string =>
  JSON.stringify({ kind: 'conversation', id: 'a', agent: 'b', gaps: [], turns: 1, lanes: { candidate: { ...LANE, ...candidate } } });
const call = { name: 'book', input: '{}', result: '', source: 'recording' };
const turn = (played: object): object => ({
  turn: 'turn_0001',
  message: '',
  played: { text: '', stopReason: 'end', calls: [], sum: SUM, ...played },
});
const TOTALS = '{"kind":"totals","conversations":0,"skipped":0,"lanes":{}}';

test.each<[what: string, file: string, error: RegExp]>([
  ['nothing', '', /^cannot read "my\\nreport\.jsonl": it is empty\. Open a file that a what-if has written\.$/],
  ['another file', '# Notes\n', /line 1 of "my\\nreport\.jsonl": it is no JSON/],
  ['other JSON', '{"name":"perdura"}\n', /line 1 of .*: kind is not as a report has it/],
  ['a list', '[]\n', /line 1 of .* is not as a report has it/],
  ['null', 'null\n', /line 1 of .* is not as a report has it/],
  ['no header', `${TOTALS}\n`, /line 1 of .*: it is no header, so this is no report/],
  [
    'a newer one',
    HEADER.replace('"version":1', '"version":2'),
    /line 1 of .*: it is of version 2, and this program reads version 1\. Open it with a newer one\./,
  ],
  ['two headers', `${HEADER}\n${HEADER}\n`, /line 2 of .*: a second header/],
  ['something after the totals', `${HEADER}\n${TOTALS}\n${line({})}\n`, /line 3 of .*: something follows the totals/],
  ['a cut line', `${HEADER}\n${line({}).slice(0, 60)}`, /line 2 of .*: the file ends in its middle/],
  [
    'a wrong type',
    `${HEADER}\n${line({ turns: [turn({ text: 7 })] })}\n`,
    /line 2 of .*: lanes\.candidate\.turns\[0\]\.played\.text is not as a report has it: it is no text/,
  ],
  [
    'no number',
    `${HEADER}\n${line({ sum: { ...SUM, modelMs: null } })}\n`,
    /line 2 of .*: lanes\.candidate\.sum\.modelMs .*it is no number/,
  ],
  [
    'an endless number',
    `${HEADER}\n${line({}).replace('"modelCalls":1', '"modelCalls":1e999')}\n`,
    /line 2 of .*: lanes\.candidate\.sum\.modelCalls .*it is no finite number/,
  ],
  [
    'an unknown word',
    `${HEADER}\n${line({ turns: [turn({ calls: [{ ...call, source: 'elsewhere' }] })] })}\n`,
    /calls\[0\]\.source .*it is none of recording, product/,
  ],
  [
    'a text without an end',
    `${HEADER}\n${line({ turns: [turn({ text: 'x'.repeat(1e6) })] })}\n`,
    /played\.text .*it has more than 65536 characters/,
  ],
  [
    'more calls than a turn has',
    `${HEADER}\n${line({ turns: [turn({ calls: Array.from({ length: 5_001 }, () => call) })] })}\n`,
    /calls .*it has more than 5000 items/,
  ],
  [
    'more turns than are looked at',
    `${HEADER}\n${line({ turns: Array.from({ length: 20_001 }, () => 1) })}\n`,
    /turns .*it has more than 20000 items/,
  ],
  ['a lane of its making', `${HEADER.replace('["candidate"]', '["other"]')}\n`, /lanes\[0\] .*neither baseline nor candidate/],
])('%s is refused with its place', async (_what, file, error) => {
  const read = all(readReport(from(file), 'my\nreport.jsonl'));
  await expect(read).rejects.toThrow(ReportError);
  await expect(read).rejects.toThrow(error);
});

test('what stood before a line that cannot be read has been given', async () => {
  const seen: ReportLine[] = [];
  const reading = async (): Promise<void> => {
    for await (const one of readReport(from(`${HEADER}\n${line({})}\nbroken\n`), 'r')) seen.push(one);
  };
  await expect(reading()).rejects.toThrow('line 3 of "r"');
  expect(seen.map(({ kind }) => kind)).toEqual(['header', 'conversation']);
});

test('a line without an end is left before it is held', async () => {
  let given = 0;
  const part = new Uint8Array(4 * 1024 * 1024).fill(120);
  const endless = async function* (): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      given += part.length;
      yield await Promise.resolve(part);
    }
  };
  await expect(all(readReport(endless(), 'r'))).rejects.toThrow('cannot read line 1 of "r": it is longer than 64 MiB');
  expect(given).toBeLessThanOrEqual(MAX_LINE_BYTES + 2 * part.length);
});

test('one conversation is asked for at a time', async () => {
  const lines = (await sampleFile({ conversations: 50 })).split(/(?<=\n)/);
  let given = 0;
  const counted = async function* (): AsyncGenerator<string, void> {
    for (const one of lines) {
      given += 1;
      yield await Promise.resolve(one);
    }
  };
  for await (const one of readReport(counted(), 'r')) {
    if (one.kind === 'conversation') break;
  }
  expect(given).toBe(2);
});

test('keys of a prototype and keys of another version do nothing', async () => {
  const text = `${HEADER}\n${line({}).replace('"id":"a"', '"id":"a","__proto__":{"skipped":"x"},"later":{"deep":1}')}\n`;
  const [, conversation] = await all(readReport(from(text), 'r'));
  expect(conversation).toEqual({ kind: 'conversation', id: 'a', agent: 'b', gaps: [], turns: 1, lanes: { candidate: LANE } });
  expect((conversation as { skipped?: string }).skipped).toBeUndefined();
});
