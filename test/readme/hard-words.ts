/** Words and names that were hard to read, for docs and for source, and how many of them each room of src still has. */

/** In docs and in the descriptions of commands: none. Of the sentences that style.md lists, and the private words of the house. */
export const NOT_IN_DOCS: readonly RegExp[] = [
  /its hands may do/i,
  /what is your own is code/i,
  /text is never taken in/i,
  /what nobody allows/i,
  /never a reason for files/i,
  /nobody's are/i,
  /\btold by its words\b/i,
  /\bgo on after its end\b/i,
  /another one with its turns/i,
  /is named on screen/i,
  /\bmay \S+ run\?/i,
  /\b(nobody|whoever)\b/i,
  /\bone's own\b|\bof ours\b/i,
  /\blies? in\b(?! the)|\bis told of\b/i,
  /\bparted by\b|\b(tool|turn) borders?\b|\bsay it again\b|\btakes? turns back\b|\bleave for a call\b/i,
  /\bmends?\b/i,
];

/** In names, comments and messages of source. A name of a function is a verb or a plain noun of the field, with no `Of` behind it. */
export const HARD_IN_SOURCE: readonly RegExp[] = [
  /\b(?:said|own|asked)\b/gi,
  /\b(?:nobody|whoever|somebody|anybody)\b/gi,
  /\b(?:function\*? |const )[a-z]\w*Of\b(?=\s*[(=<:])/g,
  /\b(?:function\*? |const )\w*[iI]nWords\b/g,
  /\b(?:MOST|LONGEST|LEAST)_\w+/g,
  /\bsay it again\b|\btakes? turns back\b|\bleave for a call\b|\bparted by\b|\bof ours\b|\bis told of\b/gi,
];

/**
 * At most so many in each folder of src; '.' are the files at its top. A number may fall and never rise: lower it when you remove some.
 * In the rooms with few of them, what is left are words of prompts, of word lists, and names of stored fields. (The words by which changes
 * of rules, and quotations, are known added five to `memory` and `records`.)
 */
export const MAX_BY_ROOM: Readonly<Record<string, number>> = {
  '.': 6,
  activities: 11,
  agents: 0,
  cli: 49,
  client: 13,
  config: 1,
  conversation: 116,
  evals: 0,
  extensions: 1,
  gateway: 44,
  heal: 0,
  insight: 3,
  memory: 19,
  models: 2,
  platform: 0,
  records: 6,
  search: 2,
  stores: 0,
  telemetry: 3,
  testing: 13,
  tools: 1,
  workflows: 12,
};

export function countHard(text: string): number {
  return HARD_IN_SOURCE.reduce((sum, words) => sum + (text.match(words)?.length ?? 0), 0);
}
