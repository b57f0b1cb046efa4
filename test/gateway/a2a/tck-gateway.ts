/**
 * A gateway for the A2A TCK, on the real stack, with a model that does what its scenarios ask of an agent. Says its address and token on
 * one line of stdout, and ends with its stdin: `scripts/a2a-tck.mjs` starts it.
 */
import { Connection } from '@temporalio/client';
import { registerAttributes } from '../../../src/client/temporal/connection.js';
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { serveGateway } from '../../../src/gateway/index.js';
import type { ApiRequest } from '../../support/provider-apis/api-request.js';
import { callTool, text, type Reply } from '../../support/provider-apis/reply.js';
import { latestResults, resultText, saidIn } from '../../support/echo-model.js';
import { startTemporal } from '../../support/temporal-server.js';
import { startWorld } from '../../support/world.js';

const TOKEN = 'a-token-that-only-the-tck-has';

/** The proxy has put the id of the message, whose beginning names the scenario, beside its words. */
function answer(request: ApiRequest): Reply {
  const [, scenario = ''] = /"scenario": "tck-([^"]+)"/.exec(saidIn(request).at(-1) ?? '') ?? [];
  const [result] = latestResults(request);
  if (scenario.startsWith('input-required') && (!result || resultText(result).includes('TCK history message'))) {
    return callTool('ask_user', { question: 'What comes next?' });
  }
  if (scenario.startsWith('artifact-text')) return text('Generated text content');
  if (scenario.startsWith('artifact-data')) return text('{"key":"value","count":42}');
  if (scenario.startsWith('reject-task')) return { ...text(''), stopReason: 'refusal' };
  if (scenario.startsWith('stream')) return { ...text('Streamed text content'), chunks: { size: 6, delayMs: 30 } };
  return text('Hello from TCK');
}

async function main(): Promise<void> {
  const temporal = await startTemporal();
  const connection = await Connection.connect({ address: temporal.address });
  await registerAttributes(connection, 'default');
  await connection.close();
  const world = await startWorld({ address: temporal.address, answer });
  const gateway = await serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port: 0 });
  process.stdout.write(`${JSON.stringify({ url: gateway.url, token: TOKEN })}\n`);
  process.stdin.resume().once('end', () => {
    void (async () => {
      await gateway.close();
      await world.close();
      await temporal.stop();
      process.exit();
    })();
  });
}

void main();
