/** What a folder and its machine have of a person beside the store: what of it goes with an erasure, and what stays where it is, by name. */
import { lstat, readdir, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { agentsFolder } from '../../agents/load-agent.js';
import type { Erased } from '../../client/erasure/erase.js';
import type { Whose } from '../../client/erasure/find.js';
import type { Removed, Stays } from '../../client/erasure/receipt.js';
import { webhookEndpoints, type Config } from '../../config.js';
import { errorCode } from '../../platform/errors.js';
import { readTenant, scopeParts } from '../../records/identity.js';
import { revokeTokens } from './tokens.js';

export interface LocalPlaces {
  readonly removed: readonly Removed[];
  readonly stays: readonly Stays[];
}

export async function eraseLocal(config: Config, whose: Whose, erased: Pick<Erased, 'scopes' | 'conversations'>): Promise<LocalPlaces> {
  const all = await Promise.all([
    eraseWorkspace(config, whose),
    eraseTokens(config, whose),
    nameUserFiles(config, whose, erased.scopes),
    nameExports(config, erased.conversations),
    nameLogs(config),
  ]);
  return { removed: all.flatMap(({ removed = [] }) => removed), stays: all.flatMap(({ stays = [] }) => stays) };
}

type Some = Partial<LocalPlaces>;

async function eraseWorkspace({ workspace, cwd }: Config, { kind, name }: Whose): Promise<Some> {
  const elsewhere: Stays = {
    place: 'workspaces on other machines',
    what: kind === 'tenant' ? `the folder ${name} in each worker's PERDURA_WORKSPACE` : 'files that tools wrote',
    why:
      kind === 'tenant'
        ? 'this command reaches the folders of its machine alone'
        : 'all conversations of a tenant, and those of none, share one folder',
    until: 'a person removes them',
  };
  if (kind === 'scope') {
    const shared = join(workspace, readTenant(name) ?? '.');
    return { stays: [{ ...elsewhere, place: `workspace ${shown(cwd, shared)}, and those on other machines` }] };
  }
  const folder = join(workspace, name);
  const found = await lstat(folder).catch(unlessAbsent);
  if (found === undefined) return { stays: [elsewhere] };
  if (!found.isDirectory())
    return {
      stays: [elsewhere, { ...elsewhere, place: `workspace ${shown(cwd, folder)}`, why: 'it is no folder, and links are not followed' }],
    };
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => !entry.isDirectory()).length;
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  return { removed: [{ place: `workspace ${shown(cwd, folder)}`, what: 'files', count: files }], stays: [elsewhere] };
}

async function eraseTokens({ authFile, cwd }: Config, { kind, name }: Whose): Promise<Some> {
  const { tenant, scope } = kind === 'tenant' ? { tenant: name, scope: undefined } : scopeParts(name);
  const provider: Stays = {
    place: 'identity provider and open browsers',
    what: 'accounts there, and sessions here until they end',
    why: 'they are kept there; what they open is empty',
    until: 'the account is closed there; a session ends by itself',
  };
  if (authFile === undefined) return {};
  const count = await revokeTokens(authFile, (token) =>
    scope === undefined ? token.tenant === tenant : token.tenant === tenant && token.scopes?.length === 1 && token.scopes[0] === scope,
  );
  return { removed: [{ place: `tokens in ${shown(cwd, authFile)}`, what: 'tokens that opened this alone', count }], stays: [provider] };
}

async function nameUserFiles(config: Config, { kind, name }: Whose, scopes: readonly string[]): Promise<Some> {
  const agents = agentsFolder(config);
  const isTheirs = (file: string): boolean =>
    scopes.some((scope) => file === `${scope}.md`) || (kind === 'tenant' && file.startsWith(`${name}.`) && file.endsWith('.md'));
  const found: string[] = [];
  for (const agent of (await namesIn(agents)).sort()) {
    for (const file of (await namesIn(join(agents, agent, 'users'))).sort())
      if (isTheirs(file)) found.push(join(agents, agent, 'users', file));
  }
  return {
    stays: found.map((file) => ({
      place: `user file ${shown(config.cwd, file)}`,
      what: 'what people have written about this person for an agent',
      why: 'people write these files, and may keep them under version control',
      until: 'a person removes it, and from its versions',
    })),
  };
}

async function nameExports({ cwd }: Config, conversations: readonly string[]): Promise<Some> {
  const folder = join(cwd, '.perdura', 'exports');
  const ids = new Set(conversations);
  const count = (await namesIn(folder)).filter((file) => ids.has(file.replace(/\.md$/, ''))).length;
  const others: Stays = {
    place: 'other backups and exports',
    what: 'copies of the store, of Temporal’s database and of single conversations (`perdura admin export`)',
    why: 'where people have put them is not known',
    until: 'they are overwritten or removed; an import of one brings it back',
  };
  if (count === 0) return { stays: [others] };
  const what = `${count} exported conversation${count === 1 ? '' : 's'}`;
  return { stays: [{ place: shown(cwd, folder), what, why: 'a person has exported them', until: 'a person removes them' }, others] };
}

async function nameLogs(config: Config): Promise<Some> {
  const { auditFile, cwd, otel } = config;
  const logs = (await namesIn(join(cwd, '.perdura'))).filter((name) => name.endsWith('.log'));
  const ids = 'ids, kinds, times and sizes; no text';
  return {
    stays: [
      {
        place: auditFile === undefined ? 'audit files of workers (PERDURA_AUDIT_FILE)' : `audit file ${shown(cwd, auditFile)}`,
        what: ids,
        why: 'it is the record of what was done, by whom and when',
        until: 'its retention',
      },
      {
        place: ['logs of workers and gateways', ...logs.map((name) => join('.perdura', name))].join(', '),
        what: 'ids, and messages of errors',
        why: 'they are written line by line, for operators',
        until: 'they are rotated',
      },
      ...(otel === undefined
        ? []
        : [{ place: 'traces and metrics (OTEL_*)', what: ids, why: 'they are at the collector', until: 'the retention there' }]),
      ...(webhookEndpoints(config).length === 0
        ? []
        : [
            {
              place: 'receivers of webhooks',
              what: 'events that were delivered',
              why: 'they are others’ programs',
              until: 'their retention',
            },
          ]),
    ],
  };
}

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(unlessAbsent)) ?? [];
}

function unlessAbsent(error: unknown): undefined {
  if (['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')) return undefined;
  throw error;
}

/** Below the working directory as people write it. */
function shown(cwd: string, path: string): string {
  const below = relative(cwd, path);
  return below === '' || below.startsWith('..') ? path : below;
}
