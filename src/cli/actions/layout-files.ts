/**
 * The files of the seed's layout on a disk. Their names are fixed, so nothing in a layout names a path; a link is refused instead
 * of followed, since it may point anywhere.
 */
import { constants } from 'node:fs';
import { lstat, mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LAYOUT_FILES, type LayoutFile } from '../../memory/seed-layout/layout.js';
import { CliError, EXIT, messageOf } from '../terminal/exit.js';

export const LARGEST_FILE = 256 * 1024 * 1024;

/** Overwrites nothing. */
export async function writeLayout(dir: string, files: Readonly<Record<LayoutFile, string>>): Promise<void> {
  try {
    await mkdir(dir, { recursive: true });
    await refuseLink(dir);
    for (const name of LAYOUT_FILES) await writeFile(join(dir, name), files[name], { flag: 'wx' });
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    const isThere = (cause as NodeJS.ErrnoException).code === 'EEXIST';
    throw new CliError(
      `cannot write ${dir}: ${isThere ? 'there is an export already; name another folder' : messageOf(cause)}`,
      EXIT.failed,
      {
        cause,
      },
    );
  }
}

/** Those that are there; at least one must be. */
export async function readLayoutFiles(dir: string): Promise<Partial<Record<LayoutFile, string>>> {
  await refuseLink(dir);
  const files: Partial<Record<LayoutFile, string>> = {};
  for (const name of LAYOUT_FILES) {
    const text = await readBounded(join(dir, name));
    if (text !== undefined) files[name] = text;
  }
  if (Object.keys(files).length > 0) return files;
  throw new CliError(`cannot import ${dir}: none of ${LAYOUT_FILES.join(', ')} is there`, EXIT.notFound);
}

async function refuseLink(dir: string): Promise<void> {
  const found = await lstat(dir).catch((cause: unknown) => {
    throw new CliError(`cannot open ${dir}: ${messageOf(cause)}`, EXIT.notFound, { cause });
  });
  if (!found.isDirectory())
    throw new CliError(`${dir} is no folder${found.isSymbolicLink() ? ' but a link' : ''}: name the folder itself`, EXIT.usage);
}

async function readBounded(path: string): Promise<string | undefined> {
  // Without blocking: a pipe of that name would keep us waiting for a writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return undefined;
    const why = cause.code === 'ELOOP' || cause.code === 'EMLINK' ? 'it is a link, and links are not followed' : messageOf(cause);
    throw new CliError(`cannot read ${path}: ${why}`, EXIT.usage, { cause });
  });
  if (file === undefined) return undefined;
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new CliError(`cannot read ${path}: it is no file`, EXIT.usage);
    if (found.size > LARGEST_FILE)
      throw new CliError(`cannot read ${path}: ${found.size} bytes, at most ${LARGEST_FILE} are read`, EXIT.usage);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}
