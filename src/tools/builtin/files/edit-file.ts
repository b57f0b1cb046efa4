import { z } from 'zod';
import { defineTool } from '../../define-tool.js';
import { refuseNewScripts } from '../../protected-paths.js';
import type { Tool } from '../../tool.js';
import { enterWorkspace } from '../../workspace.js';
import { editText } from './edit-text.js';
import { inTurn } from './file-turn.js';
import { readWhole } from './whole-file.js';
import { FILE_BYTES, type FileSettings } from './write-file.js';

const NAMED_LINES = 20;

export function createEditFile({ protectedPlaces = [] }: FileSettings = {}): Tool {
  return defineTool({
    name: 'edit_file',
    description:
      'Changes a part of a text file in the workspace: oldText, which must stand there exactly and only once, becomes newText. ' +
      'Read the file first, and send enough of the text around the change.',
    input: z.object({
      path: z.string().min(1).describe('Relative to the workspace, such as "notes/plan.md".'),
      oldText: z.string().min(1).describe('Exactly as it stands in the file, with blanks and line breaks.'),
      newText: z.string().describe('What is to stand there instead. Empty: oldText is taken out.'),
      all: z.boolean().default(false).describe('True: every place where oldText stands.'),
    }),
    // Done once more it would not find its text, and say that it had failed.
    policy: { repeatable: false },
    run: ({ path, ...request }, { workspace, signal }) =>
      inTurn(async () => {
        signal.throwIfAborted();
        const place = await enterWorkspace(workspace, protectedPlaces);
        const real = await place.resolveNew(path);
        const name = place.shown(real);
        const before = await readWhole(place, real, FILE_BYTES);
        if (!before) throw new Error(`cannot find ${name} in the workspace. Look with list_files; write_file makes a new file.`);
        const { text, lines } = edited(name, before.text, request);
        const bytes = Buffer.from(text);
        if (bytes.length > FILE_BYTES)
          throw new Error(`cannot edit ${name}: it would have ${bytes.length} bytes, over the limit of ${FILE_BYTES}`);
        refuseNewScripts(workspace, real, before.text, text);
        await place.writeFile(real, bytes, before.seen);
        const more = lines.length > NAMED_LINES ? ` and ${lines.length - NAMED_LINES} more` : '';
        const where = `${lines.length === 1 ? 'line' : 'lines'} ${lines.slice(0, NAMED_LINES).join(', ')}${more}`;
        return { ok: true, content: `edited ${name} on ${where}; it has ${bytes.length} bytes now`, files: { edited: [name] } };
      }),
  });
}

export const editFile = createEditFile();

function edited(name: string, text: string, request: Parameters<typeof editText>[1]): ReturnType<typeof editText> {
  try {
    return editText(text, request);
  } catch (cause) {
    throw new Error(`did not edit ${name}: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}
