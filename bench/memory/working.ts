/** Working sessions: 60 turns of reads, edits and commands, some of which fail; what was planted in them is asked for in the end. */
import { changed, question, sentence, type Statement } from './statements.js';
import { asking, goalLine, grown, pick, prose, randomFrom, SUBJECTS, valueOf, WORDS, type Line, type Scenario } from './script.js';

const TURNS = 60;
const FILES = 20;
/** Characters of what a tool answers. */
const [LEAST, MOST] = [1_000, 8_000];

const AGENT = {
  tools: ['read_file', 'edit_file', 'run_command', 'set_task', 'search_memory', 'open_memory', 'read_episode', 'retrieve_from_memory'],
  approvals: [{ tool: 'run_command', policy: 'allow' }],
};

const CAUSES = ['checksum', 'timeout', 'rounding', 'encoding', 'locking', 'overflow', 'migration', 'signature'];

interface Planted {
  readonly text: string;
  readonly states?: Statement;
  readonly finds?: readonly Statement[];
}

/** With a model of an ordinary window, and with one whose window is so small that each consolidation is followed by a trim. */
export function workingSessions(): Scenario[] {
  const session = { isTalk: true, lines: lines(), files: files(), isTrimmed: true } as const;
  return [
    { ...session, name: '60 working turns', agent: AGENT, maxCost: 0.18 },
    { ...session, name: '60 working turns, a small window', agent: { ...AGENT, context: { maxTokens: 32_000 }, maxTokens: 2_000 } },
  ];
}

function lines(): Line[] {
  const random = randomFrom(8);
  const turns = Array.from({ length: TURNS }, (_, n) => turn(n + 1));
  const said = turns.map(({ text, states, finds = [] }): Line => {
    const words = [prose(random, 20), text, ...(states ? [`Note that ${sentence(states)}.`] : []), prose(random, 30)];
    return { kind: 'say', text: words.join(' '), states: states ? [states] : [], finds };
  });
  const stated = turns.flatMap(({ states, finds = [] }) => [...(states ? [states] : []), ...finds]);
  const subjects = [...new Set(stated.map(({ subject }) => subject))];
  return [
    goalLine(1, random),
    ...said,
    ...subjects.map((subject): Line =>
      subject.includes('/') ? { kind: 'ask', text: changed(subject), subject } : { kind: 'ask', text: question(subject), subject },
    ),
    asking('current goal'),
  ];
}

/** What is done in the nth turn, and what it states or brings up. */
function turn(n: number): Planted {
  const [file, other] = [path(n % FILES), path((n + 7) % FILES)];
  const [reads, edits] = [n % 4 !== 2, n % 2 === 0];
  // A mark that is not there: the edit fails.
  const mark = n % 15 === 7 ? `TODO-${n + 900}` : `TODO-${n}`;
  const steps = [
    ...(reads ? [`read ${file}`] : []),
    ...(n % 4 === 3 ? [`read ${other}`] : []),
    ...(edits ? [`edit ${file} at ${mark}`] : []),
    ...(n % 4 === 1 ? [] : [`check ${n}`]),
  ];
  const found = [reads ? findingIn(n) : undefined, failureOf(n)].filter((one) => one !== undefined);
  const touched = edits && n % 15 === 7 ? [] : [{ subject: file, value: edits ? 'edited' : 'read' }];
  return {
    text: `Please ${steps.join(', then ')}.`,
    ...(n % 5 === 0 && { states: { subject: SUBJECTS[(n / 5) % 10] ?? '', value: valueOf(n) } }),
    finds: [...found, ...touched],
  };
}

function path(file: number): string {
  return `src/berth-${file}.ts`;
}

/** What a file says that is read in the nth turn. */
function findingIn(n: number): Statement | undefined {
  if (n % 12 !== 1 && n % 12 !== 4) return undefined;
  return { subject: SUBJECTS[10 + 2 * Math.floor(n / 12) + (n % 12 === 1 ? 0 : 1)] ?? '', value: valueOf(n) };
}

/** Why the check of the nth turn fails. */
function failureOf(n: number): Statement | undefined {
  return n % 8 === 3 ? { subject: `${CAUSES[Math.floor(n / 8)] ?? ''} failure`, value: valueOf(n) } : undefined;
}

function files(): Record<string, string> {
  const numbers = Array.from({ length: TURNS }, (_, n) => n + 1);
  const sources = Array.from({ length: FILES }, (_, file) => [path(file), source(file, numbers)] as const);
  return Object.fromEntries([...sources, ...numbers.map((n) => [`checks/${n}.txt`, checkOutput(n)] as const)]);
}

function source(file: number, numbers: readonly number[]): string {
  const random = randomFrom(2_000 + file);
  const blocks = numbers.flatMap((n) => {
    if (n % FILES !== file) return [];
    const finding = findingIn(n);
    return [`// TODO-${n}: ${prose(random, 8)}`, ...(finding ? [`// Measured last week: ${sentence(finding)}.`] : [])];
  });
  const size = LEAST + random() * (MOST - LEAST);
  const share = size / (blocks.length + 1);
  let text = '';
  for (const [n, block] of blocks.entries()) text = `${code(text, (n + 1) * share, random)}${block}\n`;
  return code(text, size, random);
}

function code(text: string, characters: number, random: () => number): string {
  let grownText = text;
  while (grownText.length < characters) {
    const [one, two] = [pick(random, WORDS), pick(random, WORDS)];
    grownText += `export function ${one}Of(${two}: number): number {\n  return ${two} * ${Math.floor(random() * 900)};\n}\n\n`;
  }
  return grownText;
}

/** As test runners write it: what failed stands at the end. */
function checkOutput(n: number): string {
  const random = randomFrom(3_000 + n);
  const size = LEAST + random() * (MOST - LEAST);
  let text = `> check ${n}\n\n`;
  while (text.length < size) text += `  ✓ ${grown('', 30, random).trim()} (${Math.floor(random() * 90)} ms)\n`;
  const failure = failureOf(n);
  const end = failure ? `  ✕ one test failed: ${sentence(failure)}.\n\nTests: 1 failed, 31 passed\n` : '\nTests: 32 passed\n';
  return `${text}${end}`;
}
