/** Whether events can go out, and whether any did not. */
import type { Client } from '@temporalio/client';
import { webhookEndpoints, type Config, type WebhookEndpoint } from '../../config.js';
import { counted } from '../../records/text.js';
import { WEBHOOK_WORKFLOW_TYPE } from '../../workflows/messages.js';
import { broken, ok, warning, type Finding } from './finding.js';
import { errorMessage } from '../../platform/errors.js';

const DAY_MS = 24 * 3_600_000;

/** Nothing where there is no webhook and never was one. `now`: epoch milliseconds. */
export async function checkWebhooks(client: Client, config: Config, now: number): Promise<Finding[]> {
  let endpoints: readonly WebhookEndpoint[];
  try {
    endpoints = webhookEndpoints(config);
  } catch (error) {
    return [broken('Webhooks', errorMessage(error), 'correct PERDURA_WEBHOOK_URL, PERDURA_WEBHOOK_SECRET or the file of PERDURA_WEBHOOKS')];
  }
  const of = `WorkflowType = '${WEBHOOK_WORKFLOW_TYPE}' AND TaskQueue = '${config.taskQueue.replaceAll("'", "''")}'`;
  const count = async (what: string): Promise<number> => (await client.workflow.count(`${of} AND ${what}`)).count;
  const [failed, trying] = await Promise.all([
    count(`ExecutionStatus = 'Failed' AND CloseTime > '${new Date(now - DAY_MS).toISOString()}'`),
    count(`ExecutionStatus = 'Running'`),
  ]);
  return webhookFindings(endpoints, { failed, trying });
}

export function webhookFindings(
  endpoints: readonly WebhookEndpoint[],
  { failed, trying }: { readonly failed: number; readonly trying: number },
): Finding[] {
  // The rest of an address may be a secret.
  const hosts = [...new Set(endpoints.flatMap(({ url }) => (url === null ? [] : [new URL(url).host])))];
  const to = hosts.length === 0 ? 'no address is set' : `events go to ${hosts.slice(0, 3).join(', ')}${hosts.length > 3 ? ', …' : ''}`;
  if (failed > 0) {
    const look = `temporal workflow list --query "WorkflowType = '${WEBHOOK_WORKFLOW_TYPE}' AND ExecutionStatus = 'Failed'"`;
    return [
      warning('Webhooks', `${to}; ${counted(failed, 'delivery', 'deliveries')} given up in the last day`, `mend the receiver; ${look}`),
    ];
  }
  if (hosts.length === 0 && trying > 0) {
    const mend = 'set PERDURA_WEBHOOK_URL where a worker runs, or wait: each is given up after a day';
    return [warning('Webhooks', `${to}, and ${counted(trying, 'delivery waits', 'deliveries wait')} for a worker that has one`, mend)];
  }
  if (hosts.length === 0) return [];
  return [ok('Webhooks', `${to}; ${trying === 0 ? 'none waits' : `${counted(trying, 'delivery is', 'deliveries are')} under way`}`)];
}
