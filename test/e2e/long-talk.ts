/** A conversation much longer than its model can see, with a fact near its beginning that is asked for at its end. */
import { textOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { text, type Reply } from '../support/provider-apis/reply.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import type { World } from '../support/world.js';

export const BUDGET = 5_000;
/** Compaction alone: when the window is trimmed depends on when its consolidation is done. */
export const AGENT = {
  maxTokens: 500,
  tools: ['get_time', 'list_files', 'read_file', 'search_files', 'search_history', 'set_task'],
  context: { maxTokens: BUDGET + 1_000, safetyMargin: 500 },
  memory: { memoryWindow: 10_000 },
};
const LEDGER = 'The harbour master keeps the ledger. '.repeat(25);

export interface LongTalk {
  readonly id: string;
  /** What the model was asked, the summarizer's requests left out. */
  readonly asked: readonly ApiRequest[];
  readonly compactions: number;
}

/** Turn after turn; then holds it to its budget, and to what it was told in its third turn. */
export async function talkAtLength({ client, ...world }: World, turns: number): Promise<LongTalk> {
  const { id } = await client.start(world.id());
  for (let n = 1; n <= turns; n++) {
    const said = n === 3 ? 'The code of box 7 is plum, remember it.' : `Go on with page ${n}.`;
    expect(await client.send(id, { id: `m${n}`, text: said })).toMatchObject({ stopReason: 'end' });
  }
  const asked = world.api.hits.flatMap(({ body }) => (body === undefined || isSummary(body) ? [] : [body]));
  expect(asked).toHaveLength(turns);
  expect(JSON.stringify(asked.at(-1)?.messages)).toContain('[MEMORY:SEMANTIC]\\n- The code of box 7 is plum');
  expect(Math.max(...asked.map(({ messages }) => Math.ceil(JSON.stringify(messages).length / 4)))).toBeLessThanOrEqual(BUDGET);
  expect(world.api.problems).toEqual([]);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
  const { compactions, prefixChanges } = (await client.status(id)).context;
  // An epoch that begins with the same words as the one before leaves the prompt's beginning as it was.
  expect(prefixChanges).toBeLessThanOrEqual(compactions);
  expect(compactions).toBeGreaterThan(turns / 20);
  return { id, asked, compactions };
}

function isSummary(request: ApiRequest): boolean {
  return JSON.stringify(request.system ?? '').includes('You condense');
}

/** How many answers there are already, in the number that an answer begins with. */
export function createAnswer(): (request: ApiRequest) => Reply {
  let answers = 0;
  return (request) => (isSummary(request) ? summaryOf(request) : text(`${(answers += 1)}. ${LEDGER}`));
}

/** The summarizer keeps what it was asked to remember, as a good one would. */
function summaryOf({ messages }: ApiRequest): Reply {
  const record = messages.map(({ content }) => textOf(content)).join('\n');
  const facts = [...new Set(record.match(/The code of box \d+ is \w+/g))].map((fact) => ({
    fact,
    tags: ['code'],
    confidence: 1,
    salience: 1,
  }));
  return text(JSON.stringify({ episodic: { summary: 'Ledgers and codes.', tags: [], salience: 0.5 }, semantic: facts }));
}
