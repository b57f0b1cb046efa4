/** What a tool's result may tell besides its text. Checked, since it goes into a conversation's state and into its memory. */
import { z } from 'zod';

/** Half characters would be refused by stores and providers. */
const words = z.string().overwrite((text) => text.toWellFormed());

export const taskSchema = z.object({
  goal: words.max(500),
  openTasks: z.array(words.min(1).max(200)).max(20),
});

const paths = z.array(words.min(1).max(1000)).max(200).optional();
export const filesSchema = z.object({ read: paths, edited: paths, written: paths });
