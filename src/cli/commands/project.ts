/** A folder made ready: a new project, what is missing, what is trusted, an endpoint that is tried, and completion in a shell. */
import { randomUUID } from 'node:crypto';
import { Argument, Option, type Command } from 'commander';
import { webhookEndpoints } from '../../config.js';
import { qualifiedScope } from '../../records/identity.js';
import type { WebhookEvent } from '../../records/webhooks/webhook-event.js';
import { complete, completionScript, SHELLS, type Shell } from '../completion.js';
import type { InitOptions } from '../init/init.js';
import type { Answer, CommandFrame, CommandRow } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { TrustOptions } from '../trust/folder-trust.js';

export const PROJECT: readonly CommandRow[] = [
  {
    name: 'init',
    description: 'make a project: an agent, a tool in TypeScript, a test of both',
    args: [['[dir]', 'its folder, which is made if it is not there (default: this one)']],
    options: [
      ['--name <name>', 'of the package (default: the name of the folder)'],
      ['--force', 'overwrite files that are there'],
      ['--no-install', 'write the files and install no packages'],
      new Option('--folder <dir>', 'in place of a folder that was not named').hideHelp(),
    ],
    run: async (frame, dir: string | undefined, options: InitOptions) => (await import('../init/init.js')).init(frame, dir, options),
  },
  {
    name: 'doctor',
    description: 'check Temporal, the store, models, agents and packages, and tell how to fix what is missing',
    options: [['--report', 'to be pasted: without the name of the home folder']],
    run: async (frame, options: { readonly report?: boolean }) => (await import('../doctor/doctor.js')).doctor(frame, options),
  },
  {
    name: 'trust',
    description: 'trust what this folder runs and contacts: its .env, perdura.config.*, mcp.json, and what its agents run without asking',
    options: [
      ['--show', 'only list it, and whether it is trusted'],
      ['--revoke', 'forget that it was'],
      ['-y, --yes', 'without asking'],
    ],
    run: async (frame, options: TrustOptions) => (await import('../trust/folder-trust.js')).trust(frame, options),
  },
  {
    name: 'webhooks test',
    description: 'post one signed event, `webhook.test`, from here, and print the response',
    options: [
      ['--scope <name>', 'whose endpoint', String, 'default'],
      ['--tenant <name>', 'whose endpoint, where there are tenants'],
    ],
    run: testWebhook,
  },
  {
    name: 'completion',
    description: 'print a script that completes commands, options, conversations, agents and models in a shell',
    args: [new Argument('<shell>', 'which').choices(SHELLS)],
    run: ({ output }, shell: Shell, _options: object, command: Command) => {
      output.line(completionScript(command.parent ?? command, shell));
      return Promise.resolve(EXIT.ok);
    },
  },
  {
    // For the scripts that `completion` prints.
    name: 'complete',
    description: 'print what a shell completes',
    isHidden: true,
    args: [new Argument('<kind>', 'of what').choices(['conversations', 'agents', 'models'])],
    run: complete,
  },
];

async function testWebhook(
  { config, closed }: CommandFrame,
  { scope, tenant }: { readonly scope: string; readonly tenant?: string },
): Promise<Answer> {
  const { createWebhooks } = await import('../../extensions/webhooks.js');
  const identity = { life: '', agent: '', scope: qualifiedScope(tenant, scope) };
  const webhooks = createWebhooks(webhookEndpoints(config()));
  if (!webhooks || webhooks.eventsFor(identity).length === 0)
    throw new CliError(
      `no webhook is set for scope "${identity.scope}": set PERDURA_WEBHOOK_URL and PERDURA_WEBHOOK_SECRET, or a rule in PERDURA_WEBHOOKS`,
      EXIT.usage,
    );
  const data = { scope, ...(tenant !== undefined && { tenant }) };
  const event: WebhookEvent = { type: 'webhook.test', timestamp: new Date().toISOString(), data };
  const id = `evt_test_${randomUUID()}`;
  const outcome = await webhooks.post({ id, identity, body: JSON.stringify(event) }, closed);
  if (outcome.kind === 'delivered') return { data: { id, ...outcome }, text: `${id} was taken (${outcome.status})` };
  const why = outcome.kind === 'failed' ? outcome.message : `it answered ${outcome.status}`;
  return {
    data: { id, ...outcome },
    problems: [`the webhook of scope "${identity.scope}" did not take ${id}: ${why}`],
    exitCode: EXIT.failed,
  };
}
