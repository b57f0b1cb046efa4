/**
 * Names of tenants' conversations, as an operator types them: `acme/plan` is what the tenant acme calls `plan`. Temporal has it under a
 * hash with the key of the gateways (client/tenants/ids.ts), so that the tenant reaches through a gateway what is begun here.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config.js';
import { isTenant, TENANT_PATTERN } from '../../conversation/protocol/tenant.js';
import { keptToken } from '../../gateway/access/entrance.js';
import { CliError, EXIT } from '../terminal/exit.js';

type KeyAt = Pick<Config, 'cwd' | 'tenantKey'>;

/** Of this installation: `PERDURA_TENANT_KEY`, else the one in `.perdura/tenant-key`, which is made where there is none. */
export async function readTenantKey({ cwd, tenantKey }: KeyAt): Promise<string> {
  return tenantKey ?? (await keptToken(keyFile(cwd)));
}

export interface NewName {
  /** Temporal's. */
  readonly id: string;
  /** The tenant's, where it is another. */
  readonly publicId?: string;
  /** What commands take, and a person can read. */
  readonly name: string;
}

/** Of a conversation that begins. */
export async function newName(config: KeyAt, tenant: string | undefined, wanted = `conv-${randomUUID()}`): Promise<NewName> {
  if (tenant === undefined) return { id: wanted, name: wanted };
  const id = await toWorkflowId(tenant, wanted, await readTenantKey(config));
  return { id, publicId: wanted, name: `${tenant}/${wanted}` };
}

/** What `acme/plan` says; undefined for what is no such name. */
export function splitName(given: string): { readonly tenant: string; readonly publicId: string } | undefined {
  const [, tenant, publicId] = /^([^/]*)\/([^]*)$/.exec(given) ?? [];
  return tenant === undefined || publicId === undefined ? undefined : { tenant, publicId };
}

/** The id that Temporal has for `acme/plan`, or for a sub-agent of it; undefined for what is no such name. */
export async function namedByTenant(config: KeyAt, given: string): Promise<string | undefined> {
  const parts = splitName(given);
  if (parts === undefined) return undefined;
  if (config.tenantKey === undefined && !existsSync(keyFile(config.cwd))) {
    const where = 'set PERDURA_TENANT_KEY to that of the gateways, or ask where `perdura serve` runs (.perdura/tenant-key)';
    throw new CliError(`cannot look up ${JSON.stringify(given.slice(0, 120))}: there is no tenant key here; ${where}`, EXIT.usage);
  }
  return toWorkflowId(parts.tenant, parts.publicId, await readTenantKey(config));
}

async function toWorkflowId(tenant: string, publicId: string, key: string): Promise<string> {
  const given = JSON.stringify(tenant.slice(0, 80));
  if (!isTenant(tenant)) throw new CliError(`${given} is no tenant: it must match ${TENANT_PATTERN.source}`, EXIT.usage);
  const { createTenantIds } = await import('../../client/tenants/ids.js');
  try {
    return createTenantIds(tenant, key).toWorkflowId(publicId);
  } catch (error) {
    throw error instanceof Error && error.name === 'ClientError' ? new CliError(error.message, EXIT.usage) : error;
  }
}

function keyFile(cwd: string): string {
  return join(cwd, '.perdura', 'tenant-key');
}
