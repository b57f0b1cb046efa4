import { apply } from '../../src/conversation/apply.js';
import type { ConversationState } from '../../src/conversation/state.js';
import { attributesDue, type SearchAttributes } from '../../src/conversation/attributes.js';
import { answered, deferred, open, said, SETTINGS, take } from './drive.js';

const unusable = { kind: 'unusable', type: 'unknown-agent', message: 'no agent x' } as const;
const usable = { kind: 'settings', settings: SETTINGS } as const;

function upserted(
  state: ConversationState,
  { AgentStatus: status, AgentTurns: turns, AgentModel: model }: SearchAttributes,
): ConversationState {
  return apply(state, { kind: 'attributes-upserted', status, turns, ...(model !== undefined && { model }), at: 9 });
}

/** A turn that fails since there is no such agent. */
function failing(state: ConversationState, id: string): ConversationState {
  const { input, done, state: asked } = take(apply(state, said(id)), 'model-step');
  expect(attributesDue(asked)).toBeUndefined();
  return apply(asked, done(deferred(input, 'unusable', { configured: unusable })));
}

test('a turn that failed before its agent could be read is found among those that failed, once; a turn that goes well says the rest', () => {
  const registered: ConversationState = { ...open(), attributes: { known: 'registered', upserted: null } };
  const failed = failing(registered, 'a');
  const first = attributesDue(failed);
  expect(first).toEqual({ AgentName: 'default', AgentStatus: 'failed', AgentTurns: 1, AgentCostUsd: 0 });
  const shown = upserted(failed, first as SearchAttributes);
  expect(attributesDue(shown)).toBeUndefined();

  const again = failing(shown, 'b');
  expect(attributesDue(again)).toBeUndefined();
  const { input, done, state } = take(apply(again, said('c')), 'model-step');
  const well = apply(state, done(answered(input, {}, { configured: usable })));
  expect(attributesDue(well)).toMatchObject({ AgentStatus: 'running', AgentModel: 'anthropic/claude-test', AgentTurns: 3 });
});

test('a tenant’s conversation says whose it is at once', () => {
  const own = open();
  const state: ConversationState = {
    ...own,
    identity: { ...own.identity, scope: 'acme.default' },
    attributes: { known: 'registered', upserted: null },
  };
  expect(attributesDue(state)).toEqual({
    AgentName: 'default',
    AgentStatus: 'running',
    AgentTenant: 'acme',
    AgentTurns: 0,
    AgentCostUsd: 0,
  });
});
