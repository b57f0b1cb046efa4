/** What a file tool reports of a path before the call is allowed: where it leads, and whether a person has to approve it. */
import { relative, resolve } from 'node:path';
import type { Examined } from '../../tool.js';
import { enterWorkspace, type Workspace } from '../../workspace.js';
import { PathRefused, WriteRefused } from '../../workspace-guard.js';

/** `resolved`: as the run will do it; what it refuses, the run refuses. `whyAsk`: of a path relative to the workspace. */
export async function examinePath(
  workspace: string,
  path: string,
  resolved: (place: Workspace) => Promise<string>,
  whyAsk: (path: string) => string | undefined = () => undefined,
): Promise<Examined> {
  try {
    const place = await enterWorkspace(workspace);
    const root = await place.resolve('.');
    const real = relative(root, await resolved(place)) || '.';
    // By both names: a link may have a harmless one, or lead to a file that has.
    const why = whyAsk(real) ?? whyAsk(relative(root, resolve(root, path)));
    return { real: { path: real }, ...(why !== undefined && { asks: { why } }) };
  } catch (error) {
    if (error instanceof PathRefused || error instanceof WriteRefused) return {};
    throw error;
  }
}
