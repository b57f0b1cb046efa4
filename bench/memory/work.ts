/** What a model by rules does in a working session: the steps that a message names, one after the other; and what it knows of files. */
import type { AssistantBlock, JsonObject } from '../../src/records/message.js';
import type { ModelRequest } from '../../src/models/model.js';

const STEP = /\b(read|edit|check) ([\w./-]*\w)(?: at (TODO-\d+))?/g;

interface Step {
  readonly name: string;
  readonly input: JsonObject;
}

/** After `done` of them. */
export function nextStep(asked: string, done: number): Step | undefined {
  const [, steps = ''] = /Please ((?:read|edit|check) [^\n]*?)\.(?: |$)/.exec(asked) ?? [];
  const step = [...steps.matchAll(STEP)][done];
  if (!step) return undefined;
  const [, kind, what = '', mark = ''] = step;
  if (kind === 'read') return { name: 'read_file', input: { path: what } };
  if (kind === 'edit') return { name: 'edit_file', input: { path: what, oldText: `// ${mark}:`, newText: '// Done:' } };
  return { name: 'run_command', input: { command: 'bash', args: ['-c', `cat checks/${what}.txt; ! grep -q ✕ checks/${what}.txt`] } };
}

const EDITED = /\bedited (src\/[\w./-]*\w) on line|\bFiles (?:edited|written): (.*?)(?= Files | Tool failures|$)/gm;
const READ = /\bFiles read: (.*?)(?= Files | Tool failures|$)|Please (.*)/gm;

/** By calls that the prompt has, lines of summaries and what a search brought; undefined where the path is in none of them. */
export function answerOfWork({ messages }: ModelRequest, path: string): AssistantBlock | undefined {
  const text = messages.map(shown).join('\n');
  const has = (found: RegExp, kind: string): boolean =>
    [...text.matchAll(found)].some(([whole]) => whole.includes(path) && (!whole.startsWith('Please') || whole.includes(`${kind} ${path}`)));
  if (has(EDITED, 'edit')) return { kind: 'text', text: 'It is edited.' };
  return has(READ, 'read') ? { kind: 'text', text: 'It is read.' } : undefined;
}

/** Calls need no line: what was asked for and what came of it stand beside them. */
function shown(message: ModelRequest['messages'][number]): string {
  if (message.role === 'assistant') return '';
  return typeof message.text === 'string' ? message.text : message.text.preview;
}
