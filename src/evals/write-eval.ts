/**
 * A recorded conversation as an eval: a program that people read and change, and a file beside it with the answers of model and tools. It is played
 * once before it is written, so that a person's decisions stand in it where calls wait for them here.
 */
import { rm, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Extensions } from '../extensions/user-config.js';
import { ConfigError, errorCode, errorMessage } from '../platform/errors.js';
import { oneLine, truncate } from '../records/text.js';
import type { TakenConversation } from './from-conversation.js';
import type { EvalDefinition, InputPattern, Turn } from './index.js';
import { callKey, decisionIn, type Decided, type RecordedTurn } from './recorded.js';
import { runEval } from './run-eval.js';

export interface WrittenEval {
  /** From the project. */
  readonly file: string;
  readonly recording: string;
}

/** UTF-16 units: of an argument, and of the beginning of an answer, that stand in the program. */
const MAX_ARGUMENT = 200;
const MAX_ANSWER = 80;

interface PlayedTurn {
  readonly recorded: RecordedTurn;
  readonly decisions: readonly (Decided & { readonly tool: string })[];
  readonly ended: Turn;
}

/** Throws `ConfigError` where one of the files is there, or where it cannot be played. */
export async function writeEval(
  taken: TakenConversation,
  where: { readonly project: string; readonly name: string; readonly extensions: Extensions; readonly signal: AbortSignal },
): Promise<WrittenEval> {
  const { project, name } = where;
  const [file, recording] = [`evals/${name}.eval.ts`, `evals/${name}.recording.json`];
  const played = await play(taken, where);
  const fixture = { version: 1, conversation: taken.id, turns: taken.turns };
  await writeNew(join(project, recording), `${JSON.stringify(fixture, null, 2)}\n`);
  try {
    await writeNew(join(project, file), toProgram(taken, played, `${name}.recording.json`));
  } catch (error) {
    await rm(join(project, recording), { force: true });
    throw error;
  }
  return { file, recording };
}

async function writeNew(file: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text, { flag: 'wx' });
  } catch (cause) {
    if (errorCode(cause) === 'EEXIST')
      throw new ConfigError(`${file} is there already, and nothing is overwritten: remove it, or give this one another --name`, { cause });
    throw new ConfigError(`cannot write ${file}: ${errorMessage(cause)}`, { cause });
  }
}

async function play(
  taken: TakenConversation,
  { project, extensions, signal }: { readonly project: string; readonly extensions: Extensions; readonly signal: AbortSignal },
): Promise<readonly PlayedTurn[]> {
  const played: PlayedTurn[] = [];
  const definition: EvalDefinition<unknown> = {
    ...toSettings(taken),
    recording: { recording: '' },
    async run({ send, reset, approve, deny, answer }) {
      for (const recorded of taken.turns) {
        if (recorded.newSession) await reset();
        const decisions: (Decided & { readonly tool: string })[] = [];
        const left = recorded.results.map((result) => ({ key: callKey(result.name, result.input), result }));
        let turn = await send(recorded.message);
        for (let [waiting] = turn.approvals; waiting; [waiting] = turn.approvals) {
          const { tool, callId, arguments: input } = waiting;
          const at = left.findIndex(({ key }) => key === callKey(tool, input));
          const [found] = at < 0 ? [] : left.splice(at, 1);
          const decided: Decided = found === undefined ? { kind: 'deny' } : decisionIn(found.result);
          decisions.push({ ...decided, tool });
          if (decided.kind === 'deny') turn = await deny(callId, decided.note);
          else turn = decided.kind === 'answer' ? await answer(decided.text) : await approve(callId);
        }
        played.push({ recorded, decisions, ended: turn });
      }
    },
  };
  const run = await runEval(
    { definition, item: undefined, recorded: taken.turns },
    { project, extensions, signal, spent: () => undefined },
  );
  const failed = run.claims.find(({ outcome, isSoft }) => outcome === 'failed' && !isSoft);
  if (failed === undefined) return played;
  throw new ConfigError(
    `${taken.id} cannot be played here, so nothing was written: ${failed.what}: ${failed.why}. Is its agent "${taken.agent}" in this project?`,
  );
}

function toSettings({ agent, beganAt, memory }: TakenConversation): Pick<EvalDefinition, 'agent' | 'now' | 'memory'> {
  return { agent, now: new Date(beganAt).toISOString(), ...(memory !== undefined && memory !== '' && { memory }) };
}

function toProgram(taken: TakenConversation, played: readonly PlayedTurn[], recording: string): string {
  const steps = played.flatMap(({ recorded, decisions, ended }, at) => [
    ...(at === 0 ? [] : ['']),
    ...(recorded.newSession ? ['await reset();'] : []),
    `// ${recorded.turn}`,
    `${at === 0 ? 'let turn' : 'turn'} = await send(${literal(recorded.message)});`,
    ...decisions.flatMap((one) => [
      `expect(turn).waitsFor(${literal(one.tool)});`,
      one.kind === 'answer'
        ? `turn = await answer(${literal(one.text)});`
        : `turn = await ${one.kind}(${[one.tool, ...(one.kind === 'deny' && one.note !== undefined ? [one.note] : [])].map(literal).join(', ')});`,
    ]),
    ...ended.calls.map(({ name, input }) => `expect(turn).calledTool(${literal(name)}${pattern(input)});`),
    `expect(turn).stopReason(${literal(ended.stopReason)});`,
    ...softText(ended),
  ]);
  const body = steps.map((line) => (line === '' ? '' : `    ${line}`)).join('\n');
  const used = ['send', 'approve', 'deny', 'answer', 'reset', 'expect'].filter((name) =>
    new RegExp(`\\b${name}[.(]`).test(withoutTexts(body)),
  );
  const { agent, now, memory } = toSettings(taken);
  return [
    `/** ${taken.id} as it was recorded. The words of people, of the model and of tools are in it and in ${recording}: read both before you commit them. */`,
    ...taken.gaps.map((gap) => `// ${oneLine(gap)}`),
    "import { defineEval, recording } from 'perdura/evals';",
    '',
    'export default defineEval({',
    `  agent: ${literal(agent ?? 'default')},`,
    `  now: ${literal(now ?? '')},`,
    ...(memory === undefined ? [] : [`  memory: ${literal(memory)},`]),
    `  recording: recording(${literal(`./${recording}`)}),`,
    `  async run({ ${used.join(', ')} }) {`,
    body,
    '  },',
    '});',
    '',
  ].join('\n');
}

function softText({ text }: Turn): string[] {
  const beginning = text.trim().split('\n')[0]?.slice(0, MAX_ANSWER).toWellFormed() ?? '';
  return beginning === '' || !text.includes(beginning) ? [] : [`expect.soft(turn).text(${literal(beginning)});`];
}

/** Of long arguments nothing is claimed. */
function pattern(input: unknown): string {
  const short = Object.entries((input ?? {}) as InputPattern).filter(([, value]) => JSON.stringify(value).length <= MAX_ARGUMENT);
  return short.length === 0 ? '' : `, ${JSON.stringify(Object.fromEntries(short))}`;
}

function withoutTexts(program: string): string {
  return program.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, "''");
}

/** A string of TypeScript. */
function literal(text: string): string {
  const json = JSON.stringify(text);
  return json.includes("'") || json.includes('\\') ? json : `'${json.slice(1, -1)}'`;
}

/** A file's name for a conversation. */
export function nameFor(id: string): string {
  return truncate(id.replace(/[^A-Za-z0-9_-]+/g, '-'), 80);
}
