/**
 * Characters that people do not see but a model reads: they can hide an instruction, or turn a line around on a screen. They are
 * shown by their code, `\u{202e}`, in what comes from elsewhere: pages, the output of commands, names of files, found lines.
 * Not in what `read_file` reads: `edit_file` asks for a file's exact text, so that one only says that they are there.
 */

const HIDDEN = [
  '\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f', // control characters, but tab and line feed
  '\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u3164\\uffa0', // soft hyphen, fillers
  '\\u200b-\\u200d\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb', // zero width, isolates
  '\\u202a-\\u202e\\u2028\\u2029', // embeddings and overrides, other line ends
  '\\ufe00-\\ufe0d', // variation selectors, but those that choose how an emoji looks
  '\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}', // tags, more variation selectors
].join('');

const HIDDEN_RUNS = new RegExp(`[${HIDDEN}]+`, 'gu');
/** Joiners have a use between parts of one emoji, and inside words of scripts that are joined. */
const JOINED_EMOJI = /(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})/u;
const JOINED_WORD =
  /(?<=[\p{L}\p{M}])(?<![\p{sc=Latn}\p{sc=Grek}\p{sc=Cyrl}])[\u200c\u200d](?=[\p{L}\p{M}])(?![\p{sc=Latn}\p{sc=Grek}\p{sc=Cyrl}])/u;
const WITH_USE = new RegExp(`${JOINED_EMOJI.source}|${JOINED_WORD.source}`, 'gu');
/** Of one run as many are shown: a page may be full of them. */
const SHOWN_OF_RUN = 16;

export function hasHidden(text: string): boolean {
  return countHidden(text) > 0;
}

export function countHidden(text: string): number {
  return (text.match(HIDDEN_RUNS) ?? []).reduce((sum, run) => sum + [...run].length, 0) - (text.match(WITH_USE) ?? []).length;
}

/** Taken out: for what a server says of its tools and answers, where a person reads no codes. */
export function withoutHidden(text: string): string {
  return text.toWellFormed().replace(HIDDEN_RUNS, (run: string, at: number) => (run.length === 1 && isOfUse(text, at) ? run : ''));
}

export function showHidden(text: string): string {
  return text.replace(HIDDEN_RUNS, (run: string, at: number) => {
    if (run.length === 1 && isOfUse(text, at)) return run;
    const codes = [...run];
    const shown = codes.slice(0, SHOWN_OF_RUN).map((character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
    return shown.join('') + (codes.length > SHOWN_OF_RUN ? `[and ${codes.length - SHOWN_OF_RUN} more that no person sees]` : '');
  });
}

/** What a terminal would have shown: without the sequences that colour it or move in it; a line that was written over as two. */
export function plainOutput(text: string): string {
  return showHidden(text.replace(ESCAPES, '').replace(/\r\n?/g, '\n'));
}

/** CSI, then OSC and its kin up to their end, then the short ones. Each is bounded, so that none is sought to the end of a flood. */
const ESCAPES =
  /(?:\u001b\[|\u009b)[0-?]{0,64}[ -/]{0,8}[@-~]|\u001b[\]PX^_][^\u0007\u001b\u009c]{0,2048}(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]{0,4}[0-OQ-WYZ\\`-~]/g;

function isOfUse(text: string, at: number): boolean {
  // A window around it: lookbehinds from the start of a long text would be slow. Four units are two characters.
  const from = Math.max(0, at - 4);
  return [...text.slice(from, at + 5).matchAll(WITH_USE)].some((found) => from + found.index === at);
}
