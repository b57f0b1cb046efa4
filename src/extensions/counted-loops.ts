/**
 * Has the code of an application count its steps, so that a reducer can be stopped (workflows/temporal-host.ts): nothing stops code that
 * loops in Temporal's sandbox but the end of its thread, which Node 20 does not survive. A step is a round of a loop or a call of a function.
 *
 * It is a loader: the bundler gives each of the application's files to it, after they are JavaScript.
 */
import { parse } from 'acorn';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly body?: Node | readonly Node[];
  readonly directive?: string;
}

const LOOPS = new Set(['ForStatement', 'ForInStatement', 'ForOfStatement', 'WhileStatement', 'DoWhileStatement']);
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

const STEP = '__perduraStep()';
/** Hoisted, so that whatever runs first finds it. Each workflow has another global object in the sandbox, where looking is slow. */
const COUNTER =
  'function __perduraStep(){var s=__perduraStep.s||(__perduraStep.s=globalThis[Symbol.for("perdura.steps")]);if(s&&--s.left<0)s.spent()}';

export default function countLoops(code: string): string {
  const program = parseCode(code);
  // The bundler says better what is wrong with it.
  if (!program) return code;
  const inserted: { readonly at: number; readonly text: string }[] = [];
  visit(program, (at, text) => inserted.push({ at, text }));
  if (inserted.length === 0) return code;
  let [counted, from] = ['', 0];
  // Stable: what ends at one place ends from the inside out, as it was put in.
  for (const { at, text } of inserted.sort((a, b) => a.at - b.at)) {
    counted += code.slice(from, at) + text;
    from = at;
  }
  return `${counted}${code.slice(from)}\n${COUNTER}\n`;
}

function parseCode(code: string): Node | undefined {
  for (const sourceType of ['module', 'script'] as const)
    try {
      return parse(code, { ecmaVersion: 'latest', sourceType, allowReturnOutsideFunction: true, allowHashBang: true });
    } catch {
      continue;
    }
  return undefined;
}

function visit(node: Node, insert: (at: number, text: string) => void): void {
  const { body } = node;
  const counts = LOOPS.has(node.type) || FUNCTIONS.has(node.type);
  const around = counts && body !== undefined && !isList(body) ? body : undefined;
  const [open, close] = around?.type.endsWith('Statement') === true ? ['{', '}'] : ['(', ')'];
  if (around?.type === 'BlockStatement') insert(placeIn(around), `${STEP};`);
  else if (around) insert(around.start, open === '{' ? `{${STEP};` : `(${STEP},`);
  for (const part of Object.values(node)) for (const one of isList(part) ? part : [part]) if (isNode(one)) visit(one, insert);
  if (around && around.type !== 'BlockStatement') insert(around.end, close);
}

/** Behind the directives: `'use strict'` is none where something stands before it. */
function placeIn({ start, body }: Node): number {
  const directives = isList(body) ? body.filter((one) => (one as Node).directive !== undefined) : [];
  return (directives.at(-1) as Node | undefined)?.end ?? start + 1;
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Node>).type === 'string';
}
