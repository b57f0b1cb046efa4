import { z } from 'zod';
import pLimit from 'p-limit';
import { defineTool } from '../../define-tool.js';
import type { Tool } from '../../tool.js';
import { reasonToAskBeforeWriting, examinePath } from '../../approval-paths.js';
import { refuseNewScripts } from '../../protected-paths.js';
import { enterWorkspace, PathRefused, type Workspace } from '../../workspace.js';
import type { Seen } from '../../workspace-write.js';
import { decodeExactly, describeForm, detectForm, encodeText, isBinary, withoutMark, type TextForm } from '../../../records/file-type.js';

/** UTF-8 bytes of one file that is written or edited whole. */
export const FILE_BYTES = 4 * 1024 * 1024;
const START_BYTES = 8 * 1024;

export interface FileSettings {
  /** Absolute paths that are not written, besides those of protected-paths.ts: Perdura's settings and memory. */
  readonly protectedPlaces?: readonly string[];
}

export function createWriteFile({ protectedPlaces = [] }: FileSettings = {}): Tool {
  return defineTool({
    name: 'write_file',
    description:
      'Writes a text file in the workspace whole: a new one with the folders above it, or in place of the old one, whose content is gone then. ' +
      'To change a part of a file use edit_file.',
    input: z.object({
      path: z.string().min(1).describe('Relative to the workspace, such as "notes/plan.md".'),
      content: z.string().describe('All that the file is to hold.'),
    }),
    policy: { repeatable: true },
    examine: ({ path }, { workspace }) => examinePath(workspace, path, (place) => place.resolveNew(path), reasonToAskBeforeWriting),
    run: ({ path, content }, { workspace, signal }) =>
      inTurn(async () => {
        signal.throwIfAborted();
        const place = await enterWorkspace(workspace, protectedPlaces);
        const real = await place.resolveNew(path);
        const old = await readStart(place, real);
        const bytes = Buffer.from(old?.form.hasMark ? encodeText(withoutMark(content), old.form) : content);
        const name = place.shown(real);
        if (bytes.length > FILE_BYTES) {
          throw new Error(`cannot write ${name}: ${bytes.length} bytes are over the limit of ${FILE_BYTES}. Write it in several files.`);
        }
        // Only of a package.json is what it holds looked at.
        const before = real.toLowerCase().endsWith('package.json') ? await readWhole(place, real, FILE_BYTES) : undefined;
        refuseNewScripts(workspace, real, before?.text, content);
        const { replaced } = await place.writeFile(real, bytes, before?.seen);
        const what = replaced === undefined ? `wrote ${name}, a new file` : `wrote ${name} in place of the old one of ${replaced} bytes`;
        const notes = old === undefined ? '' : keptAndChanged(old, content);
        return { ok: true, content: `${what}: ${bytes.length} bytes, ${countLines(content)} lines${notes}`, files: { written: [name] } };
      }),
  });
}

export const writeFile = createWriteFile();

interface Start {
  readonly form: TextForm;
  /** Whether its lines end in CR LF. */
  readonly isCrLf: boolean;
}

/** How the file that is replaced is written; undefined where there is none that can be read. */
async function readStart(place: Workspace, real: string): Promise<Start | undefined> {
  const opened = await place.openFile(real).catch((error: unknown) => {
    // Whatever else is wrong with it, writing says.
    if (error instanceof PathRefused) return undefined;
    throw error;
  });
  if (!opened) return undefined;
  try {
    const { bytesRead, buffer } = await opened.handle.read(Buffer.alloc(START_BYTES), 0, START_BYTES, 0);
    const start = buffer.subarray(0, bytesRead);
    const isText = !isBinary(start);
    return { form: isText ? detectForm(start) : UTF_8, isCrLf: isText && /\r\0?\n/.test(start.toString('latin1')) };
  } finally {
    await opened.handle.close();
  }
}

const UTF_8: TextForm = { encoding: 'utf-8', hasMark: false };

/** A model cannot write a mark or UTF-16, so these stay as they were; line ends it can. */
function keptAndChanged({ form, isCrLf }: Start, content: string): string {
  const kept = describeForm(form);
  const changed = isCrLf && content.includes('\n') && !content.includes('\r\n');
  return `${kept === undefined ? '' : `, in ${kept} as before`}${changed ? '; its lines ended in CR LF and end in LF now' : ''}`;
}

function countLines(text: string): number {
  return text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}

// A text file read whole, as it is to be written back: what is in no encoding that can be is refused, since a rewrite would spoil it.

interface WholeFile {
  /** Without its mark. */
  readonly text: string;
  readonly form: TextForm;
  readonly seen: Seen;
}

/** Undefined where there is no such file. `real`: resolved. */
export async function readWhole(place: Workspace, real: string, mostBytes: number): Promise<WholeFile | undefined> {
  const opened = await place.openFile(real).catch((error: unknown) => {
    if (error instanceof PathRefused && error.kind === 'missing') return undefined;
    throw error;
  });
  if (!opened) return undefined;
  const { handle, bytes, seen } = opened;
  try {
    const name = place.shown(real);
    if (bytes > mostBytes) {
      throw new Error(
        `cannot edit ${name}: its ${bytes} bytes are over the limit of ${mostBytes}. Change it with a program, by run_command.`,
      );
    }
    // One byte more shows a file that has grown since; `writeFile` notices every other change.
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(bytes + 1), 0, bytes + 1, 0);
    return { ...toText(name, buffer.subarray(0, bytesRead)), seen };
  } finally {
    await handle.close();
  }
}

function toText(name: string, bytes: Buffer): Pick<WholeFile, 'text' | 'form'> {
  if (isBinary(bytes)) throw new Error(`cannot edit ${name}: it is a binary file`);
  const decoded = decodeExactly(bytes);
  if (decoded) return decoded;
  const { encoding } = detectForm(bytes);
  const what = encoding === 'utf-8' ? 'not UTF-8 text' : 'marked as UTF-16 and is none';
  throw new Error(`cannot edit ${name}: it is ${what}, and writing it back would spoil it. Convert it first.`);
}

// Files are changed one after the other in one worker: of two edits of one file at the same time, one would be lost.

const one = pLimit(1);

export function inTurn<T>(work: () => Promise<T>): Promise<T> {
  return one(work);
}
