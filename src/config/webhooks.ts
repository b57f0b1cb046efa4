/**
 * Where events go: `PERDURA_WEBHOOK_URL` for all scopes, and before it the rules of the file that `PERDURA_WEBHOOKS` names. Only those
 * who post read them. Errors show no address and no secret.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { decodeText } from '../records/file-type.js';
import { WEBHOOK_EVENTS, type WebhookEventType } from '../records/turn-end.js';
import { TENANT_PATTERN } from '../records/identity.js';
import type { TenantBudgetRule } from '../records/tenant-budget.js';
import { ConfigError, errorCode } from '../platform/errors.js';
import { isSecretSetting } from '../platform/known-secrets.js';
import { withFirstHost } from '../platform/redis-address.js';

/** `user:password@` would stand in the address of each request, which `fetch` refuses. */
export function isWebhookUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username + password === '';
}

export const WEBHOOK_URL = 'a URL that begins with http:// or https://, without a user in it';
const WEBHOOK_SECRET = 'whsec_ and the base64 of 24 to 64 bytes, such as what `openssl rand -base64 32` prints';

/** Several while one takes the place of another. */
function secretsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((one) => one !== '');
}

function isWebhookSecret(secret: string): boolean {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [];
  const { length } = Buffer.from(base64, 'base64');
  return length >= 24 && length <= 64;
}

export const webhookSecrets = z
  .string()
  .transform(secretsIn)
  .refine((all) => all.length > 0 && all.every(isWebhookSecret), WEBHOOK_SECRET)
  .readonly();

export const webhookEvents = z
  .string()
  .transform((text) => text.split(',').map((one) => one.trim()))
  .pipe(z.array(z.enum(WEBHOOK_EVENTS, `some of ${WEBHOOK_EVENTS.join(', ')}, separated by commas`)))
  .readonly();

/** For the conversations of this tenant and this scope of it; with neither: for all. A scope alone is one of no tenant. */
export interface WebhookEndpoint {
  readonly tenant?: string;
  readonly scope?: string;
  /** Null: their events go nowhere. */
  readonly url: string | null;
  /** The first signs alone where there is one; a receiver accepts any of several while they change. */
  readonly secrets: readonly string[];
  readonly events: readonly WebhookEventType[];
}

const MAX_RULES = 1_000;

const rule = z.strictObject({
  tenant: z.string().regex(TENANT_PATTERN, `must match ${TENANT_PATTERN.source}`).optional(),
  /** A whole name would fit nothing. */
  scope: z
    .string()
    .regex(/^[^.]+$/, 'must be as it is called within its tenant, without a full stop')
    .optional(),
  url: z.string().nullable(),
  secret: z.string().optional(),
  events: z.array(z.enum(WEBHOOK_EVENTS)).min(1).optional(),
});

export const webhookRules = z.array(rule).max(MAX_RULES);

/** Of the settings. */
interface Given {
  readonly webhookUrl?: string | undefined;
  readonly webhookSecrets?: readonly string[] | undefined;
  readonly webhookEvents: readonly WebhookEventType[];
  readonly webhookFile?: string | undefined;
}

/** The first that fits counts. Throws `ConfigError`. */
export function webhookEndpoints(settings: Given): readonly WebhookEndpoint[] {
  const { webhookUrl, webhookSecrets = [], webhookEvents, webhookFile } = settings;
  if (webhookUrl !== undefined && webhookSecrets.length === 0)
    throw new ConfigError(`PERDURA_WEBHOOK_URL needs PERDURA_WEBHOOK_SECRET, ${HOW}`);
  const all = webhookUrl === undefined ? [] : [{ url: webhookUrl, secrets: webhookSecrets, events: webhookEvents }];
  return [...(webhookFile === undefined ? [] : rulesIn(webhookFile, { secrets: webhookSecrets, events: webhookEvents })), ...all];
}

const HOW = 'by which receivers know who posts: whsec_ and what `openssl rand -base64 32` prints';

function rulesIn(file: string, given: Pick<WebhookEndpoint, 'secrets' | 'events'>): WebhookEndpoint[] {
  const refuse = (what: string): ConfigError => new ConfigError(`PERDURA_WEBHOOKS: ${file} ${what}`);
  const rules = webhookRules.safeParse(parsed(file, refuse));
  if (!rules.success) {
    const [issue] = rules.error.issues;
    throw refuse(
      `is no list of rules such as [{ "scope": "acme", "url": "https://…" }]: at ${issue?.path.join('.') || 'its top'}, ${issue?.message}`,
    );
  }
  return rules.data.map(({ secret, url, events = given.events, ...of }, i) => {
    if (url !== null && !isWebhookUrl(url)) throw refuse(`cannot be used: [${i}].url must be ${WEBHOOK_URL}, or null`);
    const secrets = secret === undefined ? given.secrets : secretsIn(secret);
    if (!secrets.every(isWebhookSecret)) throw refuse(`cannot be used: [${i}].secret must be ${WEBHOOK_SECRET}`);
    if (url !== null && secrets.length === 0) throw refuse(`cannot be used: [${i}] needs "secret", or PERDURA_WEBHOOK_SECRET, ${HOW}`);
    return { ...of, url, secrets, events };
  });
}

function parsed(file: string, refuse: (what: string) => ConfigError): unknown {
  let text: string;
  try {
    text = decodeText(readFileSync(file));
  } catch (error) {
    throw refuse(`cannot be read (${errorCode(error) ?? 'failed'})`);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // What a parser says shows what stands there.
    throw refuse('is no JSON');
  }
}

// What of an address, and of a secret that signs, is not to be shown.

/** A password, as written and as it is meant, and what stands behind the names of keys. None in what is no address. */
export function secretsInAddress(text: string): string[] {
  const url = withFirstHost(text);
  if (!text.includes('://') || !URL.canParse(url)) return [];
  const { password, searchParams } = new URL(url);
  const inQuery = [...searchParams].flatMap(([name, value]) => (isSecretSetting(name, value) ? [value] : []));
  return [...(password === '' ? [] : [password, decoded(password)]), ...inQuery];
}

/**
 * @internal Anyone who knows the address of a webhook may write there: the whole of it, and those parts that cannot be guessed. A secret that
 * signs: as it is written, and the key itself, which is bytes.
 */
export function secretsInEndpoint({ url, secrets }: Pick<WebhookEndpoint, 'url' | 'secrets'>): string[] {
  const { pathname = '', searchParams } = url === null ? {} : new URL(url);
  const parts = [...pathname.split('/').map(decoded), ...(searchParams?.values() ?? [])];
  const keys = secrets.map((secret) => Buffer.from(secret.slice('whsec_'.length), 'base64'));
  return [
    ...(url === null ? [] : [url]),
    ...parts.filter((part) => part.length >= 12 && /\d/.test(part) && /[A-Za-z]/.test(part)),
    ...secrets,
    ...keys.flatMap((key) => [key.toString('base64').replace(/=+$/, ''), key.toString('base64url'), key.toString('hex')]),
  ];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// What tenants may use in a day and a month: the rules of the file that `PERDURA_TENANT_BUDGETS` names.

const MAX_BUDGETS = 10_000;

const periodLimits = z
  .strictObject({ maxCostUsd: z.number().min(0).max(1e9).optional(), maxTokens: z.int().min(0).max(1e15).optional() })
  .refine((budget) => Object.keys(budget).length > 0, 'needs maxCostUsd or maxTokens');

export const tenantBudgetRules = z
  .array(
    z
      .strictObject({
        tenant: z.string().regex(TENANT_PATTERN, `must match ${TENANT_PATTERN.source}`).optional(),
        day: periodLimits.optional(),
        month: periodLimits.optional(),
      })
      .refine(({ day, month }) => day !== undefined || month !== undefined, 'needs day or month'),
  )
  .max(MAX_BUDGETS);

/** @internal In their order: the first that fits counts. Throws `ConfigError`. */
export function tenantBudgets({ tenantBudgetFile: file }: { readonly tenantBudgetFile?: string | undefined }): readonly TenantBudgetRule[] {
  if (file === undefined) return [];
  const refuse = (what: string): ConfigError => new ConfigError(`PERDURA_TENANT_BUDGETS: ${file} ${what}`);
  const rules = tenantBudgetRules.safeParse(parsed(file, refuse));
  if (rules.success) return rules.data;
  const [issue] = rules.error.issues;
  throw refuse(
    `is no list of rules such as [{ "tenant": "acme", "day": { "maxCostUsd": 5 } }]: at ${issue?.path.join('.') || 'its top'}, ${issue?.message}`,
  );
}
