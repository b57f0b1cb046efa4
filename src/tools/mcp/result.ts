/** What a server answers, as a result of ours: text that a model reads, bounded, with words in the place of what is no text. */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { boundText, toText } from '../result-text.js';
import type { ToolResult } from '../tool.js';
import { withoutHidden } from '../hidden-text.js';

const MAX_PARTS = 1_000;

const text = z.looseObject({ type: z.literal('text'), text: z.string() });
const media = z.looseObject({ type: z.enum(['image', 'audio']), data: z.string(), mimeType: z.string().optional() });
const link = z.looseObject({
  type: z.literal('resource_link'),
  uri: z.string(),
  name: z.string().optional(),
  mimeType: z.string().optional(),
  description: z.string().optional(),
});
const contents = z.looseObject({
  uri: z.string().optional(),
  mimeType: z.string().optional(),
  text: z.string().optional(),
  blob: z.string().optional(),
});
const resource = z.looseObject({ type: z.literal('resource'), resource: contents });
const part = z.union([text, media, link, resource]);

type Part = z.output<typeof part>;

export function toToolResult(answer: Readonly<Record<string, unknown>>): ToolResult {
  const parts = partsOf(answer['content']);
  const structured = answer['structuredContent'];
  // Servers say the same twice, for clients that know only text.
  const isSaid = structured === undefined || parts.some((one) => isSameJson(one, structured));
  const shown = boundText([...parts, ...(isSaid ? [] : [toText(structured)])].join('\n'));
  if (answer['isError'] === true) return { ok: false, error: shown === '' ? 'The server says that it failed, and not why.' : shown };
  return { ok: true, content: shown === '' ? '(the tool returned nothing)' : shown };
}

/** Of `resources/read`. */
export function resourceText(answer: Readonly<Record<string, unknown>>): string {
  const read = Array.isArray(answer['contents']) ? answer['contents'].slice(0, MAX_PARTS) : [];
  const texts = read.map((one) => {
    const checked = contents.safeParse(one);
    return checked.success ? ofContents(checked.data) : '[a part that cannot be read]';
  });
  return boundText(texts.join('\n')) || '(the resource is empty)';
}

/** Of `prompts/get`: what a person would have put into the conversation, here as text that a tool brings. */
export function promptText(answer: Readonly<Record<string, unknown>>): string {
  const messages = Array.isArray(answer['messages']) ? answer['messages'].slice(0, MAX_PARTS) : [];
  const texts = messages.map((message: unknown) => {
    const { role, content } = (typeof message === 'object' && message !== null ? message : {}) as { role?: unknown; content?: unknown };
    return `[${role === 'assistant' ? 'assistant' : 'user'}]\n${partsOf([content]).join('\n')}`;
  });
  return boundText(texts.join('\n\n')) || '(the prompt is empty)';
}

function partsOf(content: unknown): string[] {
  if (!Array.isArray(content)) return [];
  const shown = content.slice(0, MAX_PARTS).map((one) => {
    const checked = part.safeParse(one);
    return checked.success ? ofPart(checked.data) : '[a part of a kind that is not known here]';
  });
  return content.length > MAX_PARTS ? [...shown, `[${content.length - MAX_PARTS} more parts left out]`] : shown;
}

function ofPart(one: Part): string {
  switch (one.type) {
    case 'text':
      return withoutHidden(one.text);
    case 'image':
    case 'audio':
      return `[${one.type}, ${wordsOf(one.mimeType ?? 'of a kind that is not said')}, ${bytesIn(one.data)} bytes: not shown]`;
    case 'resource_link':
      return `[resource ${[one.name, one.uri, one.mimeType, one.description].flatMap((word) => (word ? [wordsOf(word)] : [])).join(', ')}]`;
    case 'resource':
      return ofContents(one.resource);
  }
}

function ofContents({ uri = '', mimeType, text: said, blob }: z.output<typeof contents>): string {
  const about = [`resource ${wordsOf(uri)}`, ...(mimeType === undefined ? [] : [wordsOf(mimeType)])].join(', ');
  if (said !== undefined) return `[${about}]\n${withoutHidden(said)}`;
  return blob === undefined ? `[${about}: empty]` : `[${about}, ${bytesIn(blob)} bytes: not shown]`;
}

/** On one line, and not for ever. */
function wordsOf(given: string): string {
  const shown = withoutHidden(given.slice(0, 1_000)).replace(/\s+/g, ' ').trim();
  return shown.length > 300 ? `${shown.slice(0, 300)}…` : shown;
}

function bytesIn(base64: string): number {
  return Math.floor((base64.replace(/=+$/, '').length * 3) / 4);
}

function isSameJson(said: string, structured: unknown): boolean {
  if (!said.startsWith('{') && !said.startsWith('[')) return false;
  try {
    return isDeepStrictEqual(JSON.parse(said), structured);
  } catch {
    return false;
  }
}
