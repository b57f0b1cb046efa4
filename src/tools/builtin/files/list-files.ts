import { join } from 'node:path';
import { z } from 'zod';
import { defineTool } from '../../define-tool.js';
import { examinePath } from '../../approval-paths.js';
import { enterWorkspace, PathRefused, type Folder, type FolderEntry, type Workspace } from '../../workspace.js';

export const listFiles = defineTool({
  name: 'list_files',
  description:
    'Lists files and folders in the workspace with their sizes. Links are named and not followed. Paths in the list can be given to read_file.',
  input: z.object({
    path: z.string().min(1).default('.').describe('The folder, relative to the workspace. Default: the workspace itself.'),
    depth: z.int().min(1).max(5).default(1).describe('How many levels of folders to go down; 1 lists the folder alone.'),
    limit: z.int().min(1).max(1_000).default(200).describe('How many entries to list at most.'),
  }),
  policy: { repeatable: true },
  examine: ({ path }, { workspace }) => examinePath(workspace, path, (place) => place.resolve(path)),
  async run({ path, depth, limit }, { workspace, signal }) {
    const place = await enterWorkspace(workspace);
    const top = await place.resolve(path);
    const listing = await list(place, top, depth, limit, signal);
    const lines = listing.found.sort((a, b) => (a.path < b.path ? -1 : 1)).map((found) => found.line);
    if (lines.length === 0) return `[${place.shown(top)} is an empty folder]`;
    if (listing.left > 0) lines.push(`[${listing.left} more are not listed: raise limit, or list one of the folders]`);
    return lines.join('\n');
  },
});

interface Found {
  readonly path: string;
  readonly line: string;
}

/** Level by level, so that a limit cuts the depths off and not the rest of the top. */
async function list(
  place: Workspace,
  top: string,
  depth: number,
  limit: number,
  signal: AbortSignal,
): Promise<{ found: Found[]; left: number }> {
  const found: Found[] = [];
  let left = 0;
  let level = [top];
  for (let down = 1; down <= depth && level.length > 0; down++) {
    const below: string[] = [];
    for (const folder of level) {
      signal.throwIfAborted();
      const { entries, total } = await readFolder(place, folder, limit - found.length, folder === top);
      left += total - entries.length;
      for (const entry of entries) {
        const path = join(folder, entry.name);
        found.push({ path, line: describe(place.shown(path), entry) });
        if (entry.kind === 'folder' && !isPassedOver(entry.name)) below.push(path);
      }
    }
    level = below;
  }
  return { found, left };
}

async function readFolder(place: Workspace, folder: string, most: number, isTop: boolean): Promise<Folder> {
  try {
    return await place.readFolder(folder, most);
  } catch (error) {
    // One folder that is closed to us, or gone since, does not hide the others.
    if (!isTop && error instanceof PathRefused) return { entries: [], total: 0 };
    throw error;
  }
}

function describe(path: string, entry: FolderEntry): string {
  switch (entry.kind) {
    case 'file':
      return `${path}  ${entry.bytes} bytes`;
    case 'folder':
      return isPassedOver(entry.name) ? `${path}/  [contents passed over; list it by its path]` : `${path}/`;
    case 'link':
      return `${path}  [link, not followed]`;
    case 'other':
      return `${path}  [not a regular file]`;
    default:
      throw new Error(`no such entry: ${entry satisfies never}`);
  }
}

/** Folders full of generated or fetched files; they are entered only when named. */
const PASSED_OVER = new Set(['node_modules', '.git']);

export function isPassedOver(folder: string): boolean {
  return PASSED_OVER.has(folder);
}
