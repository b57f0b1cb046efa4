/** What both of OpenAI's APIs demand. */

export const IMAGE_TYPES: readonly string[] = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** Longer ids of a tool call are refused. */
export const MAX_CALL_ID = 40;
