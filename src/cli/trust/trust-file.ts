/** What a person has said yes to, by folder: kept outside of all of them, since a folder's own contents cannot vouch for it. */
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { withLock } from '../lock.js';
import type { FolderItem } from './folder-contents.js';

const trustSchema = z.object({
  v: z.literal(1),
  /** By the real path of a folder: the SHA-256 of each thing in it, by its name. */
  folders: z.record(z.string(), z.object({ items: z.record(z.string(), z.string()), at: z.string() })),
});

type Trusted = z.output<typeof trustSchema>;
type Known = Readonly<Record<string, string>>;

/** Nothing is trusted where the file is not there or cannot be understood. */
export async function readTrust(file: string, folder: string): Promise<Known> {
  const { folders } = await readAll(file);
  return Object.hasOwn(folders, folder) ? (folders[folder]?.items ?? {}) : {};
}

/** Exactly these from now on; with `add`, these too. */
export async function rememberTrust(
  file: string,
  folder: string,
  items: readonly Pick<FolderItem, 'name' | 'sha256'>[],
  { add = false }: { readonly add?: boolean } = {},
): Promise<void> {
  await change(file, ({ folders, ...rest }) => {
    const before = add && Object.hasOwn(folders, folder) ? folders[folder]?.items : {};
    const all = { ...before, ...Object.fromEntries(items.map(({ name, sha256 }) => [name, sha256])) };
    return { ...rest, folders: { ...folders, [folder]: { items: all, at: new Date().toISOString() } } };
  });
}

/** False where there was nothing to forget. */
export async function forgetTrust(file: string, folder: string): Promise<boolean> {
  let was = false;
  await change(file, ({ folders, ...rest }) => {
    was = Object.hasOwn(folders, folder);
    return { ...rest, folders: Object.fromEntries(Object.entries(folders).filter(([name]) => name !== folder)) };
  });
  return was;
}

async function readAll(file: string): Promise<Trusted> {
  try {
    return trustSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return { v: 1, folders: {} };
  }
}

async function change(file: string, to: (all: Trusted) => Trusted): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await withLock(`${file}.lock`, async () => {
    const fresh = `${file}.${process.pid}`;
    await writeFile(fresh, `${JSON.stringify(to(await readAll(file)), null, 2)}\n`, { mode: 0o600 });
    await chmod(fresh, 0o600);
    await rename(fresh, file);
  });
}
