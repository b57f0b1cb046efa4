/**
 * Which model answers: the one that the conversation was started with or was given since, otherwise the agent's model.
 *
 * The next step that calls a model reads the settings again, with the limits of that model. A call in flight goes on with the old one.
 */
import type { ConfigureRequest } from './settings.js';
import type { EventOf } from '../event.js';
import { isRunning } from '../effect.js';
import type { ConversationState } from '../state.js';
import { withoutRetry } from './retry.js';
import { currentModelCall, fallbackModel, withTurn } from './turn-access.js';

export function setModel(state: ConversationState, { model }: EventOf<'model-set'>): ConversationState {
  const { isModelOpen: _, ...rest } = state;
  const isOpen = model === null && state.settings !== null;
  const chosen: ConversationState = { ...rest, modelOverride: model, ...(isOpen && { isModelOpen: true }) };
  const call = currentModelCall(chosen);
  // A call that waits because the old model failed has no reason to wait any longer.
  const free = call && !isRunning(chosen, 'model-step') ? withoutRetry(chosen, call.id) : chosen;
  return withTurn(free, ({ fallback: _fallback, ...turn }) => ({ ...turn, isConfigured: false }));
}

/** The model that answers next; null while only the agent's files say it, and no step has read them yet. */
export function modelOf(state: ConversationState): string | null {
  const { modelOverride, isModelOpen, settings } = state;
  if (modelOverride !== null || isModelOpen) return modelOverride;
  return fallbackModel(state) ?? ownModel(settings);
}

/** The first of the agent's list also while another one answers. */
export function ownModel(settings: ConversationState['settings']): string | null {
  return settings?.fallback?.first ?? settings?.model ?? null;
}

/** The step that ends now has read the settings for the model that is wanted still. */
export function isAsWanted(state: ConversationState, request: Pick<ConfigureRequest, 'model' | 'fallback'>): boolean {
  return request.model === state.modelOverride && request.fallback === fallbackModel(state);
}
