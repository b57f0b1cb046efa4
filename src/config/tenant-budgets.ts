/** What tenants may use in a day and a month: the rules of the file that `PERDURA_TENANT_BUDGETS` names. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { errorCode } from '../platform/errors.js';
import { decodeText } from '../records/file-type.js';
import { TENANT_PATTERN } from '../records/identity.js';
import type { TenantBudgetRule } from '../records/tenant-budget.js';
import { ConfigError, type Settings } from './settings.js';

const MAX_RULES = 10_000;

const limits = z
  .strictObject({ maxCostUsd: z.number().min(0).max(1e9).optional(), maxTokens: z.int().min(0).max(1e15).optional() })
  .refine((budget) => Object.keys(budget).length > 0, 'needs maxCostUsd or maxTokens');

export const tenantBudgetRules = z
  .array(
    z
      .strictObject({
        tenant: z.string().regex(TENANT_PATTERN, `must match ${TENANT_PATTERN.source}`).optional(),
        day: limits.optional(),
        month: limits.optional(),
      })
      .refine(({ day, month }) => day !== undefined || month !== undefined, 'needs day or month'),
  )
  .max(MAX_RULES);

/** In their order: the first that fits counts. Throws `ConfigError`. */
export function tenantBudgets({ tenantBudgetFile: file }: Pick<Settings, 'tenantBudgetFile'>): readonly TenantBudgetRule[] {
  if (file === undefined) return [];
  const refuse = (what: string): ConfigError => new ConfigError(`PERDURA_TENANT_BUDGETS: ${file} ${what}`);
  let given: unknown;
  try {
    given = JSON.parse(decodeText(readFileSync(file)));
  } catch (error) {
    throw refuse(error instanceof SyntaxError ? 'is no JSON' : `cannot be read (${errorCode(error) ?? 'failed'})`);
  }
  const rules = tenantBudgetRules.safeParse(given);
  if (rules.success) return rules.data;
  const [issue] = rules.error.issues;
  throw refuse(
    `is no list of rules such as [{ "tenant": "acme", "day": { "maxCostUsd": 5 } }]: at ${issue?.path.join('.') || 'its top'}, ${issue?.message}`,
  );
}
