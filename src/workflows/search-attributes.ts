/** Our search attributes as Temporal types them; registered by `perdura up`, `perdura admin setup` and `npm start`. */
import { defineSearchAttributeKey, SearchAttributeType, type SearchAttributeUpdatePair } from '@temporalio/common';
import type { SearchAttributes } from '../conversation/attributes.js';

export const SEARCH_ATTRIBUTES = {
  AgentName: defineSearchAttributeKey('AgentName', SearchAttributeType.KEYWORD),
  AgentStatus: defineSearchAttributeKey('AgentStatus', SearchAttributeType.KEYWORD),
  AgentModel: defineSearchAttributeKey('AgentModel', SearchAttributeType.KEYWORD),
  AgentParent: defineSearchAttributeKey('AgentParent', SearchAttributeType.KEYWORD),
  AgentTenant: defineSearchAttributeKey('AgentTenant', SearchAttributeType.KEYWORD),
  AgentTurns: defineSearchAttributeKey('AgentTurns', SearchAttributeType.INT),
  AgentCostUsd: defineSearchAttributeKey('AgentCostUsd', SearchAttributeType.DOUBLE),
} as const;

export function toPairs(attributes: SearchAttributes): SearchAttributeUpdatePair[] {
  return [
    { key: SEARCH_ATTRIBUTES.AgentName, value: attributes.AgentName },
    { key: SEARCH_ATTRIBUTES.AgentStatus, value: attributes.AgentStatus },
    ...(attributes.AgentModel === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.AgentModel, value: attributes.AgentModel }]),
    ...(attributes.AgentParent === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.AgentParent, value: attributes.AgentParent }]),
    ...(attributes.AgentTenant === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.AgentTenant, value: attributes.AgentTenant }]),
    { key: SEARCH_ATTRIBUTES.AgentTurns, value: attributes.AgentTurns },
    { key: SEARCH_ATTRIBUTES.AgentCostUsd, value: attributes.AgentCostUsd },
  ];
}
