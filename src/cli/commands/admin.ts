/** `perdura admin`: what an installation needs beside its conversations: the namespace, repairs, and what was spent. */
import { Option } from 'commander';
import type { UsageReport } from '../../client.js';
import { temporalConnection } from '../../config.js';
import type { Healed } from '../../heal/heal.js';
import { errorMessage } from '../../platform/errors.js';
import { formatDuration, parseMoment } from '../../records/time-in-words.js';
import { describeUsed, PERIODS, usedShare, type Period } from '../../records/tenant-budget.js';
import type { LimitState } from '../../stores/store.js';
import { SPENDING_GROUPS, type SpendingGroup, type SpendingSum } from '../../records/spending.js';
import { findConversation } from '../args/find-conversation.js';
import { checkTemporal, openConnection, setRetention } from '../services/temporal-connection.js';
import { CONVERSATION, type Answer, type CommandFrame, type CommandRow } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { formatQuantity, formatCost, formatCount } from '../views/quantities.js';
import { renderTable, type Column, type Look } from '../views/table.js';

interface UsageOptions {
  readonly by: SpendingGroup;
  readonly since?: string;
  readonly tenant?: string;
}

export const ADMIN: readonly CommandRow[] = [
  {
    name: 'admin setup',
    description: 'register search attributes and set the retention of the namespace that TEMPORAL_* names',
    run: setUpNamespace,
  },
  {
    name: 'admin heal',
    description: "rebuild what the store has lost of a conversation, from Temporal's history",
    args: [CONVERSATION],
    run: heal,
  },
  {
    name: 'admin limits',
    description: "show what is left of providers' limits, who waits for them, and of tenants' budgets",
    help: `From the store, where all workers share them: learnt from providers' answers, or set as "rateLimits" of a model in perdura.config. A key
is named by a hash of it. Budgets are those of PERDURA_TENANT_BUDGETS that name a tenant; "admin usage --by tenant" shows what each has spent.`,
    run: showLimits,
  },
  {
    name: 'admin usage',
    description: 'show what all conversations have spent, failed and late calls included',
    options: [
      new Option('--by <what>', 'one line for each').choices(SPENDING_GROUPS).default('model'),
      ['--tenant <name>', "only this tenant's"],
      ['--since <date>', 'calls of this ISO date or time (UTC) and later'],
    ],
    help: `From the store. A cost is by the prices of the day of the call; "not known", and "+ ?" beside a sum, is of models whose price we do not know.
What a deleted conversation has spent goes with it.`,
    async run(frame, { by, since, tenant }: UsageOptions): Promise<Answer> {
      const from = since === undefined ? undefined : parseMoment(since);
      if (since !== undefined && from === undefined)
        throw new CliError(
          `${JSON.stringify(since.slice(0, 40))} is no date: write 2026-02-27 or 2026-02-27T14:30, in UTC unless a zone stands behind it`,
          EXIT.usage,
        );
      const { client, withSlowNotice } = await frame.open();
      const wanted = { by, ...(from !== undefined && { since: new Date(from * 1000) }), ...(tenant !== undefined && { tenant }) };
      const report = await withSlowNotice('adding up', client.usage(wanted));
      const { sums, total } = report;
      return {
        data: report,
        draw: (look) => renderUsage(report, look),
        notes: [
          ...(sums.length === 0 ? [since === undefined ? 'nothing was spent yet' : `nothing was spent since ${since}`] : []),
          ...(total.unpriced > 0
            ? [
                `the price of ${formatQuantity(total.unpriced, 'call')} is not known (?): \`perdura admin usage --by model\` shows of which models`,
              ]
            : []),
        ],
      };
    },
  },
];

interface ShownBudget {
  readonly tenant: string;
  readonly period: Period;
  readonly name: string;
  readonly percent: number;
  readonly used: string;
}

async function showLimits(frame: CommandFrame): Promise<Answer> {
  const config = frame.config();
  const [{ openStore }, { tenantBudgets }, { namespace }] = await Promise.all([
    import('../../stores/open.js'),
    import('../../config.js'),
    temporalConnection(config),
  ]);
  const rules = tenantBudgets(config);
  const store = openStore(config);
  try {
    const limits = await store.rateLimits.list();
    const budgets: ShownBudget[] = [];
    for (const { tenant, ...budget } of rules) {
      if (tenant === undefined) continue;
      const sums = await store.tenantSpendings.read({ namespace, tenant }, Date.now());
      for (const period of PERIODS) {
        const limit = budget[period];
        const { name, used } = sums[period];
        if (limit) budgets.push({ tenant, period, name, percent: Math.floor(usedShare(used, limit)), used: describeUsed(used, limit) });
      }
    }
    return {
      data: { limits, budgets },
      draw: (look) => [...renderLimits(limits, look), ...(budgets.length === 0 ? [] : [[{ text: '' }], ...renderBudgets(budgets, look)])],
      notes: [
        ...(limits.length === 0 ? ['no limit is known: none is set, and no provider has answered with one in the last day'] : []),
        ...limits.flatMap(({ of, blockedMs }) =>
          blockedMs > 0 ? [`${describeKey(of)} takes no request for ${formatDuration(blockedMs)}: it has refused one`] : [],
        ),
      ],
    };
  } finally {
    await store.close();
  }
}

function renderLimits(all: readonly LimitState[], look: Pick<Look, 'width' | 'measure'>): StyledLine[] {
  const rows = all.flatMap((state) => state.limits.map((limit) => ({ ...limit, state })));
  if (rows.length === 0) return [];
  type Row = (typeof rows)[number];
  const waits = ({ state: { waiting } }: Row): string =>
    waiting.map(({ tenant, isBackground, count }) => `${count} ${tenant || 'of none'}${isBackground ? ' (background)' : ''}`).join(', ') ||
    '-';
  const columns: Column<Row>[] = [
    { title: 'MODEL AND KEY', cell: ({ state }) => describeKey(state.of), look: () => 'cyan', least: 12, rank: 0 },
    {
      title: 'LIMIT',
      cell: ({ kind, limit, perMs }) => `${formatCount(Math.round(limit))} ${kind}${perMs ? ` / ${formatDuration(perMs)}` : ''}`,
      rank: 1,
    },
    { title: 'LEFT', cell: ({ left }) => formatCount(left), align: 'right', rank: 2 },
    { title: 'FROM', cell: ({ source }) => source, rank: 4 },
    { title: 'WAITING', cell: waits, least: 8, rank: 3 },
  ];
  return renderTable(rows, columns, look);
}

function renderBudgets(budgets: readonly ShownBudget[], look: Pick<Look, 'width' | 'measure'>): StyledLine[] {
  const columns: Column<ShownBudget>[] = [
    { title: 'TENANT', cell: ({ tenant }) => tenant, look: () => 'cyan', least: 8, rank: 0 },
    { title: 'PERIOD', cell: ({ name }) => name, rank: 2 },
    { title: 'USED', cell: ({ used }) => used, rank: 1 },
    { title: '', cell: ({ percent }) => `${percent} %`, align: 'right', rank: 3 },
  ];
  return renderTable(budgets, columns, look);
}

/** `anthropic/claude-sonnet-5-5 (key 1a2b3c)` */
function describeKey(of: string): string {
  const [model = '', account = ''] = of.split('#');
  return toTerminalLine(account === '' ? model : `${model} (key ${account.slice(0, 6)})`, 80);
}

export const RETENTION_DAYS = 30;

/** Gives the namespace of the settings what conversations want of it. Can be run again at any time. */
async function setUpNamespace({ config }: CommandFrame): Promise<Answer> {
  const temporal = await temporalConnection(config());
  await checkTemporal(temporal);
  const { namespace } = temporal;
  const where = `namespace ${namespace} at ${temporal.connectionOptions.address}`;
  const { registerAttributes } = await import('../../client/temporal/connection.js');
  const connection = await openConnection(temporal.connectionOptions, 5000);
  try {
    const registered = await registerAttributes(connection, namespace).catch((cause: unknown) => {
      throw new CliError(
        `cannot register search attributes in ${where}: ${errorMessage(cause)}; ask who runs that server, or add them in its page`,
        EXIT.failed,
        { cause },
      );
    });
    const { config: before } = await connection.workflowService.describeNamespace({ namespace });
    const days = Number(before?.workflowExecutionRetentionTtl?.seconds ?? 0) / 86_400;
    // Conversations work without it: their history is gone sooner after their end.
    const refusal =
      days >= RETENTION_DAYS
        ? undefined
        : await setRetention(temporal, RETENTION_DAYS).then(
            () => undefined,
            (error: unknown) => errorMessage(error),
          );
    const attributes = registered.length === 0 ? 'all were registered already' : `registered ${registered.join(', ')}`;
    const retention =
      days >= RETENTION_DAYS
        ? `is ${days} days already`
        : refusal === undefined
          ? `set from ${days} to ${RETENTION_DAYS} days`
          : `stays ${days} days, since the server does not allow a change (${refusal})`;
    return {
      data: { namespace, registered, retentionDays: refusal === undefined ? Math.max(days, RETENTION_DAYS) : days },
      text: `search attributes: ${attributes} in ${where}\nretention: ${retention}`,
    };
  } finally {
    await connection.close();
  }
}

/** Writes again what the store has lost, from Temporal's history. */
async function heal(frame: CommandFrame, given: string): Promise<Answer> {
  const session = await frame.open();
  const { client, config, withSlowNotice } = session;
  const id = await findConversation(session, given);
  const key = await client.key(id);
  const [{ connectTemporal }, { heal: healConversation }, { createRememberedBy }, { openStore }, { loadUserConfig }] = await Promise.all([
    import('../../client.js'),
    import('../../heal/heal.js'),
    import('../../heal/restore-memory.js'),
    import('../../stores/open.js'),
    import('../../extensions/user-config.js'),
  ]);
  const { connection } = await connectTemporal(config);
  const { processors } = await loadUserConfig(config.cwd);
  const store = openStore(config);
  try {
    const { workflowService: service } = connection;
    const rememberedBy = createRememberedBy(service, { namespace: key.namespace, taskQueue: config.taskQueue });
    const healing = healConversation({ service, store, processors: processors?.input, rememberedBy }, key);
    const healed = await withSlowNotice(`reading the history of ${id}`, healing);
    const { missing, restored, problems } = healed;
    return {
      data: { id, ...healed },
      text: describeHealed(id, healed).join('\n'),
      problems,
      temporal: ['workflow', 'show', '-w', id],
      exitCode: missing === restored && problems.length === 0 ? EXIT.ok : EXIT.failed,
    };
  } finally {
    await store.close();
    await connection.close();
  }
}

export function describeHealed(id: string, { runs, known, missing, restored, lostBodies, complete }: Healed): string[] {
  const were = `${formatCount(missing)} ${missing === 1 ? 'was' : 'were'} missing in the store`;
  const found =
    missing === 0
      ? 'the store has them all'
      : restored === missing
        ? `${were} and ${missing === 1 ? 'is' : 'are'} back`
        : `${were}, ${formatCount(restored)} back; run it again, and look at the store if it stays so`;
  return [
    `${id}: history has ${formatQuantity(known, 'entry', 'entries')} in ${formatQuantity(runs, 'run')}; ${found}`,
    ...lostBodies.map((ref) => `a long text is lost, history had only its beginning: ${ref}`),
    ...(complete ? [] : ['earlier runs have passed their retention: what only they had cannot be brought back']),
  ];
}

function renderUsage({ by, sums, total }: Pick<UsageReport, 'by' | 'sums' | 'total'>, look: Pick<Look, 'width' | 'measure'>): StyledLine[] {
  const rows = sums.length > 1 ? [...sums, total] : sums;
  const has = (what: 'failed' | 'fenced'): boolean => total[what] > 0;
  const number = (title: string, cell: (row: SpendingSum) => number, rank: number): Column<SpendingSum> => ({
    title,
    cell: (row) => formatCount(cell(row)),
    align: 'right',
    rank,
  });
  const columns: Column<SpendingSum>[] = [
    {
      title: by.toUpperCase(),
      cell: ({ of }) => toTerminalLine(of, 80),
      look: (row) => (row === total ? 'dim' : 'cyan'),
      least: 8,
      rank: 0,
    },
    { title: 'COST', cell: describeCost, align: 'right', rank: 1 },
    number('IN', ({ usage }) => usage.inputTokens, 2),
    number('CACHED', ({ usage }) => usage.cachedTokens, 5),
    number('OUT', ({ usage }) => usage.outputTokens, 3),
    number('CALLS', ({ calls }) => calls, 4),
    ...(has('failed') ? [number('FAILED', ({ failed }) => failed, 6)] : []),
    ...(has('fenced') ? [number('TOO LATE', ({ fenced }) => fenced, 7)] : []),
  ];
  return renderTable(rows, columns, look);
}

/** A price that is not known is no price of 0: what is known is the least that it was. */
function describeCost({ usage, unpriced }: Pick<SpendingSum, 'usage' | 'unpriced'>): string {
  if (usage.costUsd === null) return 'not known';
  return unpriced > 0 ? `${formatCost(usage.costUsd)} + ?` : formatCost(usage.costUsd);
}
