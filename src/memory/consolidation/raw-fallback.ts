/** What HISTORY gets when no model summarized in time (seed 001, "Timeout and Fallback"). */
import type { ConversationEntry } from './conversation-entries.js';
import { shortLine } from './message-lines.js';

export const RAW_FALLBACK = '[raw-fallback]';

/** Seed 001: "the last 10 messages (truncated to 200 chars each)". */
const MESSAGES = 10;
const CHARACTERS = 200;

/** A message a line, so that none passes for another, or for the header of an entry. */
export function rawFallback(entries: readonly ConversationEntry[]): string {
  return [
    RAW_FALLBACK,
    ...entries.slice(-MESSAGES).map(({ role, content }) => `${shortLine(role, 40)}: ${shortLine(content, CHARACTERS)}`),
  ].join('\n');
}
