/** Which conversations there are, as Temporal's visibility knows. */
import type { Client } from '@temporalio/client';
import { WORKFLOW_TYPE } from '../workflows/messages.js';
import { toListed, type Listed } from './describe.js';
import { toClientError, type ClientError } from './errors.js';

/** Which conversations are listed. */
export interface ListOptions {
  readonly limit?: number;
  readonly query?: string;
  /** Only this tenant's; null: only those of no tenant. */
  readonly tenant?: string | null;
  /** Only those whose ids begin so. */
  readonly idPrefix?: string;
  /** Only those that fit, of the latest `scan` (default: as many as it takes). */
  readonly where?: (listed: Listed) => boolean;
  readonly scan?: number;
}

export function createList(client: Client): (options?: ListOptions) => Promise<Listed[]> {
  const find = async ({ limit = 50, query, tenant, idPrefix, where, scan = Infinity }: ListOptions, more?: string): Promise<Listed[]> => {
    // A run that handed over is a part of the conversation, as is an earlier life of the same id.
    const wanted = [
      `WorkflowType = '${WORKFLOW_TYPE}' AND ExecutionStatus != 'ContinuedAsNew'`,
      ...(idPrefix === undefined ? [] : [`WorkflowId STARTS_WITH '${idPrefix.replaceAll("'", "''")}'`]),
      ...(more === undefined ? [] : [more]),
      ...(query === undefined ? [] : [`(${query})`]),
    ];
    const found = new Map<string, Listed>();
    let seen = 0;
    try {
      for await (const info of client.workflow.list({ query: wanted.join(' AND ') })) {
        if (++seen > scan) break;
        const listed = toListed(info);
        // Whatever a query says, and however a database compares.
        if (tenant !== undefined && listed.tenant !== tenant) continue;
        if (idPrefix !== undefined && !listed.id.startsWith(idPrefix)) continue;
        if (where !== undefined && !where(listed)) continue;
        if (found.get(listed.id)?.running !== true && (!found.has(listed.id) || listed.running)) found.set(listed.id, listed);
        if (found.size === limit) break;
      }
    } catch (error) {
      throw toClientError(error, 'cannot list conversations');
    }
    return [...found.values()];
  };

  return async (options = {}) => {
    const { tenant, idPrefix } = options;
    if (tenant === undefined || idPrefix !== undefined) return find(options);
    try {
      // One that began a moment ago has the memo alone.
      const ofTenant = tenant === null ? '' : `AgentTenant = '${tenant.replaceAll("'", "''")}' OR `;
      return await find(options, `(${ofTenant}AgentTenant IS NULL)`);
    } catch (error) {
      // Where the attribute is not registered, all are looked at.
      if ((error as Partial<ClientError>).kind !== 'invalid') throw error;
      return find(options);
    }
  };
}
