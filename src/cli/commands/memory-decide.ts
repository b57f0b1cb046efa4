/** `perdura memory review`, `forget` and `care`: what people decide about a scope's memory, and putting it in order. */
import type { ScopeMemory, ToForget } from '../../client.js';
import { memoryWorkflowId, type Reviewed } from '../../conversation/protocol/memory-contract.js';
import type { Proposal } from '../../records/memory/documents.js';
import { lookOn, type Answer, type CommandRow, type CommandSession } from '../session/command.js';
import { updateWords } from '../session/connect.js';
import { OF_CONVERSATION, openScope, SCOPE, type ScopeWanted } from '../args/find-conversation.js';
import { canAsk, confirm, type Person } from '../terminal/input.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { describeSource, renderProposals } from '../views/memory.js';
import { formatQuantity, formatCount } from '../views/quantities.js';
import { drawText, type Look } from '../views/table.js';

interface ReviewWanted extends ScopeWanted {
  readonly accept?: readonly string[];
  readonly reject?: readonly string[];
}

type Choice = readonly [id: string, decision: 'accept' | 'reject'];

export const MEMORY_DECIDE: readonly CommandRow[] = [
  {
    name: 'memory review',
    description: 'decide on lines that only a tool has said; on a terminal it asks',
    args: [SCOPE],
    options: [
      OF_CONVERSATION,
      ['--accept <ids...>', 'these are true: they become lines of MEMORY.md'],
      ['--reject <ids...>', 'these are not'],
    ],
    async run(frame, scope: string | undefined, wanted: ReviewWanted): Promise<Answer> {
      const named = toChoices(wanted);
      const session = await frame.open({ needsWorker: named.length > 0 });
      const { globals, output, surroundings, withSlowNotice } = session;
      const memory = await openScope(session, { scope, of: wanted.of });
      const all = await withSlowNotice(`reading the proposals of ${memory.scope}`, memory.proposals());
      for (const [id] of named) {
        if (all.some((proposal) => proposal.id === id)) continue;
        throw new CliError(
          `there is no proposal ${id} in the memory of ${memory.scope}; a scope is written ahead of the flags`,
          EXIT.notFound,
        );
      }
      if (named.length > 0) return review(session, memory, named);
      const open = all.filter(({ state }) => state === 'open');
      const mayAsk = globals.output === 'text' && canAsk(surroundings);
      if (open.length === 0 || !mayAsk) return listProposals(memory, open);
      for (const line of renderProposals(open, await lookOn(output, globals))) output.draw(line);
      return review(session, memory, await pickChoices(surroundings, open));
    },
  },
  {
    name: 'memory forget',
    description: 'remove every line and fact that says this, and prevent its return',
    args: [['<text>', 'what is to be forgotten, in its words']],
    options: [OF_CONVERSATION, ['--scope <scope>', 'whose memory (default: "default")'], ['-y, --yes', 'do not ask']],
    async run(frame, text: string, { yes, ...wanted }: ScopeWanted & { readonly yes?: boolean }): Promise<Answer> {
      const session = await frame.open({ needsWorker: true });
      const { output, globals, withSlowNotice } = session;
      const memory = await openScope(session, wanted);
      const { scope } = memory;
      const found = await withSlowNotice(`looking for it in the memory of ${scope}`, memory.wouldForget(text));
      if (globals.output === 'text') for (const line of renderFound(found, await lookOn(output, globals))) output.draw(line);
      if (yes !== true) await confirmForgetting(session, scope, found);
      const gone = await withSlowNotice(`asking ${memoryWorkflowId(scope)}`, memory.forget(text));
      const { historyLines } = found;
      const counts = [
        formatQuantity(gone.lines.length, 'line'),
        formatQuantity(gone.facts.length, 'fact'),
        formatQuantity(gone.proposals.length, 'proposal'),
        `${formatQuantity(historyLines, 'line')} of HISTORY`,
      ];
      return {
        data: { scope, ...gone, historyLines, remains: REMAINS },
        say: `gone from the memory of ${scope}: ${counts.join(', ')}; earlier versions were rewritten too`,
        notes: [
          'What still has it:',
          ...REMAINS.map((where) => `  - ${where}`),
          'It can be said again, and is heard then; the memory does not take it in again.',
        ],
        temporal: ['workflow', 'show', '-w', memoryWorkflowId(scope)],
      };
    },
  },
  {
    name: 'memory care',
    description: 'merge duplicates and prune stale lines, now',
    args: [SCOPE],
    options: [OF_CONVERSATION, ['--agent <name>', 'whose model and limits; without it, those of the agent that is called as the scope']],
    async run(frame, given: string | undefined, { of, agent }: ScopeWanted & { readonly agent?: string }): Promise<Answer> {
      const session = await frame.open({ needsWorker: true });
      const memory = await openScope(session, { scope: given, of });
      const { scope } = memory;
      const cared = await session.withSlowNotice(`taking care of the memory of ${scope}`, memory.care(agent));
      const { kind, bytesBefore, bytesAfter, facts } = cared;
      const merged = facts.length === 0 ? '' : `; gone, since another says the same: ${formatQuantity(facts.length, 'fact')}`;
      const done = `the memory of ${scope} is in order: ${formatCount(bytesBefore)} → ${formatCount(bytesAfter)} bytes${merged}`;
      return {
        data: { scope, ...cared },
        text: kind === 'cared' ? done : `there is nothing to do in the memory of ${scope}`,
        temporal: updateWords('care', memoryWorkflowId(scope), agent === undefined ? {} : { agent }),
      };
    },
  },
];

function listProposals({ scope }: ScopeMemory, open: readonly Proposal[]): Answer {
  const [first] = open;
  return {
    data: { scope, open },
    draw: (look) => renderProposals(open, look),
    notes: [
      first === undefined ? `nothing waits for a decision in the memory of ${scope}` : 'perdura memory review --accept ID…, --reject ID…',
    ],
    temporal: first === undefined ? ['workflow', 'describe', '-w', memoryWorkflowId(scope)] : acceptWords(scope, first.id),
  };
}

async function review({ withSlowNotice }: CommandSession, memory: ScopeMemory, choices: readonly Choice[]): Promise<Answer> {
  const { scope } = memory;
  const reviewed: Reviewed[] = [];
  for (const [id, decision] of choices)
    reviewed.push(await withSlowNotice(`asking ${memoryWorkflowId(scope)}`, memory.review(id, decision)));
  const late = choices.filter(([id, decision]) => reviewed.find((one) => one.id === id)?.state !== `${decision}ed`);
  return {
    data: { scope, reviewed },
    draw: (look) =>
      reviewed.flatMap(({ id, state, line }) => [
        ...drawText(`${id} ${state}`, 0, look, state === 'accepted' ? 'green' : 'red'),
        ...drawText(line, 4, look),
      ]),
    problems: late.map(([id]) => `${id} was decided before, and the first decision stays`),
    temporal: acceptWords(scope, choices[0]?.[0] ?? 'prop_0001'),
    exitCode: late.length === 0 ? EXIT.ok : EXIT.failed,
  };
}

function toChoices({ accept = [], reject = [] }: ReviewWanted): Choice[] {
  const both = accept.find((id) => reject.includes(id));
  if (both !== undefined) throw new CliError(`${both} cannot be accepted and rejected`, EXIT.usage);
  return [...[...new Set(accept)].map((id): Choice => [id, 'accept']), ...[...new Set(reject)].map((id): Choice => [id, 'reject'])];
}

/** Asks the person at the terminal. Unmarked lines go on waiting. */
async function pickChoices(person: Person, open: readonly Proposal[]): Promise<Choice[]> {
  const accepted = await pickSome(person, 'Which are true, and to be remembered?', open);
  const others = open.filter(({ id }) => !accepted.includes(id));
  const rejected = others.length === 0 ? [] : await pickSome(person, 'Which are to be rejected? The others wait on.', others);
  return [...accepted.map((id): Choice => [id, 'accept']), ...rejected.map((id): Choice => [id, 'reject'])];
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
    options: proposals.map((proposal) => ({ value: proposal.id, label: proposalLabel(proposal, columns) })),
  });
  if (isCancel(picked)) throw new CliError('nothing was decided', EXIT.interrupted);
  return picked;
}

/** One row, whatever a tool has made of the line. */
export function proposalLabel({ line, source }: Proposal, columns: number): string {
  return toTerminalLine(`${line}  (${describeSource(source)})`, columns);
}

function acceptWords(scope: string, id: string): readonly string[] {
  return updateWords('accept', memoryWorkflowId(scope), { id, decision: 'accept' });
}

const REMAINS = [
  "Temporal's history of the conversations where it was said, and of the memory workflow, until the namespace's retention has passed",
  'the raw traces of these conversations (`perdura show ID --raw --archived`) with the results of tools that they have stored, and their summaries (`perdura memory --of ID --list`)',
  'the context of a conversation that runs, and what it can read by retrieve_from_memory, until /new',
] as const;

function renderFound({ lines, facts, proposals, historyLines }: ToForget, look: Look): StyledLine[] {
  const found: readonly (readonly [where: string, text: string])[] = [
    ...lines.map((line) => ['MEMORY.md', line] as const),
    ...facts.map(({ id, fact }) => [`fact ${id}`, fact] as const),
    ...proposals.map(({ id, line }) => [`proposal ${id}`, line] as const),
    ...(historyLines === 0 ? [] : [['HISTORY', formatQuantity(historyLines, 'line')] as const]),
  ];
  if (found.length === 0) return [[{ text: 'nothing says this now; forgotten, it cannot come in later', style: 'dim' }]];
  return found.flatMap(([where, text]) => [...drawText(where, 0, look, 'dim'), ...drawText(text, 4, look, 'red')]);
}

async function confirmForgetting({ surroundings }: CommandSession, scope: string, found: ToForget): Promise<void> {
  if (!canAsk(surroundings)) throw new CliError(`will not forget anything of ${scope} unasked: add --yes`, EXIT.usage);
  const isEmpty = found.lines.length + found.facts.length + found.proposals.length + found.historyLines === 0;
  const message = isEmpty ? 'Keep it from being remembered?' : 'Forget this? It cannot be taken back.';
  if (!(await confirm(surroundings, message))) throw new CliError(`the memory of ${scope} was left as it is`, EXIT.interrupted);
}
