/** A call as a person would write it: a command as it is typed, a change of a file as its lines. Nothing for what has no such form. */
import type { JSX } from 'preact';
import { plainCode, plainText } from '../ui/words.js';

const MOST_LINES = 200;
/** Words that a shell takes as they are. */
const PLAIN = /^[\w@%+=:,./-]+$/;

export function CallPreview({ tool, given }: { readonly tool: string; readonly given: unknown }): JSX.Element | null {
  if (typeof given !== 'object' || given === null) return null;
  const { command, args, cwd, path, content, oldText, newText } = given as Readonly<Record<string, unknown>>;
  if (tool === 'run_command' && typeof command === 'string') {
    const words = [command, ...(Array.isArray(args) ? args : [])].map((word) => quoted(String(word)));
    return (
      <pre class="code" tabIndex={0} dir="ltr">
        {typeof cwd === 'string' && cwd !== '.' && <span class="faint">{plainText(cwd, 200)} </span>}
        {plainCode(`$ ${words.join(' ')}`)}
      </pre>
    );
  }
  if (tool === 'edit_file' && typeof path === 'string' && typeof oldText === 'string' && typeof newText === 'string') {
    return <Change path={path} gone={oldText} added={newText} />;
  }
  if (tool === 'write_file' && typeof path === 'string' && typeof content === 'string')
    return <Change path={path} gone="" added={content} />;
  return null;
}

interface ChangeProps {
  readonly path: string;
  readonly gone: string;
  readonly added: string;
}

/** Lines at the beginning and the end that are the same on both sides stay unmarked. */
function Change({ path, gone, added }: ChangeProps): JSX.Element {
  const [before, after] = [linesOf(gone), linesOf(added)];
  let [head, tail] = [0, 0];
  while (head < Math.min(before.length, after.length) && before[head] === after[head]) head += 1;
  while (tail < Math.min(before.length, after.length) - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const lines = [
    ...before.slice(0, head).map((line) => [' ', line] as const),
    ...before.slice(head, before.length - tail).map((line) => ['-', line] as const),
    ...after.slice(head, after.length - tail).map((line) => ['+', line] as const),
    ...before.slice(before.length - tail).map((line) => [' ', line] as const),
  ];
  return (
    <figure class="change">
      <figcaption class="small mono">{plainText(path, 200)}</figcaption>
      <pre class="code" tabIndex={0} dir="ltr">
        {lines.slice(0, MOST_LINES).map(([sign, line], at) => (
          <span key={at} class={sign === '-' ? 'is-gone' : sign === '+' ? 'is-added' : ''}>
            {`${sign} ${plainCode(line)}\n`}
          </span>
        ))}
      </pre>
      {lines.length > MOST_LINES && (
        <p class="small faint">
          The first {MOST_LINES} of {lines.length} lines.
        </p>
      )}
    </figure>
  );
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
