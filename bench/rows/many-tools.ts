/** One turn that calls a tool again and again, each time with other arguments. */
import { said } from '../bodies.js';
import type { PerduraClient } from '../../src/client.js';
import { historiesOf, sizeOf } from '../history.js';
import type { Row } from '../row.js';

const BYTES = 5 * 1024 * 1024;
const EVENTS = 5_000;

export const manyTools: Row = {
  name: 'many-tools',
  async measure({ temporal, product: productOf }, { toolCalls }) {
    const { client, start } = await productOf('redis');
    const { id, say } = await start('patient');
    const begin = performance.now();
    await say(said('ordinary', toolCalls, 1));
    const seconds = (performance.now() - begin) / 1000;

    const lost = toolCalls - (await resultsInOrder(client, id));
    const runs = await historiesOf(temporal, id);
    const largest = Math.max(...runs.map(sizeOf));
    const longest = Math.max(...runs.map((run) => run.length));
    return [
      { row: `many-tools: ${toolCalls} calls in one turn, lost`, product: lost, unit: '', toHold: '0', holds: lost === 0 },
      {
        row: 'many-tools: bytes of the largest run',
        product: largest,
        unit: 'B',
        toHold: `< ${BYTES}`,
        holds: largest < BYTES,
        notes: [`${seconds.toFixed(1)} s, ${runs.length} runs, ${((seconds * 1000) / toolCalls).toFixed(0)} ms a call`],
      },
      { row: 'many-tools: events of the longest run', product: longest, unit: '', toHold: `< ${EVENTS}`, holds: longest < EVENTS },
    ];
  },
};

/** How many calls have their one result, in the order of the calls. */
async function resultsInOrder(client: PerduraClient, id: string): Promise<number> {
  const asked: string[] = [];
  const answered: string[] = [];
  for (const { message } of await client.history(id)) {
    if (message.role === 'assistant') asked.push(...message.blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.callId] : [])));
    if (message.role === 'tool' && message.outcome === 'ok') answered.push(message.callId);
  }
  return asked.filter((callId, i) => answered[i] === callId).length;
}
