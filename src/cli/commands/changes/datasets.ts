/** `perdura dataset`: turns of conversations as cases of evals, in files of the project. */
import { secretsInFolder, secretsOf, secretVariables, variablesOf } from '../../../config.js';
import type { DatasetSummary } from '../../../evals/dataset.js';
import type { Source } from '../../../evals/from-conversation.js';
import { createKnownSecrets } from '../../../platform/known-secrets.js';
import { counted, oneLine } from '../../../records/text.js';
import { findConversation } from '../../args/find-conversation.js';
import { addValue, parseCount, toTurn } from '../../args/values.js';
import { CONVERSATION, type Answer, type CommandFrame, type CommandRow, type CommandSession } from '../../session/command.js';
import { toTerminalLine } from '../../terminal/terminal-text.js';
import { renderTable } from '../../views/table.js';

interface AddOptions {
  readonly turn?: string;
  readonly name: string;
  readonly label: readonly string[];
  readonly before?: number;
  readonly withMemory?: true;
}

const DEFAULT_NAME = 'cases';
const DATASET = ['<name>', 'the dataset: of evals/datasets/NAME.jsonl'] as const;

export const DATASETS: readonly CommandRow[] = [
  {
    name: 'dataset add',
    description: 'add a turn of a conversation to a dataset, with the turns before it, without secrets and what was forgotten',
    args: [CONVERSATION],
    options: [
      ['--turn <turn>', 'such as 7 or turn_0007 (default: the latest with an answer)'],
      ['--name <name>', 'of the dataset', String, DEFAULT_NAME],
      ['--label <label>', 'what it is an example of; more than once', addValue, []],
      ['--before <count>', 'how many turns of its session go along at most (default: 50)', parseCount],
      ['--with-memory', 'with what its tools have read of long-term memory'],
    ],
    run: addToDataset,
  },
  {
    name: 'dataset list',
    description: 'list the datasets of this folder, with their cases and labels',
    run: listAll,
  },
  {
    name: 'dataset show',
    description: 'list the cases of a dataset',
    args: [DATASET],
    run: showDataset,
  },
  {
    name: 'dataset rm',
    description: 'take a case out of a dataset',
    args: [DATASET, ['<case>', 'its id, such as conv-3f2a/turn_0007']],
    run: removeFromDataset,
  },
];

/** Where a conversation is read, and what must not leave it. */
export async function withSource<T>({ client, config, output }: CommandSession, act: (source: Source) => Promise<T>): Promise<T> {
  const { openStore } = await import('../../../stores/open.js');
  const secrets = createKnownSecrets([...secretsOf(config), ...secretVariables(variablesOf(config)), ...secretsInFolder(config.cwd)]);
  const store = openStore(config, { log: (line) => output.problem(line) });
  try {
    return await act({ client, store, secrets });
  } finally {
    await store.close();
  }
}

async function addToDataset(
  frame: CommandFrame,
  given: string,
  { turn: wanted, name, label, before, withMemory }: AddOptions,
): Promise<Answer> {
  const [{ takeConversation, toCase }, { addCase, datasetFile }] = await Promise.all([
    import('../../../evals/from-conversation.js'),
    import('../../../evals/dataset.js'),
  ]);
  const number = wanted === undefined ? undefined : toTurn(wanted);
  datasetFile(frame.config().cwd, name);
  const session = await frame.open();
  const id = await findConversation(session, given);
  const reading = withSource(session, (source) => takeConversation(source, id, { withMemory: withMemory === true }));
  const taken = await session.withSlowNotice(`reading ${id}`, reading);
  const turn = number ?? taken.turns.at(-1)?.turn ?? '';
  const one = toCase(taken, { turn, labels: label, ...(before !== undefined && { before }) });
  const added = await addCase(session.config.cwd, name, one);
  const words = added.isNew
    ? `added ${one.id} to ${name}`
    : `${one.id} is in ${name} already; its labels: ${added.labels.join(', ') || 'none'}`;
  return {
    data: { ...added, name, id: one.id, before: one.before.length },
    text: one.id,
    say: `${words} (${counted(added.cases, 'case')}). Read ${added.file} before you commit it: people's words are in it`,
  };
}

async function listAll(frame: CommandFrame): Promise<Answer> {
  const { listDatasets } = await import('../../../evals/dataset.js');
  const datasets = await listDatasets(frame.config().cwd);
  const labels = ({ labels: of }: DatasetSummary): string =>
    Object.entries(of)
      .map(([label, count]) => `${label} ${count}`)
      .join(', ');
  return {
    data: { datasets },
    draw: (look) =>
      datasets.length === 0
        ? []
        : renderTable(
            datasets,
            [
              { title: 'DATASET', cell: ({ name }) => name, rank: 0 },
              { title: 'CASES', cell: ({ cases }) => String(cases), align: 'right', rank: 1 },
              { title: 'LABELS', cell: labels, least: 10, rank: 2 },
            ],
            look,
          ),
    notes: datasets.length === 0 ? ['there is no dataset here: `perdura dataset add ID --turn N` begins one'] : [],
  };
}

async function showDataset(frame: CommandFrame, name: string): Promise<Answer> {
  const { readDataset } = await import('../../../evals/dataset.js');
  const cases = await readDataset(frame.config().cwd, name);
  type Row = (typeof cases)[number];
  return {
    data: { name, cases },
    draw: (look) =>
      cases.length === 0
        ? []
        : renderTable(
            cases,
            [
              { title: 'CASE', cell: ({ id }) => toTerminalLine(id, 120), rank: 0 },
              { title: 'AGENT', cell: ({ agent }: Row) => toTerminalLine(agent, 64), rank: 4 },
              { title: 'LABELS', cell: ({ labels }) => labels.join(', '), least: 8, rank: 2 },
              { title: 'BEFORE', cell: ({ before }) => String(before.length), align: 'right', rank: 3 },
              { title: 'MESSAGE', cell: ({ turn }) => toTerminalLine(oneLine(turn.message), 200), least: 20, rank: 1 },
            ],
            look,
          ),
    notes: cases.length === 0 ? [`${name} has no case`] : [],
  };
}

async function removeFromDataset(frame: CommandFrame, name: string, id: string): Promise<Answer> {
  const { removeCase } = await import('../../../evals/dataset.js');
  const removed = await removeCase(frame.config().cwd, name, id);
  return { data: { ...removed, name, id }, text: `took ${id} out of ${name} (${counted(removed.cases, 'case')} left)` };
}
