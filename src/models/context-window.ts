/** Room for prompt and answer together, where a provider's server gives it instead of the model's name. Pure. */

export interface ContextWindow {
  /** What the request sets for the server in each call. */
  readonly tokens: number;
  /** False: the server did not say how much the model takes, so this is the agent's number or a default. */
  readonly isKnown: boolean;
}

/** An answer takes no more than half of a small window, and then a quarter: the prompt needs the rest. */
export function answerTokens(wanted: number, window: number): number {
  return wanted <= window / 2 ? wanted : Math.floor(window / 4);
}

export interface PromptCut {
  /** Tokens: what was sent, by estimate, and what the server has read. */
  readonly sent: number;
  readonly read: number;
}

/** Below it the estimate alone may be that far off; a server that cuts leaves more. */
const MIN_READ = 1_024;

/** A server that cuts a prompt does not say so: it reads far less than was sent. Estimates miss by less than half. */
export function promptCut(sent: number, read: number): PromptCut | undefined {
  return read >= MIN_READ && read * 2 < sent ? { sent, read } : undefined;
}
