/** The end of a person, with a receipt that says what was removed, what stays, and until when; and how such a receipt is checked. */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import type { ErasureAccess, Whose } from '../../client/erasure/find.js';
import type { Receipt, Removed, SignedReceipt } from '../../client/erasure/receipt.js';
import type { Config } from '../../config.js';
import { isScope, isTenant } from '../../conversation/protocol/limits.js';
import { errorCode, errorMessage } from '../../platform/errors.js';
import { isRecord } from '../../platform/json.js';
import { packageVersion } from '../../platform/optional-package.js';
import { qualifiedScope } from '../../records/identity.js';
import { parseRetention, type Retention } from '../../records/time-in-words.js';
import { readSecrets } from '../args/find-conversation.js';
import type { Answer, CommandFrame, CommandRow, CommandSession } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { canAsk, confirm } from '../terminal/input.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { formatCount, formatQuantity } from '../views/quantities.js';
import { renderTable, type Column, type Look } from '../views/table.js';

interface ForgetOptions {
  readonly tenant?: string;
  readonly withForks?: boolean;
  readonly dryRun?: boolean;
  readonly receipt?: string;
  readonly yes?: boolean;
}

export const ERASURE: readonly CommandRow[] = [
  {
    name: 'admin forget-person',
    description: 'erase a memory scope, or a whole tenant, everywhere, and write a signed receipt',
    args: [['[scope]', "the scope, as conversations name it; a tenant's with --tenant"]],
    options: [
      ['--tenant <name>', 'the tenant of the scope; without a scope: all of that tenant'],
      ['--with-forks', 'also conversations of other scopes that began with turns of it'],
      ['--dry-run', 'show what there is, and erase nothing'],
      ['--receipt <file>', 'where the receipt goes (default: .perdura/receipts)'],
      ['-y, --yes', 'do not ask'],
    ],
    help: `Conversations with their sub-agents and branches (what runs is stopped first), memory, HISTORY, facts, search index, vectors, files,
sign-ins, schedules, deliveries of webhooks, and their runs in Temporal; of a tenant its workspace on this machine and its tokens too.
Workers may go on: what they still have to write for it is refused. Revoke first what begins conversations for this person.
Cut short, the same command does the rest. The receipt has no word of what was removed; \`perdura admin verify-receipt\` checks it.
A name that comes again later begins with nothing.`,
    run: forgetPerson,
  },
  {
    name: 'admin verify-receipt',
    description: 'check the signature of a receipt of `admin forget-person`',
    args: [['<file>', 'the receipt']],
    options: [['--key <key>', 'the public key that must have signed it (default: the one of this installation)']],
    help: `Exit code 0: nothing was changed since this installation, or who has that key, has signed it. 1: it was changed, or another has signed it.
Without the installation's secret, compare the key with the one that you were given: \`-o json\` prints it.`,
    run: checkReceipt,
  },
  {
    name: 'admin retention',
    description: 'show which conversations are over or idle for longer than PERDURA_RETENTION says; --now deletes them',
    options: [
      ['--now', 'delete them now, as the schedule of the workers does once a day'],
      ['--keep <rules>', 'these rules in place of the setting: 90d, or 90d,acme=30d,globex=off', readRetention],
      ['-y, --yes', 'of --now: do not ask'],
    ],
    help: `What long-term memory has learnt stays; \`perdura admin forget-person\` erases that too. One that runs goes only when it is idle, and
its worker says so; one whose turns a fork reads stays until the fork goes.`,
    run: showRetention,
  },
];

function readRetention(text: string): Retention {
  const rules = parseRetention(text);
  if (rules === undefined) throw new InvalidArgumentError('Write days, such as 90d, or for single tenants 90d,acme=30d,globex=off.');
  return rules;
}

interface RetentionOptions {
  readonly now?: boolean;
  readonly keep?: Retention;
  readonly yes?: boolean;
}

async function showRetention(frame: CommandFrame, { now = false, keep, yes }: RetentionOptions): Promise<Answer> {
  const retention = keep ?? frame.config().retention;
  if (retention === undefined) throw new CliError('everything is kept: set PERDURA_RETENTION, such as to 90d, or give --keep', EXIT.usage);
  const session = await frame.open();
  return withErasureAccess(session, async (access) => {
    const { deleteExpired, findExpired, retentionSchedule } = await import('../../client/erasure/retention.js');
    const { surroundings, withSlowNotice, output } = session;
    const expired = await withSlowNotice('looking which are due', findExpired(access, retention));
    const due = expired.map(({ id, scope, lastAt, isRunning }) => ({ id, scope, lastAt: lastAt.toISOString(), running: isRunning }));
    if (!now) {
      const next = await access.client.schedule
        .getHandle(retentionSchedule(access.taskQueue))
        .describe()
        .then(
          ({ info }) => info.nextActionTimes[0]?.toISOString(),
          () => undefined,
        );
      return {
        data: { due, next: next ?? null },
        draw: (look) => (due.length === 0 ? [] : renderTable(due, DUE, look)),
        notes: [
          due.length === 0 ? 'nothing is due' : `${formatQuantity(due.length, 'conversation')} due; --now deletes them`,
          next === undefined ? 'no worker with PERDURA_RETENTION has made the schedule yet' : `the workers look next at ${next}`,
        ],
      };
    }
    if (yes !== true && due.length > 0) {
      if (!canAsk(surroundings))
        throw new CliError(`will not delete ${formatQuantity(due.length, 'conversation')} unasked: add --yes`, EXIT.usage);
      if (!(await confirm(surroundings, `Delete ${formatQuantity(due.length, 'conversation')}? It cannot be undone.`)))
        throw new CliError('nothing was deleted', EXIT.interrupted);
    }
    const kept: { readonly id: string; readonly why: string }[] = [];
    const outcome = await deleteExpired(access, retention, {
      stop: session.signal,
      onDeleted: ({ id }) => output.note(`(deleted ${id})`),
      onKept: ({ id }, why) => kept.push({ id, why }),
    });
    return {
      data: { ...outcome, stays: kept },
      say: `${formatQuantity(outcome.deleted, 'conversation')} deleted`,
      problems: kept.map(({ id, why }) => `${id} stays: ${why}`),
    };
  });
}

type Due = { readonly id: string; readonly scope: string; readonly lastAt: string; readonly running: boolean };

const DUE: readonly Column<Due>[] = [
  { title: 'ID', cell: ({ id }) => toTerminalLine(id, 80), rank: 0, least: 12 },
  { title: 'SCOPE', cell: ({ scope }) => toTerminalLine(scope, 80), rank: 1, least: 8 },
  { title: 'LAST', cell: ({ lastAt }) => lastAt.slice(0, 10), rank: 0 },
  { title: 'STATE', cell: ({ running }) => (running ? 'idle' : 'over'), rank: 2 },
];

/** The store, and Temporal as its client has it: what a session's client does not lend. */
export async function withErasureAccess<T>({ config }: CommandSession, work: (access: ErasureAccess) => Promise<T>): Promise<T> {
  const [{ connectTemporal }, { openStore }, { openClient }] = await Promise.all([
    import('../../client.js'),
    import('../../stores/open.js'),
    import('../../client/temporal/encryption.js'),
  ]);
  const { connection, namespace } = await connectTemporal(config);
  const store = openStore(config);
  try {
    return await work({ client: openClient({ connection, namespace }), namespace, taskQueue: config.taskQueue, store });
  } finally {
    await store.close();
    await connection.close();
  }
}

async function forgetPerson(frame: CommandFrame, given: string | undefined, options: ForgetOptions): Promise<Answer> {
  const whose = readWhose(given, options);
  const what = `the ${whose.kind} ${whose.name}`;
  const session = await frame.open({
    whenInterrupted: 'interrupted: a part of it may be erased already; the same command does the rest',
  });
  const { surroundings, withSlowNotice } = session;
  return withErasureAccess(session, async (access) => {
    if (options.yes !== true || options.dryRun === true) {
      const { createKnown, findPerson } = await import('../../client/erasure/find.js');
      const found = await withSlowNotice(`looking for ${what}`, findPerson(access, whose, createKnown(whose)));
      const runs = [...found.conversations, ...found.memories, ...found.deliveries];
      const there = {
        conversations: new Set(found.lives.map(({ conversation }) => conversation)).size,
        lives: found.lives.length,
        runs: runs.length,
        running: runs.filter(({ isRunning }) => isRunning).length,
        schedules: found.schedules.length,
        scopes: found.scopes,
      };
      const inTemporal = `${formatQuantity(there.runs, 'run')} in Temporal (${formatCount(there.running)} running)`;
      const summary = `${formatQuantity(there.conversations, 'conversation')} with sub-agents, ${inTemporal}, ${formatQuantity(there.schedules, 'schedule')}`;
      if (options.dryRun === true) return { data: { of: whose, ...there }, say: `${what} has ${summary}; nothing was erased` };
      if (!canAsk(surroundings)) throw new CliError(`will not erase ${what} unasked: add --yes`, EXIT.usage);
      const question = `Erase ${what} everywhere? ${summary}. It cannot be brought back.`;
      if (!(await confirm(surroundings, question))) throw new CliError(`${what} was left as it is`, EXIT.interrupted);
    }
    return eraseWithReceipt(session, access, whose, options);
  });
}

function readWhose(given: string | undefined, { tenant }: ForgetOptions): Whose {
  const isKnownKind: boolean = tenant === undefined || isTenant(tenant);
  if (!isKnownKind) throw new CliError(`${JSON.stringify(tenant?.slice(0, 80))} is no tenant`, EXIT.usage);
  if (given === undefined) {
    if (tenant === undefined) throw new CliError('say whom: a scope, or --tenant NAME for all of a tenant', EXIT.usage);
    return { kind: 'tenant', name: tenant };
  }
  const name = given.includes('.') && tenant === undefined ? given : qualifiedScope(tenant, given);
  const isName: boolean = isScope(name);
  if (isName) return { kind: 'scope', name };
  throw new CliError(`${JSON.stringify(given.slice(0, 80))} can be no scope of a memory`, EXIT.usage);
}

async function eraseWithReceipt(
  { config, output }: CommandSession,
  access: ErasureAccess,
  whose: Whose,
  options: ForgetOptions,
): Promise<Answer> {
  const [{ erase }, { signReceipt, keyFingerprint, listRemains, listRemoved }, { eraseLocal }, { default: writeFileAtomic }] =
    await Promise.all([
      import('../../client/erasure/erase.js'),
      import('../../client/erasure/receipt.js'),
      import('./local-places.js'),
      import('write-file-atomic'),
    ]);
  const { all: secrets } = await readSecrets(config);
  const folder = join(config.cwd, '.perdura', 'receipts');
  const open = join(folder, `unfinished-${hashName(whose)}.json`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const before = await readUnfinished(open);
  const begun: Unfinished = {
    id: before?.id ?? randomUUID(),
    of: whose,
    begun: before?.begun ?? new Date().toISOString(),
    calls: (before?.calls ?? 0) + 1,
  };
  await writeFileAtomic(open, `${JSON.stringify(begun)}\n`, { mode: 0o600 });
  const withForks = options.withForks === true;
  const erased = await erase(access, whose, { withForks, onProgress: (what) => output.note(`(${what})`) });
  // What a tool was writing when it was stopped may have come after the first look.
  const [first, second] = [await eraseLocal(config, whose, erased), await eraseLocal(config, whose, erased)];
  const receipt: Receipt = {
    ...{ v: 1, kind: 'perdura erasure receipt', id: begun.id, perdura: packageVersion(), of: whose, namespace: access.namespace },
    store: { kind: access.store.kind, id: await access.store.id() },
    ...{ begun: begun.begun, finished: new Date().toISOString(), calls: begun.calls },
    removed: [...listRemoved(erased), ...sumRemoved([...first.removed, ...second.removed])],
    stays: [...listRemains(erased, access.store.kind, whose), ...second.stays],
  };
  const signed = signReceipt(receipt, secrets[0]);
  const file = options.receipt === undefined ? join(folder, `${begun.id}.json`) : resolve(config.cwd, options.receipt);
  await writeFileAtomic(file, `${JSON.stringify(signed, null, 2)}\n`, { mode: 0o600 });
  await rm(open, { force: true });
  return {
    data: { file, ...signed },
    draw: (look) => drawReceipt(signed, look),
    say: `the ${whose.kind} ${whose.name} is erased; the receipt is ${file}`,
    notes: [
      `signed with the key ${keyFingerprint(signed.signature.publicKey)}; \`perdura admin verify-receipt ${file}\` checks it`,
      ...(erased.notYetGone > 0
        ? [
            `Temporal has not removed ${formatQuantity(erased.notYetGone, 'run')} yet: run the command again later for a receipt that says so`,
          ]
        : []),
    ],
  };
}

/** Of an erasure that has begun: its file stays where it is cut short. */
interface Unfinished {
  readonly id: string;
  readonly of: Whose;
  readonly begun: string;
  readonly calls: number;
}

/** Undefined where there is none, or none that can be read. */
async function readUnfinished(file: string): Promise<Unfinished | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (!isRecord(value) || !isRecord(value['of'])) return undefined;
    const { id, begun, calls, of } = value;
    const { kind, name } = of;
    if (typeof id !== 'string' || typeof begun !== 'string' || typeof calls !== 'number' || typeof name !== 'string') return undefined;
    return kind === 'scope' || kind === 'tenant' ? { id, begun, calls, of: { kind, name } } : undefined;
  } catch {
    return undefined;
  }
}

function hashName({ kind, name }: Whose): string {
  return createHash('sha256').update(`${kind} ${name}`).digest('hex').slice(0, 16);
}

function sumRemoved(removed: readonly Removed[]): Removed[] {
  const sums = new Map<string, Removed>();
  for (const one of removed) sums.set(one.place, { ...one, count: one.count + (sums.get(one.place)?.count ?? 0) });
  return [...sums.values()];
}

async function checkReceipt({ config }: CommandFrame, file: string, { key }: { readonly key?: string }): Promise<Answer> {
  const { verifyReceipt, receiptPublicKey, keyFingerprint } = await import('../../client/erasure/receipt.js');
  const settings: Config = config();
  const text = await readFile(resolve(settings.cwd, file), 'utf8').catch((cause: unknown) => {
    const isAbsent = errorCode(cause) === 'ENOENT';
    throw new CliError(`cannot read ${file}: ${errorMessage(cause)}`, isAbsent ? EXIT.notFound : EXIT.failed, { cause });
  });
  const trusted = key === undefined ? (await readSecrets(settings)).all.map(receiptPublicKey) : [key];
  const verdict = verifyReceipt(text, trusted);
  if (verdict.kind === 'changed') {
    return {
      data: { verified: false, why: verdict.why },
      problems: [`${file} is not to be trusted: ${verdict.why}`],
      exitCode: EXIT.failed,
    };
  }
  const { signed, isOurs } = verdict;
  const { publicKey } = signed.signature;
  const named = keyFingerprint(publicKey);
  return {
    data: { verified: isOurs, publicKey, fingerprint: named, receipt: signed.receipt },
    draw: (look) => drawReceipt(signed, look),
    ...(isOurs
      ? { say: `${file} is as it was signed by the key ${named}` }
      : {
          problems: [
            `nothing of ${file} was changed since the key ${named} has signed it, but that key is not ${key === undefined ? "this installation's" : 'the one that was given'}`,
          ],
          exitCode: EXIT.failed,
        }),
  };
}

function drawReceipt({ receipt }: SignedReceipt, look: Pick<Look, 'width' | 'measure'>): StyledLine[] {
  const line = (text: string): string => toTerminalLine(text, 400);
  return [
    ...renderTable(
      receipt.removed.filter(({ count }) => count > 0),
      [
        { title: 'REMOVED', cell: ({ place }) => line(place), rank: 0, least: 12 },
        { title: 'COUNT', cell: ({ count }) => formatCount(count), align: 'right', rank: 0 },
        { title: 'OF', cell: ({ what }) => line(what), rank: 1, least: 12 },
      ],
      look,
    ),
    [],
    ...renderTable(
      receipt.stays,
      [
        { title: 'STAYS', cell: ({ place }) => line(place), rank: 0, least: 12 },
        { title: 'UNTIL', cell: ({ until }) => line(until), rank: 0, least: 12 },
        { title: 'WHAT', cell: ({ what }) => line(what), rank: 1, least: 10 },
      ],
      look,
    ),
  ];
}
