/** The queries that docs/operations/temporal-ui.md offers are taken by a real server that has our search attributes. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { registerAttributes } from '../../src/client/temporal/connection.js';
import { waitFor } from '../support/wait-for.js';
import { fencedBlocks, ROOT } from './commands.js';

const queries = fencedBlocks(readFileSync(join(ROOT, 'docs', 'operations', 'temporal-ui.md'), 'utf8'))
  .filter(({ language }) => language === 'sql')
  .flatMap(({ text }) => text.split('\n').filter((line) => line !== ''));

/** Of its own: other tests are about a namespace without them. */
const namespace = `saved-views-${randomUUID()}`;
let connection: Connection;

const taken = (query: string): Promise<string> =>
  new Client({ connection, namespace }).workflow.count(query).then(
    () => 'taken',
    (error: unknown) => String((error as { cause?: unknown }).cause ?? error),
  );

beforeAll(async () => {
  connection = await Connection.connect({ address: process.env['PERDURA_TEST_ADDRESS'] });
  await connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: { seconds: 86_400 as never } });
  await waitFor(
    () => registerAttributes(connection, namespace).then(String, () => undefined),
    (registered) => registered !== undefined,
  );
  // The server notices them a moment later.
  await waitFor(
    () => taken("AgentParent = 'x'"),
    (answer) => answer === 'taken',
  );
});
afterAll(() => connection?.close());

test('there are some', () => expect(queries.length).toBeGreaterThan(5));

test.each(queries)('%s', async (query) => expect(await taken(query)).toBe('taken'));
