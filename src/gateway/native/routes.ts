/** The native API: all that the client library can do, as REST and server-sent events, described by `/openapi.json`. */
import type { GatewayApp } from '../context.js';
import { addAttachments } from './attachments.js';
import { addControl } from './control.js';
import { addConversations } from './conversations.js';
import { addFleet } from './fleet.js';
import { addInsight } from './insight.js';
import { addLineage } from './lineage.js';
import { addMe } from './me.js';
import { addMemory } from './memory.js';
import { addTurns } from './turns.js';

export function addNativeRoutes(app: GatewayApp): void {
  for (const add of [addConversations, addTurns, addAttachments, addControl, addLineage, addMemory, addInsight, addFleet, addMe]) add(app);
}
