/** Text of a server without what can be read by a model and not be seen by a person (S37): controls, bidi overrides, zero-width, tags. */

const CONTROL = '[\\p{Cc}--[\\n\\t]]\\p{Surrogate}';
const INVISIBLE = '\\p{Default_Ignorable_Code_Point}\\p{Bidi_Control}\\u{fff9}-\\u{fffb}';
const HIDDEN = new RegExp(`[${CONTROL}[${INVISIBLE}]]`, 'gv');
/** Joiners and variation selectors 15 and 16 stay: scripts and emoji need them, and a result may be a file that is to be edited. */
const HIDDEN_IN_RESULTS = new RegExp(`[${CONTROL}[[${INVISIBLE}]--[\\u{200c}\\u{200d}\\u{fe0e}\\u{fe0f}]]]`, 'gv');

/** Of a description, which nobody edits: all of it goes. */
export function visibleDescription(text: string): string {
  return text.replace(HIDDEN, '');
}

export function visibleResult(text: string): string {
  return text.replace(HIDDEN_IN_RESULTS, '');
}

export function hasHidden(text: string): boolean {
  return text.search(HIDDEN) >= 0;
}
