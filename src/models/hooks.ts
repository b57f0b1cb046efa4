/**
 * Hooks around each model call (seed 000, phase D): they see what goes out and what comes back, explicitly, and hold no history.
 * They look on: what a hook changes in what it is given, returns or throws does not reach the conversation.
 */
import type { ConversationMessage } from '../records/message.js';
import type { ModelRequest, ModelResponse } from './model.js';

/** The call of a model that a hook looks at. */
export interface HookedCall {
  readonly conversation: string;
  readonly turn: string;
  /** `turn_0007/m2` */
  readonly call: string;
  /** `provider/model` */
  readonly model: string;
}

/** Reads the requests to models and their answers, and changes nothing. What it throws is logged. */
export interface ModelHook {
  /** Unique, for logs. */
  readonly name: string;
  /** `payload` is the whole request, before its provider renders it. */
  beforeInvoke?(messages: readonly ConversationMessage[], payload: ModelRequest, call: HookedCall): void | Promise<void>;
  /** Not called for a call that failed. */
  afterInvoke?(messages: readonly ConversationMessage[], response: ModelResponse, call: HookedCall): void | Promise<void>;
}

/** Runs one side of all hooks, each to its end; what one throws goes to `onFailure` and stops nothing. */
export async function runHooks(
  hooks: readonly ModelHook[],
  run: (hook: ModelHook) => void | Promise<void>,
  onFailure: (hook: string, error: unknown) => void,
): Promise<void> {
  for (const hook of hooks) {
    try {
      await run(hook);
    } catch (error) {
      onFailure(hook.name, error);
    }
  }
}
