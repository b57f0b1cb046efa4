/**
 * The model for those who have none yet: a small script behind the same HTTP as the real one.
 *
 * O1. An answer follows from the request alone: whoever restarts, at whatever moment, gets the same one.
 * O2. It calls a tool only when a person asked for it and it is offered, and says so when it is not.
 * O3. It never claims to be more than a script.
 */
import { blocksOf, lastToolResults, textOf, type ApiMessage, type ApiRequest, type ToolResultBlock } from './api-request.js';
import { consolidationReply } from './consolidation-reply.js';
import { startMessagesApi } from './messages-api.js';
import type { Reply, ToolCall } from './reply.js';

export interface OfflineModel {
  /** The SDK's `baseURL`; any key will do. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** A wish a person can utter, and the tool that grants it. */
interface Skill {
  readonly tool: string;
  readonly pattern: RegExp;
  readonly input: (match: RegExpMatchArray) => Record<string, unknown>;
}

const defaultDelayMs = 15;
const pieceOf = 8;
const quotedLines = 8;
const quotedChars = 600;

const introduction =
  'I am not a language model but a scripted stand-in: I answer by a few fixed rules. ' +
  'To talk to a real model, stop this, run `export ANTHROPIC_API_KEY=…` and start again. ' +
  'Meanwhile try: "read README.md", "list files", "search for TODO", "what time is it", "tell me a long story" or "count to 200".';

const skills: readonly Skill[] = [
  {
    tool: 'read_file',
    pattern: /\b(?:read|open|show(?: me)?)\s+(?:the\s+file\s+)?["'`]?([\w./-]*\w\.\w+)["'`]?/i,
    input: ([, path]) => ({ path }),
  },
  { tool: 'get_time', pattern: /\bwhat(?:'s| is)?(?: the)? time\b|\btime is it\b/i, input: () => ({}) },
  { tool: 'list_files', pattern: /\blist\s+(?:all\s+|the\s+|my\s+)*files\b|\bwhat files\b/i, input: () => ({}) },
  {
    tool: 'search_files',
    pattern: /\bsearch\s+(?:the\s+files\s+)?for\s+["'`]?([^"'`,.;?!\n]+?)["'`]?(?=\s+and\b|\s+then\b|[,.;?!\n]|["'`]|$)/i,
    input: ([, query]) => ({ query }),
  },
];

export function offlineAnswer(request: ApiRequest): Reply {
  const consolidated = consolidationReply(request);
  if (consolidated !== undefined) return consolidated;
  const results = lastToolResults(request);
  if (results.length > 0) return { text: [...results.map((result) => report(request, result)), ...steered(request)].join('\n\n') };
  const wish = latestWish(request);
  const opening = isFirstAnswer(request) ? `${introduction}\n\n` : '';
  const long = longText(wish);
  if (long !== undefined) return { text: opening + long };
  const { calls, missing } = wishedTools(request, wish);
  if (calls.length > 0) return { text: `${opening}Let me see.`, toolCalls: calls };
  if (missing.length > 0) return { text: `${opening}I would call ${missing.join(' and ')} for that, but was not offered it.` };
  return { text: `${opening}You said: "${shortened(wish, 200)}". That is message ${countOfWishes(request)} of yours that I have seen.` };
}

export async function startOfflineModel(options: { readonly port?: number; readonly delayMs?: number } = {}): Promise<OfflineModel> {
  const delayMs = options.delayMs ?? defaultDelayMs;
  const api = await startMessagesApi({
    port: options.port,
    keepHits: false,
    aside: () => undefined,
    answer: (request) => ({ ...offlineAnswer(request), chunks: { size: pieceOf, delayMs } }),
  });
  return { url: api.url, port: api.port, close: api.close };
}

function wishedTools(request: ApiRequest, wish: string): { calls: readonly ToolCall[]; missing: readonly string[] } {
  const offered = new Set((request.tools ?? []).map((tool) => tool.name));
  const calls: ToolCall[] = [];
  const missing: string[] = [];
  for (const { tool, pattern, input } of skills) {
    for (const match of wish.matchAll(new RegExp(pattern, 'gi'))) {
      if (offered.has(tool)) calls.push({ name: tool, input: input(match) });
      else if (!missing.includes(tool)) missing.push(tool);
    }
  }
  return { calls, missing };
}

/** What a tool said, in the words of the one who asked. */
function report(request: ApiRequest, result: ToolResultBlock): string {
  const use = request.messages
    .flatMap(({ content }) => blocksOf(content))
    .findLast((block) => block.type === 'tool_use' && block.id === result.tool_use_id);
  const name = use?.type === 'tool_use' ? use.name : 'the tool';
  const said = textOf(result.content).trim();
  if (result.is_error === true) return `${name} failed: ${shortened(said, quotedChars)}`;
  if (said === '') return `${name} had nothing to say.`;
  if (name === 'get_time') return `It is ${shortened(said, quotedChars)}.`;
  const lines = said.split('\n');
  const quote = lines.slice(0, quotedLines).map((line) => `> ${line}`);
  const rest = lines.length > quotedLines ? `\n(and ${lines.length - quotedLines} lines more)` : '';
  return `${name} says:\n${shortened(quote.join('\n'), quotedChars)}${rest}`;
}

/** What a person added while the tools ran. */
function steered(request: ApiRequest): string[] {
  const added = textOf(request.messages.at(-1)?.content).trim();
  return added === '' ? [] : [`You added: "${shortened(added, 200)}".`];
}

function longText(wish: string): string | undefined {
  const count = /\b(?:count|repeat)\b\D{0,20}?(\d{1,4})\b/i.exec(wish);
  if (count) return Array.from({ length: Number(count[1]) }, (_, index) => index + 1).join(' ');
  return /\blong\s+(?:story|answer|text)\b/i.test(wish) ? story() : undefined;
}

/** Some eight seconds at the usual pace, time enough to kill something. */
function story(): string {
  const chapters = Array.from(
    { length: 40 },
    (_, index) => `Chapter ${index + 1}. The worker stopped in the middle of a sentence; another one read what was written and went on.`,
  );
  return `${chapters.join('\n')}\nThe end.`;
}

/** The newest thing a person said: what precedes it in the same message are notices and memories. */
function latestWish(request: ApiRequest): string {
  return texts(request.messages.findLast(isWish)).at(-1)?.trim() ?? '';
}

function isFirstAnswer(request: ApiRequest): boolean {
  return !request.messages.some((message) => message.role === 'assistant');
}

function countOfWishes(request: ApiRequest): number {
  return request.messages.filter(isWish).length;
}

function isWish(message: ApiMessage): boolean {
  return message.role === 'user' && texts(message).length > 0;
}

function texts(message: ApiMessage | undefined): string[] {
  return blocksOf(message?.content).flatMap((block) => (block.type === 'text' ? [block.text] : []));
}

/** Never cuts a character in two. */
function shortened(text: string, length: number): string {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length).join('')}…` : text;
}
