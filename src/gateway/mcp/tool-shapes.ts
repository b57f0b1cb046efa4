/** The inputs and answers of tools. */
import { z } from 'zod';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';

export const conversation = z.string().regex(ID_PATTERN).describe('id of the conversation');
export const scope = z
  .string()
  .regex(ID_PATTERN)
  .describe("whose memory: an agent's name, or the scope that a conversation was started with");

export function json(value: object): { content: { type: 'text'; text: string }[] } {
  return { content: [{ type: 'text', text: JSON.stringify(value, null, 2) }] };
}
