/** Where the tools of a conversation stay: a tenant's in a separate folder, below the one of those without a tenant. */
import { mkdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import { readTenant } from '../records/scope.js';

export function workspacePath(root: string, scope: string): string {
  const tenant = readTenant(scope);
  return tenant === undefined ? root : join(root, tenant);
}

/** Made at its first use. The folder above is one that agents of no tenant write in: a link in its place is not followed. */
export async function makeWorkspace(workspace: string, scope: string): Promise<void> {
  const tenant = readTenant(scope);
  if (tenant === undefined) return;
  await mkdir(workspace, { recursive: true });
  const [real, above] = await Promise.all([realpath(workspace), realpath(dirname(workspace))]);
  if (real === join(above, tenant)) return;
  throw ApplicationFailure.nonRetryable(
    `cannot enter the workspace of ${tenant}: ${workspace} is a link; put a folder in its place`,
    'bad-workspace',
  );
}
