/** Who asks. */
import { z } from '@hono/zod-openapi';
import { ROLES } from '../access/principal.js';
import type { GatewayApp } from '../context.js';
import { add } from './operation.js';

const me = z
  .object({ name: z.string(), role: z.enum(ROLES), tenant: z.string().optional().openapi({ description: 'whose conversations it sees' }) })
  .openapi('Me');

export function addMe(app: GatewayApp): void {
  add(app, {
    method: 'get',
    path: '/v1/me',
    summary: 'Who asks: the name of the token or user, its role and its tenant',
    tag: 'gateway',
    answer: me,
    act: (_core, { context }) => {
      const { name, role, tenant } = context.get('principal');
      return Promise.resolve({ name, role, ...(tenant !== undefined && { tenant }) });
    },
  });
}
