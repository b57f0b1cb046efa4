import { z } from 'zod';
import { ITEM_TYPES, splitAtCommas } from '../../../records/memory/agent-memory.js';
import { defineTool } from '../../define-tool.js';

const LONGEST_CONTENT = 200_000;

export const storeInMemory = defineTool({
  name: 'store_in_memory',
  description:
    'Puts a text away in the memory of this conversation, where it takes no room in your context; answers with the id by which ' +
    'retrieve_from_memory gives it back. Long results of tools are put there by themselves.',
  input: z.object({
    content: z.string().min(1).max(LONGEST_CONTENT).describe('What to store: text, or JSON as text.'),
    type: z.enum(ITEM_TYPES).default('custom'),
    tags: z.string().max(1_000).optional().describe('Words to find it by, with commas between them.'),
    relatedTo: z.string().max(1_000).optional().describe('Ids of other items, with commas between them.'),
  }),
  // The id is made of the call: again it is the same item.
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  async run({ content, type, tags, relatedTo }, { memory }) {
    const metadata = { source: 'user', tags: splitAtCommas(tags), relatedTo: splitAtCommas(relatedTo) };
    return `Stored in memory with ID: ${await memory.store({ type, content, metadata })}`;
  },
});
