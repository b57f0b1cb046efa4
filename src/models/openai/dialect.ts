/**
 * What servers that speak nearly as OpenAI does take and refuse. A refusal teaches it: it names a field or a rule, the request is made once
 * more in the other form (a refused one was not answered, and costs nothing), and later requests to that model keep to it.
 */
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions/completions.js';
import type { Refused } from '../refusal.js';

export interface Dialect {
  readonly limitField: 'max_completion_tokens' | 'max_tokens';
  /** Whether requests want usage; some refuse the field, and count by themselves or not at all. */
  readonly usage: boolean;
  /** Whether thoughts go back in `reasoning_content`: DeepSeek and Kimi demand it in a turn with tools, others refuse it. */
  readonly sendsReasoning: boolean;
  /** Whether words of the assistant stand between a tool's result and the user: templates of Mistral and others know no such order. */
  readonly closesTools: boolean;
  /** Where instructions stand; some templates know no system. */
  readonly system: 'system' | 'user';
}

export const OPENAI: Dialect = {
  limitField: 'max_completion_tokens',
  usage: true,
  sendsReasoning: false,
  closesTools: false,
  system: 'system',
};
/** The older name of the limit is the one that all of them know. */
export const COMPATIBLE: Dialect = { ...OPENAI, limitField: 'max_tokens' };

const UNKNOWN_FIELD =
  /not (be )?(permitted|supported|allowed|recogni[sz]ed)|unsupported|unknown|unrecogni[sz]ed|unexpected|extra|no such|instead/i;
const WRONG_ORDER = /expected last role|unexpected role|roles? must alternate|user.{0,20} after .{0,20}tool|conversation roles/i;
const NO_SYSTEM =
  /system (role|message|prompt)s?\b.{0,60}(not |un)(be )?(supported|allowed)|(not|n't) support .{0,30}\bsystem\b|only user and assistant roles/i;

/** How a server that refused a request so would take it; undefined where no other form is known. */
export function learnDialect(now: Dialect, { words, status }: Refused): Dialect | undefined {
  if (status !== 400 && status !== 422 && status !== 500) return undefined;
  const names = (field: string): boolean => words.includes(field) && UNKNOWN_FIELD.test(words);
  if (names(now.limitField)) {
    return { ...now, limitField: now.limitField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens' };
  }
  if (now.usage && names('stream_options')) return { ...now, usage: false };
  if (!now.sendsReasoning && words.includes('reasoning_content')) return { ...now, sendsReasoning: true };
  if (now.sendsReasoning && names('reasoning_content')) return { ...now, sendsReasoning: false };
  if (!now.closesTools && WRONG_ORDER.test(words)) return { ...now, closesTools: true };
  if (now.system === 'system' && NO_SYSTEM.test(words)) return { ...now, system: 'user' };
  return undefined;
}

const CLOSING = { role: 'assistant', content: 'I have read the results.' } as const;

/** With words of the assistant wherever a user's message follows a tool's result. */
export function closeTools(messages: readonly ChatCompletionMessageParam[]): ChatCompletionMessageParam[] {
  return messages.flatMap((message, at) => (message.role === 'user' && messages[at - 1]?.role === 'tool' ? [CLOSING, message] : [message]));
}
