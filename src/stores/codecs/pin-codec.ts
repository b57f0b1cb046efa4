/** A pin as it is kept. One that cannot be read counts as none of anybody's: S5. */
import { z } from 'zod';
import type { ToolPin } from '../store.js';

export const pinSchema = z.object({ server: z.string(), tool: z.string(), hash: z.string(), text: z.string() });

/** Names one tool of one server, whatever characters they have. */
export function pinField({ server, tool }: Pick<ToolPin, 'server' | 'tool'>): string {
  return JSON.stringify([server, tool]);
}
