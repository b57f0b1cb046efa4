/** `perdura webhooks test`: one signed event, posted from here by the settings of here. */
import { randomUUID } from 'node:crypto';
import { qualifiedScope } from '../../records/scope.js';
import type { WebhookEvent } from '../../records/webhooks/webhook-event.js';
import { webhookEndpoints } from '../../config.js';
import { createWebhooks } from '../../extensions/webhooks.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';

export async function testWebhook(
  context: CliContext,
  { scope, tenant }: { readonly scope: string; readonly tenant?: string },
): Promise<number> {
  const { output, globals, closed } = context;
  const identity = { life: '', agent: '', scope: qualifiedScope(tenant, scope) };
  const webhooks = createWebhooks(webhookEndpoints(context.config()));
  if (!webhooks || webhooks.eventsFor(identity).length === 0)
    throw new CliError(
      `no webhook is set for scope "${identity.scope}": set PERDURA_WEBHOOK_URL and PERDURA_WEBHOOK_SECRET, or a rule in PERDURA_WEBHOOKS`,
      EXIT.usage,
    );
  const data = { scope, ...(tenant !== undefined && { tenant }) };
  const event: WebhookEvent = { type: 'webhook.test', timestamp: new Date().toISOString(), data };
  const id = `evt_test_${randomUUID()}`;
  const outcome = await webhooks.post({ id, identity, body: JSON.stringify(event) }, closed);
  const isTaken = outcome.kind === 'delivered';
  if (globals().output !== 'text') output.line(JSON.stringify({ id, ...outcome }));
  else if (isTaken) output.line(`${id} was taken (${outcome.status})`);
  if (isTaken) return EXIT.ok;
  const why = outcome.kind === 'failed' ? outcome.message : `it answered ${outcome.status}`;
  throw new CliError(`the webhook of scope "${identity.scope}" did not take ${id}: ${why}`, EXIT.failed);
}
