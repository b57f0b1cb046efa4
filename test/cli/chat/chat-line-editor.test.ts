import { PassThrough } from 'node:stream';
import type { ReadStream, WriteStream } from 'node:tty';
import { completeChatLine } from '../../../src/cli/chat/chat-commands.js';
import { openLineEditor } from '../../../src/cli/chat/chat-foot.js';

/** What is said after these keys, each burst of which arrives by itself. */
async function typed(...bursts: readonly string[]): Promise<string> {
  const [input, screen] = [new PassThrough(), new PassThrough()];
  screen.resume();
  const said: string[] = [];
  const editor = openLineEditor(input as unknown as ReadStream, screen as unknown as WriteStream, {
    onLine: (text) => said.push(text),
    onInterrupt: () => said.push('interrupted'),
    onEnd: () => said.push('ended'),
    complete: completeChatLine,
  });
  editor.show();
  for (const burst of bursts) {
    input.write(burst);
    await new Promise((resolve) => setImmediate(resolve));
  }
  editor.close();
  return said.join();
}

test('Tab completes a command, and is a tab in a message', async () => {
  expect(await typed('/ren', '\t', 'My tale', '\r')).toBe('/rename My tale');
  expect(await typed('a', '\t', 'b', '\r')).toBe('a\tb');
});

test('a tab in a pasted text is a tab, also behind what looks like a command', async () => {
  expect(await typed('\x1b[200~/ren', '\t', 'x\x1b[201~', '\r')).toBe('/ren\tx');
});

test('backspace takes what is seen as one character, however many code points it is', async () => {
  const family = '👨‍👩‍👧';
  expect(await typed(`hi ${family}e\u0301`, '\x7f', '\r')).toBe(`hi ${family}`);
  expect(await typed(`hi ${family}`, '\x7f', '!', '\r')).toBe('hi !');
  expect(await typed('abc', '\x7f', '\x7f', '\r')).toBe('a');
});
