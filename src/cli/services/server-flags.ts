/** What a dev server of this folder is started with, beside its place. */

/**
 * Measured: without the first two each queue hop costs 50 ms more. By default a workflow task fails once a hundred events have come
 * while it ran, and each new try replays more: a conversation that 400 messages a second are signalled to would take none of them. By default ten updates may wait for their answer, and
 * ten `send` that wait for a conversation in stepping mode would leave no place for the `step` that answers them.
 */
const DYNAMIC_CONFIG = [
  'system.enableActivityEagerExecution=true',
  'history.transferProcessorMaxPollRPS=2000',
  'history.maximumBufferedEventsBatch=2000',
  'history.maxInFlightUpdates=100',
];

const SEARCH_ATTRIBUTES = [
  'AgentName=Keyword',
  'AgentStatus=Keyword',
  'AgentModel=Keyword',
  'AgentParent=Keyword',
  'AgentTenant=Keyword',
  'AgentTurns=Int',
  'AgentCostUsd=Double',
];

/** As arguments of `temporal server start-dev`. */
export const SERVER_FLAGS = {
  dynamicConfig: DYNAMIC_CONFIG.flatMap((entry) => ['--dynamic-config-value', entry]),
  searchAttributes: SEARCH_ATTRIBUTES.flatMap((entry) => ['--search-attribute', entry]),
} as const;
