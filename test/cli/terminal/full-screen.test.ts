/** The terminal is given back as it was, however we leave. */
import { PassThrough } from 'node:stream';
import type { ReadStream, WriteStream } from 'node:tty';
import { openFullScreen, type FullScreen, type Key } from '../../../src/cli/debug/screen.js';

const LEFT = '\u001b[?7h\u001b[?25h\u001b[?1049l';

function open(isColored = false) {
  const raw: boolean[] = [];
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (mode: boolean) => void raw.push(mode) });
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 40, rows: 5 });
  let written = '';
  output.setEncoding('utf8').on('data', (piece: string) => (written += piece));
  const keys: Key[] = [];
  const told: string[] = [];
  const screen: FullScreen = openFullScreen(input as unknown as ReadStream, output as unknown as WriteStream, {
    onKey: (key) => void keys.push(key),
    onResize: () => void told.push('resize'),
    onEnd: () => void told.push('end'),
    isColored,
  });
  return { screen, input, output, keys, told, raw, written: () => written };
}

/** What was written has been read. */
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('it is another screen until it is closed, and closing it twice changes nothing', async () => {
  const { screen, raw, written } = open();
  screen.draw([[{ text: 'a\u001b[2J' }], [{ text: 'b\nc', style: 'red' }]]);
  await soon();
  expect(written()).toContain('\u001b[?1049h');
  expect(written()).toContain('\u001b[2Ka␛[2J\r\n\u001b[2Kb c');
  screen.close();
  screen.close();
  screen.draw([[{ text: 'late' }]]);
  await soon();
  expect(written().endsWith(LEFT)).toBe(true);
  expect(written().split(LEFT)).toHaveLength(2);
  expect(raw).toEqual([true, false]);
});

test('an exit that nobody announced gives it back too', async () => {
  const { raw, written } = open();
  const [restore] = process.listeners('exit').slice(-1);
  (restore as () => void)();
  await soon();
  expect(written().endsWith(LEFT)).toBe(true);
  expect(raw).toEqual([true, false]);
  process.removeListener('exit', restore as () => void);
});

test('keys come by name, or as what was typed', async () => {
  const { screen, input, keys } = open();
  input.write('s');
  input.write('T漢');
  input.write('\u001b[A');
  input.write('\u001b[5~');
  input.write('\r');
  input.write('\u0003');
  await soon();
  screen.close();
  expect(keys).toEqual([
    { name: 's', text: 's' },
    { name: 'T', text: 'T' },
    { name: '漢', text: '漢' },
    { name: 'up', text: '' },
    { name: 'pageup', text: '' },
    { name: 'return', text: '' },
    { name: 'ctrl+c', text: '' },
  ]);
});

test('without colours there are none, and with them they are', async () => {
  const [plain, colored] = [open(false), open(true)];
  for (const { screen } of [plain, colored]) screen.draw([[{ text: 'x', style: 'red' }]]);
  await soon();
  expect(plain.written()).not.toContain('\u001b[31m');
  expect(colored.written()).toContain('\u001b[31mx');
  for (const { screen } of [plain, colored]) screen.close();
});

test('a resize is reported, and so is the end of the terminal', async () => {
  const { screen, input, output, told } = open();
  output.emit('resize');
  input.emit('error', new Error('EIO'));
  screen.close();
  await soon();
  expect(told).toEqual(['resize', 'end']);
});
