import type { components } from '../api/schema.js';

export interface Origin {
  readonly conversation: string;
  /** The last that it shares. */
  readonly turn?: string;
}

/** Where a conversation that was forked comes from, as its status says. */
export function originOf(about: components['schemas']['Conversation'] | undefined): Origin | undefined {
  const { origin } = (about?.status ?? {}) as { readonly origin?: Origin & { readonly kind: string } };
  return origin?.kind === 'fork' && typeof origin.conversation === 'string' ? origin : undefined;
}
