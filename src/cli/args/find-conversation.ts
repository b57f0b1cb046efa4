/**
 * What people type for a conversation: its id, a beginning that only one has, or `TENANT/ID` for what a tenant calls so; and for a scope of
 * long-term memory.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandSession } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { Pending, PerduraClient, ScopeMemory } from '../../client.js';
import { CONVERSATION_PATTERN } from '../../conversation/protocol/contract.js';
import type { Config } from '../../config.js';
import { CHILD_PATTERN, isTenant, splitChildId, TENANT_PATTERN } from '../../conversation/protocol/limits.js';
import { keptToken } from '../../gateway/access/entrance.js';
import { deriveKey } from '../../platform/seal.js';

type Desk = Pick<CommandSession, 'client' | 'config' | 'output' | 'withSlowNotice'>;

export async function findConversation({ client, config, output, withSlowNotice }: Desk, given: string): Promise<string> {
  const tenants = await namedByTenant(config, given);
  if (tenants !== undefined) return (await withSlowNotice(`looking for ${given}`, describeNamed(client, tenants, given))).id;
  // As `perdura list` shows a shortened one.
  const beginning = given.replace(/…$/, '');
  if (!BEGINNING.test(beginning)) {
    throw new CliError(`${JSON.stringify(given)} is not an id of a conversation: up to 64 letters, digits, - and _`, EXIT.usage);
  }
  const id = await withSlowNotice(`looking for ${beginning}`, find(client, beginning));
  if (id !== beginning) output.note(`${beginning} is ${id}`);
  return id;
}

/** Of a conversation's id or of a sub-agent's: `conv-3f2a:turn_0001:1`. */
const BEGINNING = /^[A-Za-z0-9][A-Za-z0-9_-]{0,84}(?::[A-Za-z0-9_]{0,24}){0,16}$/;

/** What has ended takes nothing; better reported here than as "no such conversation". */
export async function findRunning(session: Desk, given: string): Promise<string> {
  const id = await findConversation(session, given);
  const { state } = await session.client.describe(id);
  if (state === 'running' || state === 'unknown') return id;
  throw new CliError(`conversation ${id} is not running any more (${state}); \`perdura show ${id}\` reads it`, EXIT.notFound);
}

async function describeNamed(client: PerduraClient, id: string, given: string): Promise<{ readonly id: string }> {
  return client.describe(id).catch((error: unknown) => {
    if ((error as { kind?: unknown }).kind !== 'not-found') throw error;
    const [tenant] = given.split('/');
    throw new CliError(`cannot find conversation ${given}: \`perdura list --tenant ${tenant}\` shows what there is`, EXIT.notFound, {
      cause: error,
    });
  });
}

async function find(client: PerduraClient, beginning: string): Promise<string> {
  let missing: unknown;
  try {
    // The product's other workflows have colons in their ids too.
    if (CONVERSATION_PATTERN.test(beginning) || CHILD_PATTERN.test(beginning)) return (await client.describe(beginning)).id;
  } catch (error) {
    if ((error as { kind?: unknown }).kind !== 'not-found') throw error;
    missing = error;
  }
  // Where visibility cannot search for a beginning, there is none.
  const listed = await client.list({ query: `WorkflowId STARTS_WITH '${beginning}'`, limit: 100 }).catch(() => []);
  // A conversation and its sub-agents begin with the same: meant is the conversation, as long as no colon is typed.
  const found = beginning.includes(':') ? listed.map(({ id }) => id) : [...new Set(listed.map(({ id }) => splitChildId(id)[0]))];
  const [first, second] = found;
  if (first !== undefined && second === undefined) return first;
  if (first === undefined) {
    throw new CliError(
      `cannot find conversation ${beginning}: none has this id or begins with it; \`perdura list\` shows all`,
      EXIT.notFound,
      {
        cause: missing,
      },
    );
  }
  const names = found.slice(0, 3);
  throw new CliError(
    `${beginning} is the beginning of several conversations (${names.join(', ')}${found.length > 3 ? ', …' : ''}): write more of it`,
    EXIT.usage,
  );
}

/** Which of the calls that wait a person means: named, or the only one. */
export type Verb = 'approve' | 'deny' | 'answer';

/** `c1`, `turn_0001/c1`; a sub-agent's may stand behind its conversation's id. */
export const CALL_PATTERN = /^(?:turn_\d{4,15}\/)?c\d{1,6}$/;

export function pickApproval(waiting: readonly Pending[], call: string | undefined, verb: Verb, id: string): Pending {
  if (waiting.length === 0) throw new CliError(`nothing waits for a person in ${id}: it was decided, or has expired`, EXIT.notFound);
  const named = call === undefined ? waiting : waiting.filter(({ callId }) => callId === call || callId.endsWith(`/${call}`));
  if (named.length === 0) {
    throw new CliError(
      `${call ?? ''} does not wait in ${id}: it was decided, has expired, or was never asked; there ${listed(waiting)}`,
      EXIT.notFound,
    );
  }
  const fitting = named.filter(({ kind }) => fits(kind, verb));
  const [first, second] = fitting;
  if (first !== undefined && second === undefined) return first;
  if (first === undefined) {
    const other = verb === 'answer' ? 'approve or deny it' : 'answer it: perdura answer';
    throw new CliError(`${named.map(toName).join(', ')} cannot be ${PAST[verb]}; ${other}`, EXIT.usage);
  }
  throw new CliError(`say which: in ${id} ${listed(fitting)}`, EXIT.usage);
}

function fits(kind: Pending['kind'], verb: Verb): boolean {
  return verb === 'deny' || (kind !== 'approval') === (verb === 'answer');
}

const PAST: Readonly<Record<Verb, string>> = { approve: 'approved', deny: 'denied', answer: 'answered' };

function listed(waiting: readonly Pending[]): string {
  return `${waiting.length === 1 ? 'waits' : 'wait'} ${waiting.map(toName).join(', ')}`;
}

/** As it can be typed: the conversation's id first, where it is a sub-agent's. */
function toName({ conversation, via, callId, tool, kind }: Pending): string {
  const whose = conversation === via ? '' : `${conversation} `;
  return `${whose}${callId} (${kind === 'question' ? 'a question' : tool.replace(/[^\w.:/-]/g, '?').slice(0, 80)})`;
}

/** What Temporal no longer knows, the store may. */
export async function findRemembered(session: Desk, given: string): Promise<string> {
  try {
    return await findConversation(session, given);
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.notFound) throw error;
    const id = (await namedByTenant(session.config, given)) ?? given;
    if (!CONVERSATION_PATTERN.test(id)) throw error;
    return id;
  }
}

export interface ScopeWanted {
  readonly scope?: string;
  readonly of?: string;
}

export const SCOPE = ['[scope]', 'whose memory (default: "default")'] as const;
export const OF_CONVERSATION = ['--of <conversation>', 'the scope of this conversation'] as const;

/** Of an agent that names none, and of conversations that name no agent. */
const DEFAULT_SCOPE = 'default';

export async function openScope(session: CommandSession, { scope, of }: ScopeWanted): Promise<ScopeMemory> {
  if (scope !== undefined && of !== undefined) throw new CliError('a scope and --of name two memories: write one of them', EXIT.usage);
  return session.client.scope(of === undefined ? (scope ?? DEFAULT_SCOPE) : await readScope(session, of));
}

async function readScope(session: CommandSession, given: string): Promise<string> {
  const id = await findConversation(session, given);
  const { scope } = await session.withSlowNotice(`asking ${id} for its scope`, session.client.key(id));
  session.output.note(`the scope of ${id} is ${scope}`);
  return scope;
}

// Names of tenants' conversations, as an operator types them: `acme/plan` is what the tenant acme calls `plan`. Temporal has it under a
// hash with the key of the gateways (client/tenants/names.ts), so that the tenant reaches through a gateway what is begun here.

type SecretsAt = Pick<Config, 'cwd' | 'secrets'>;
type Secrets = Pick<NonNullable<Config['secrets']>, 'all' | 'ids'>;

/** Of this installation: `PERDURA_SECRET`, else the one in `.perdura/secret`, which is made where there is none. */
export async function readSecrets({ cwd, secrets }: SecretsAt): Promise<Secrets> {
  if (secrets !== undefined) return secrets;
  const made = await keptToken(secretFile(cwd));
  return { all: [made], ids: made };
}

export function tenantKeyFrom({ ids }: Secrets): string {
  return deriveKey(ids, 'tenant-ids').toString('base64url');
}

interface NewName {
  /** Temporal's. */
  readonly id: string;
  /** The tenant's, where it is another. */
  readonly publicId?: string;
  /** What commands take, and a person can read. */
  readonly name: string;
}

/** Of a conversation that begins. */
export async function newName(config: SecretsAt, tenant: string | undefined, wanted = `conv-${randomUUID()}`): Promise<NewName> {
  if (tenant === undefined) return { id: wanted, name: wanted };
  const id = await toWorkflowId(tenant, wanted, config);
  return { id, publicId: wanted, name: `${tenant}/${wanted}` };
}

/** What `acme/plan` says; undefined for what is no such name. */
export function splitName(given: string): { readonly tenant: string; readonly publicId: string } | undefined {
  const [, tenant, publicId] = /^([^/]*)\/([^]*)$/.exec(given) ?? [];
  return tenant === undefined || publicId === undefined ? undefined : { tenant, publicId };
}

/** The id that Temporal has for `acme/plan`, or for a sub-agent of it; undefined for what is no such name. */
export async function namedByTenant(config: SecretsAt, given: string): Promise<string | undefined> {
  const parts = splitName(given);
  if (parts === undefined) return undefined;
  if (config.secrets === undefined && !existsSync(secretFile(config.cwd))) {
    const where = 'set PERDURA_SECRET to that of the gateways, or ask where `perdura serve` runs (.perdura/secret)';
    throw new CliError(
      `cannot look up ${JSON.stringify(given.slice(0, 120))}: there is no secret of the installation here; ${where}`,
      EXIT.usage,
    );
  }
  return toWorkflowId(parts.tenant, parts.publicId, config);
}

async function toWorkflowId(tenant: string, publicId: string, config: SecretsAt): Promise<string> {
  const given = JSON.stringify(tenant.slice(0, 80));
  if (!isTenant(tenant)) throw new CliError(`${given} is no tenant: it must match ${TENANT_PATTERN.source}`, EXIT.usage);
  const { createTenantIds } = await import('../../client/tenants/names.js');
  const key = tenantKeyFrom(await readSecrets(config));
  try {
    return createTenantIds(tenant, key).toWorkflowId(publicId);
  } catch (error) {
    throw error instanceof Error && error.name === 'ClientError' ? new CliError(error.message, EXIT.usage) : error;
  }
}

function secretFile(cwd: string): string {
  return join(cwd, '.perdura', 'secret');
}
