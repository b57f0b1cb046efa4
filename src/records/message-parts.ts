/**
 * Where the words of a user's message are from. A person types some of them; others come along: files, what the person quotes, data and
 * instructions of an application, a history that a client supplies. Each of them stands behind a mark (or in front of one), so the parts can
 * be told apart wherever the text is read again. In doubt a word is not the person's: a text from elsewhere must not pass for typed, and one
 * that was typed loses little.
 *
 * Every part that can be long stands on one side of the typed words, and no text in it moves the border: files and data begin at the first
 * mark of theirs, the application's beginning ends at the last one.
 */

export const FILE_MARK = '\n\n[Attached file';
export const PAYLOAD_MARK = 'Payload:\n```json\n';
export const SCHEMA_MARK = '\n\n[When you are done, answer with JSON alone, an object that fits this schema: ';
export const CONTEXT_MARK = "[The client's context, one entry a line:]";
export const HISTORY_MARK = '[Supplied by the client, one message a line; none of it comes from here:]';
export const INSTRUCTIONS_MARK = "[The client's instructions:]";
/** Instructions may have blank lines, so the words after them have another mark. */
export const TYPED_MARK = "[The user's message:]";

/** `file`: a file that came with the message, or what it quotes. */
type PartSource = 'typed' | 'file' | 'application';

/** Of a text, in UTF-16 units. */
interface MessagePart {
  readonly start: number;
  readonly end: number;
  readonly source: PartSource;
}

/** All of a user's message, in its order. */
export function messageParts(text: string): readonly MessagePart[] {
  const file = findStart(text, FILE_MARK);
  const head = text.slice(0, file);
  const begin = typedStart(head);
  const data = begin + dataStart(head.slice(begin));
  // Data that came with files stands behind them.
  const behind = file + lastStart(text.slice(file));
  const parts: MessagePart[] = [
    { start: 0, end: begin, source: 'application' },
    ...typedParts(text, begin, data),
    { start: data, end: file, source: 'application' },
    { start: file, end: behind, source: 'file' },
    { start: behind, end: text.length, source: 'application' },
  ];
  return parts.filter(({ start, end }) => start < end);
}

/** The words of one source, each part of it in separate lines. */
export function textFrom(text: string, source: PartSource): string {
  return messageParts(text)
    .flatMap((part) => (part.source === source ? [text.slice(part.start, part.end)] : []))
    .join('\n');
}

/** What of a text from `start` to `end` a person did not type; undefined where they typed all of it. */
export function foreignSource(text: string, start: number, end: number): Exclude<PartSource, 'typed'> | undefined {
  for (const part of messageParts(text)) {
    if (part.source === 'typed' || part.end <= start || part.start >= end) continue;
    if (text.slice(Math.max(start, part.start), Math.min(end, part.end)).trim() !== '') return part.source;
  }
  return undefined;
}

/** Its place, also where nothing stands before it; else the end of the text. */
function findStart(text: string, mark: string): number {
  const bare = mark.trimStart();
  if (text.trimStart().startsWith(bare)) return 0;
  const at = text.indexOf(mark);
  return at < 0 ? text.length : at;
}

function dataStart(typed: string): number {
  return Math.min(findStart(typed, `\n\n${PAYLOAD_MARK}`), findStart(typed, SCHEMA_MARK));
}

function lastStart(files: string): number {
  const payload = files.lastIndexOf(`\n\n${PAYLOAD_MARK}`);
  const at = payload < 0 ? files.lastIndexOf(SCHEMA_MARK) : payload;
  return at < 0 ? files.length : at;
}

/** Entries of a context and of a history are one line each, without a blank one. */
function typedStart(head: string): number {
  let begin = 0;
  if (head.startsWith(`${INSTRUCTIONS_MARK}\n`)) {
    const mark = `\n${TYPED_MARK}\n`;
    const at = head.lastIndexOf(mark);
    return at < 0 ? head.length : at + mark.length;
  }
  while ([CONTEXT_MARK, HISTORY_MARK].some((mark) => head.startsWith(`${mark}\n`, begin))) {
    const blank = head.indexOf('\n\n', begin);
    if (blank < 0) return head.length;
    begin = blank + 2;
  }
  return begin;
}

// What a person quotes stands in Markdown's quotations and code, in tags, in quotation marks, behind the head of a mail that is passed on, or
// behind words like "the page says:".

function typedParts(text: string, from: number, to: number): MessagePart[] {
  const typed = text.slice(from, to);
  const parts: MessagePart[] = [];
  let at = 0;
  for (const [start, end] of quotedRanges(typed)) {
    if (start > at) parts.push({ start: from + at, end: from + start, source: 'typed' });
    if (end > at) parts.push({ start: from + Math.max(at, start), end: from + end, source: 'file' });
    at = Math.max(at, end);
  }
  return [...parts, { start: from + at, end: to, source: 'typed' }];
}

type Range = readonly [start: number, end: number];

function quotedRanges(typed: string): Range[] {
  return [...quotedLines(typed), ...quotedWords(typed)].sort(([a], [b]) => a - b);
}

/** `rest`: of the message. */
type LineKind = 'typed' | 'quoted' | 'rest';

function quotedLines(typed: string): Range[] {
  const ranges: Range[] = [];
  const lines = typed.split('\n');
  let closes: ((line: string) => boolean) | undefined;
  let isCode = true;
  let start = 0;
  for (const [at, line] of lines.entries()) {
    const end = start + line.length;
    if (closes) {
      ranges.push([start, end]);
      if (closes(line)) closes = undefined;
    } else {
      const opened = opening(line);
      const isIndented: boolean = /^(?: {4}|\t)\s*[^\s*+\-\d•]/.test(line) && isCode;
      const kind = opened || isIndented ? 'quoted' : lineKind(line, lines, at);
      if (kind === 'rest') return [...ranges, [start, typed.length]];
      if (kind === 'quoted') ranges.push([start, end]);
      else {
        const colon = introEnd(line);
        // A text that begins below its introduction may have several paragraphs.
        if (colon === line.length) return [...ranges, [end, typed.length]];
        if (colon !== undefined) ranges.push([start + colon, end]);
      }
      isCode = isIndented || line.trim() === '';
      if (opened && !opened(line.slice(line.search(/\S/) + 1))) closes = opened;
    }
    start = end + 1;
  }
  return ranges;
}

/** How the block that this line opens is closed. */
function opening(line: string): ((line: string) => boolean) | undefined {
  const text = line.trimStart();
  const fence = /^(?:`{3,}|~{3,})/.exec(text)?.[0];
  if (fence !== undefined) return (later) => later.trim().startsWith(fence);
  const tag = /^<([A-Za-z][\w-]{0,40})(?=[\s>])/.exec(text)?.[1];
  return tag === undefined ? undefined : (later) => later.includes(`</${tag}>`);
}

function lineKind(line: string, lines: readonly string[], at: number): LineKind {
  const text = line.trim();
  if (/^[>|»＞]/.test(text)) return 'quoted';
  if (text.length > 200) return 'typed';
  if (FORWARDED.test(text) || WROTE.test(text)) return 'rest';
  const isMail = MAIL_FROM.test(text) && lines.slice(at + 1, at + 6).some((next) => MAIL_HEAD.test(next.slice(0, 40)));
  return isMail ? 'rest' : 'typed';
}

const FORWARDED =
  /^(?:-{2,}|_{5,}|\*{2,}|=)?\s{0,4}(?:begin )?(?:original message|forwarded message|(?:ursprüngliche|weitergeleitete) nachricht|(?:début du )?message (?:transféré|d['’]origine|original)|mensaje (?:original|reenviado)|messaggio (?:originale|inoltrato))/i;
const WROTE = /(?:wrote|schrieb|a écrit|escribió|ha scritto|scrisse)\s{0,4}:?$/i;
const MAIL_FROM = /^\**(?:from|von|absender|de|expéditeur|da|mittente|remitente)\**\s{0,4}:/i;
const MAIL_HEAD =
  /^\s{0,4}\**(?:to|an|à|a|para|subject|betreff|objet|asunto|oggetto|date|datum|fecha|data|sent|gesendet|envoyé|enviado|inviato)\**\s{0,4}:/i;

const INTRO_CHARACTERS = 120;

/** Behind which colon of a line another speaks: the line's length where the text begins below it. */
function introEnd(line: string): number | undefined {
  for (const { index } of line.matchAll(/[:：](?![/\d])/g)) {
    const words = line.slice(Math.max(0, index - INTRO_CHARACTERS), index).toLowerCase();
    if ((words.match(/[\p{L}\p{M}]+/gu) ?? []).some((word) => SPEAKERS.has(word)))
      return line.slice(index + 1).trim() === '' ? line.length : index + 1;
  }
  return undefined;
}

const SPEAKERS: ReadonlySet<string> = new Set(
  [
    'says said say saying writes write written stated states reads claims claimed tells told quote quoted quoting pasted paste excerpt text',
    'mail email e-mail message letter page website document file article transcript ticket comment post attachment output log',
    'sagt sagte schreibt steht stand lautet meint meinte behauptet zitat auszug nachricht brief seite dokument datei artikel protokoll',
    'kommentar anhang ausgabe dit disait indique prétend affirme texte courriel mél lettre fichier commentaire citation extrait',
    'dice dijo escribe escribió pone afirma texto correo mensaje carta página documento archivo artículo comentario cita',
    'disse scrive sostiene testo messaggio lettera pagina articolo commento citazione allegato',
  ]
    .join(' ')
    .split(' '),
);

/** Once: written out for each engine, its classes take 11 KB of the workflows' bundle. */
const LETTER = /[\p{L}\p{N}]/u;

/** What has fewer words between its marks is a name. */
const QUOTED_WORDS = 3;
const CLOSING: Readonly<Record<string, string>> = {
  ...{ '"': '"', "'": "'", '“': '”', '„': '“”"', '‘': '’', '‚': '‘’' },
  ...{ '«': '»', '»': '«', '‹': '›', '›': '‹', '「': '」' },
};

/** Between quotation marks, and what a link is called. A quotation that nothing closes goes on to the end. */
function quotedWords(typed: string): Range[] {
  const ranges: Range[] = [];
  let lone = '';
  for (let at = 0; at < typed.length; at += 1) {
    const mark = typed[at] ?? '';
    const closing = CLOSING[mark];
    if (closing === undefined || lone.includes(mark) || LETTER.test(typed[at - 1] ?? '')) continue;
    const end = closingPlace(typed, at + 1, closing);
    // An apostrophe, or a mark that is a mistake.
    if (end === typed.length && closing === mark) lone += mark;
    else {
      if (countWords(typed.slice(at + 1, end)) >= QUOTED_WORDS) ranges.push([at, Math.min(end + 1, typed.length)]);
      at = end;
    }
  }
  for (const { index, 1: name = '' } of typed.matchAll(/\[([^\][]+)\]\([^\s()[\]]+\)/g))
    if (countWords(name) >= QUOTED_WORDS) ranges.push([index + 1, index + 1 + name.length]);
  return ranges;
}

/** Before a letter it is an apostrophe. */
function closingPlace(text: string, from: number, closing: string): number {
  for (let at = from; at < text.length; at += 1) if (closing.includes(text[at] ?? '') && !LETTER.test(text[at + 1] ?? '')) return at;
  return text.length;
}

function countWords(text: string): number {
  return text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0;
}
