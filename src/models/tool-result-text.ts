/** What a model reads of a tool's result: the text, after a sentence on what became of the call where it did not simply run. */
import { shownText, type ToolOutcome, type ToolResultMessage } from '../records/message.js';
import { toWellFormed } from './well-formed.js';

const BECAME: Record<ToolOutcome, string> = {
  ok: '',
  error: '',
  rejected: 'Rejected: this call was not allowed and did not run.',
  cancelled: 'Cancelled: this call was stopped before it started and did not run.',
  unknown: 'Outcome unknown: this call was interrupted and may or may not have had its effect. Check before repeating it.',
};

export function toolResultText(result: ToolResultMessage): string {
  const text = toWellFormed(shownText(result.text));
  const said = [BECAME[result.outcome], text].filter((part) => part.trim() !== '').join('\n');
  // Providers refuse blank text.
  return said === '' ? '(no output)' : said;
}

/** For APIs that have no mark for a failed call: the words must say it. */
export function markedResultText(result: ToolResultMessage): string {
  const text = toolResultText(result);
  return result.outcome === 'error' && !/^\s*error\b/i.test(text) ? `Error: ${text}` : text;
}
