/** `perdura memory review` and `forget`: what people decide about a scope's memory. */
import type { ToForget } from '../../client.js';
import { memoryWorkflowId, type Reviewed } from '../../conversation/protocol/memory-contract.js';
import type { Proposal } from '../../records/memory/documents.js';
import type { CliContext } from '../session/context.js';
import { canAsk, confirm, type Person } from '../terminal/ask.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { originOf, renderProposals } from '../views/memory-document.js';
import { drawText, type MemoryLook } from '../views/memory.js';
import { formatQuantity } from '../views/quantities.js';
import { print, withMemory, type MemoryDesk, type ScopeWanted } from '../session/with-memory.js';

export interface ReviewWanted extends ScopeWanted {
  readonly accept?: readonly string[];
  readonly reject?: readonly string[];
}

type Decision = readonly [id: string, decision: 'accept' | 'reject'];

export function reviewMemory(context: CliContext, wanted: ReviewWanted): Promise<number> {
  const said = decisionsIn(wanted);
  const isAsked = said.length === 0 && context.globals().output === 'text' && canAsk(context.surroundings);
  return withMemory(context, wanted, { needsWorker: said.length > 0 }, async (desk) => {
    const { memory, look, withSlowNotice } = desk;
    const { scope } = memory;
    const all = await withSlowNotice(`reading the proposals of ${scope}`, memory.proposals());
    const open = all.filter(({ state }) => state === 'open');
    for (const [id] of said) {
      if (all.some((proposal) => proposal.id === id)) continue;
      throw new CliError(`there is no proposal ${id} in the memory of ${scope}; a scope is written ahead of the flags`, EXIT.notFound);
    }
    if (said.length === 0) {
      const first = open[0]?.id;
      print(desk, {
        data: { scope, open },
        records: open,
        lines: renderProposals(open, look),
        notes: first === undefined ? [`nothing waits for a decision in the memory of ${scope}`] : isAsked ? [] : [HOW_TO_DECIDE],
        temporal:
          first === undefined ? ['workflow', 'describe', '-w', memoryWorkflowId(scope)] : isAsked ? undefined : accepting(scope, first),
      });
      if (!isAsked || open.length === 0) return EXIT.ok;
    }
    const decisions = said.length > 0 ? said : await pickDecisions(context.surroundings, open);
    const reviewed: Reviewed[] = [];
    for (const [id, decision] of decisions) {
      reviewed.push(await withSlowNotice(`asking ${memoryWorkflowId(scope)}`, memory.review(id, decision)));
    }
    const late = decisions.filter(([id, decision]) => reviewed.find((one) => one.id === id)?.state !== `${decision}ed`);
    print(desk, {
      data: { scope, reviewed },
      records: reviewed,
      lines: reviewed.flatMap(({ id, state, line }) => [
        ...drawText(`${id} ${state}`, 0, look, state === 'accepted' ? 'green' : 'red'),
        ...drawText(line, 4, look),
      ]),
      temporal: accepting(scope, decisions[0]?.[0] ?? 'prop_0001'),
    });
    for (const [id] of late) desk.output.problem(`${id} was decided before, and the first decision stays`);
    return late.length === 0 ? EXIT.ok : EXIT.failed;
  });
}

const HOW_TO_DECIDE = 'perdura memory review --accept ID…, --reject ID…';

function decisionsIn({ accept = [], reject = [] }: ReviewWanted): Decision[] {
  const both = accept.find((id) => reject.includes(id));
  if (both !== undefined) throw new CliError(`${both} cannot be accepted and rejected`, EXIT.usage);
  return [...[...new Set(accept)].map((id): Decision => [id, 'accept']), ...[...new Set(reject)].map((id): Decision => [id, 'reject'])];
}

/** Asks the person at the terminal. What is marked neither way goes on waiting. */
async function pickDecisions(person: Person, open: readonly Proposal[]): Promise<Decision[]> {
  const accepted = await pickSome(person, 'Which are true, and to be remembered?', open);
  const others = open.filter(({ id }) => !accepted.includes(id));
  const rejected = others.length === 0 ? [] : await pickSome(person, 'Which are to be rejected? The others wait on.', others);
  return [...accepted.map((id): Decision => [id, 'accept']), ...rejected.map((id): Decision => [id, 'reject'])];
}

async function pickSome({ input, stderr }: Person, message: string, proposals: readonly Proposal[]): Promise<readonly string[]> {
  const columns = Math.max((stderr.columns || 80) - 18, 10);
  const { multiselect, isCancel } = await import('@clack/prompts');
  const picked = await multiselect({
    message: toTerminalLine(message, columns),
    required: false,
    maxItems: 10,
    input,
    output: stderr,
    options: proposals.map((proposal) => ({ value: proposal.id, label: labelOf(proposal, columns) })),
  });
  if (isCancel(picked)) throw new CliError('nothing was decided', EXIT.interrupted);
  return picked;
}

/** One row, whatever a tool has made of the line. */
export function labelOf({ line, source }: Proposal, columns: number): string {
  return toTerminalLine(`${line}  (${originOf(source)})`, columns);
}

function accepting(scope: string, id: string): readonly string[] {
  const input = JSON.stringify({ id, decision: 'accept' });
  return ['workflow', 'update', 'execute', '--name', 'accept', '-w', memoryWorkflowId(scope), '--input', input];
}

export interface ForgetWanted extends ScopeWanted {
  readonly yes?: boolean;
}

export function forgetInMemory(context: CliContext, text: string, wanted: ForgetWanted): Promise<number> {
  return withMemory(context, wanted, { needsWorker: true }, async (desk) => {
    const { memory, look, output, globals, withSlowNotice } = desk;
    const { scope } = memory;
    const doomed = await withSlowNotice(`looking for it in the memory of ${scope}`, memory.wouldForget(text));
    if (globals.output === 'text') for (const line of renderDoomed(doomed, look)) output.draw(line);
    if (wanted.yes !== true) await confirmForgetting(desk, doomed);
    const gone = await withSlowNotice(`asking ${memoryWorkflowId(scope)}`, memory.forget(text));
    const counts = [
      formatQuantity(gone.lines.length, 'line'),
      formatQuantity(gone.facts.length, 'fact'),
      formatQuantity(gone.proposals.length, 'proposal'),
      `${formatQuantity(doomed.historyLines, 'line')} of HISTORY`,
    ];
    if (globals.output === 'text')
      output.say(`gone from the memory of ${scope}: ${counts.join(', ')}; earlier versions were rewritten too`);
    print(desk, {
      data: { scope, ...gone, historyLines: doomed.historyLines, remains: REMAINS },
      lines: [],
      notes: ['What still has it:', ...REMAINS.map((where) => `  - ${where}`), SAID_AGAIN],
      temporal: ['workflow', 'show', '-w', memoryWorkflowId(scope)],
    });
    return EXIT.ok;
  });
}

const REMAINS = [
  "Temporal's history of the conversations where it was said, and of the memory workflow, until the namespace's retention has passed",
  'the raw traces of these conversations (`perdura show ID --raw --archived`) with the results of tools that they have stored, and their summaries (`perdura memory list ID`)',
  'the context of a conversation that runs, and what it can read by retrieve_from_memory, until /new',
] as const;

const SAID_AGAIN = 'It can be said again, and is heard then; the memory does not take it in again.';

function renderDoomed({ lines, facts, proposals, historyLines }: ToForget, look: MemoryLook): StyledLine[] {
  const found: readonly (readonly [where: string, text: string])[] = [
    ...lines.map((line) => ['MEMORY.md', line] as const),
    ...facts.map(({ id, fact }) => [`fact ${id}`, fact] as const),
    ...proposals.map(({ id, line }) => [`proposal ${id}`, line] as const),
    ...(historyLines === 0 ? [] : [['HISTORY', `${formatQuantity(historyLines, 'line')}`] as const]),
  ];
  if (found.length === 0) return [[{ text: 'nothing says this now; forgotten, it cannot come in later', style: 'dim' }]];
  return found.flatMap(([where, text]) => [...drawText(where, 0, look, 'dim'), ...drawText(text, 4, look, 'red')]);
}

async function confirmForgetting({ memory, surroundings }: MemoryDesk, doomed: ToForget): Promise<void> {
  if (!canAsk(surroundings)) {
    throw new CliError(`will not forget anything of ${memory.scope} unasked: add --yes`, EXIT.usage);
  }
  const isEmpty = doomed.lines.length + doomed.facts.length + doomed.proposals.length + doomed.historyLines === 0;
  const message = isEmpty ? 'Keep it from being remembered?' : 'Forget this? It cannot be taken back.';
  if (!(await confirm(surroundings, message))) throw new CliError(`the memory of ${memory.scope} was left as it is`, EXIT.interrupted);
}
