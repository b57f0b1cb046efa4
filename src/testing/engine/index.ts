/** Perdura's workflows in memory, and a connection by which Temporal's client reaches them. */
import type { ConnectionLike } from '@temporalio/client';
import { createReducerRegistry, type Reducers } from '../../conversation/context/reducers.js';
import { converse } from '../../workflows/conversation.js';
import { keepMemory } from '../../workflows/memory.js';
import { deliverWebhook } from '../../workflows/webhook.js';
import { createClock, type ClockOptions } from './clock.js';
import { createMemoryConnection } from './connection.js';
import { createEngine, type Engine, type EngineOptions } from './engine.js';

export { advance, type Clock } from './clock.js';
export { asJson } from './run-activity.js';
export type { Engine, Playing } from './engine.js';

export interface MemoryTemporal extends Engine {
  readonly connection: ConnectionLike;
}

export interface MemoryTemporalOptions extends ClockOptions, Pick<EngineOptions, 'namespace' | 'observe' | 'playing'> {
  readonly reducers?: Reducers;
}

export function startMemoryTemporal({ reducers = {}, namespace, observe, playing, ...clock }: MemoryTemporalOptions): MemoryTemporal {
  const reduce = createReducerRegistry(reducers);
  const engine = createEngine({
    ...{ clock: createClock(clock), namespace, ...(observe && { observe }), ...(playing && { playing }) },
    workflows: {
      conversation: (host, argument) => converse(host, argument, reduce),
      memory: keepMemory,
      webhook: deliverWebhook,
    },
  });
  return { ...engine, connection: createMemoryConnection(engine) };
}
