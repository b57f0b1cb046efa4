/** What a tool's result may tell besides its text. Checked, since it goes into a conversation's state and into its memory. */
import { z } from 'zod';

/** Half characters would be refused by stores and providers. */
const words = z.string().overwrite((text) => text.toWellFormed());

export const taskSchema = z.object({
  goal: words.max(500),
  openTasks: z.array(words.min(1).max(200)).max(20),
});

/** Of what an application shares with its tools: what JSON can say, and not too much of it. */
const CONTEXT_BYTES = 16 * 1024;
export const contextSchema = z
  .record(z.string().max(200), z.json())
  .refine((value) => JSON.stringify(value).length <= CONTEXT_BYTES, `more than ${CONTEXT_BYTES} characters of JSON`);

const paths = z.array(words.min(1).max(1000)).max(200).optional();
export const filesSchema = z.object({ read: paths, edited: paths, written: paths });
