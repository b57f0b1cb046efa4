/**
 * The model for those who have none yet: a small script. Its models have no price, because they are none.
 *
 * - An answer follows from the request alone: after a restart, at whatever moment, it is the same.
 * - It calls a tool only if a person wants it and it is offered, and says so if it is not.
 * - It never claims to be more than a script.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { counted } from '../records/text.js';
import type { AssistantBlock, ConversationMessage, JsonObject, ToolResultMessage } from '../records/message.js';
import { estimateTokens } from '../records/token-estimate.js';
import { ModelInterrupted, type Model, type ModelRequest, type ModelUsage, type StreamOptions } from './model.js';
import { isRecord } from '../platform/json.js';

/** `provider/model`. */
export const OFFLINE_MODEL = 'offline/scripted';

export interface OfflineAnswer {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly input: JsonObject }[];
}

/** A wish that a person can utter, and the tool that grants it. */
interface Skill {
  readonly tool: string;
  readonly pattern: RegExp;
  readonly input: (...groups: readonly (string | undefined)[]) => JsonObject;
}

const PIECE_CHARACTERS = 8;
const DEFAULT_DELAY_MS = 15;
const QUOTED_LINES = 8;
const QUOTED_CHARACTERS = 600;

const INTRODUCTION =
  'I am not a language model but a scripted stand-in: I answer by a few fixed rules. ' +
  'To talk to a real model, stop this, run `export ANTHROPIC_API_KEY=…` and start again. ' +
  'Meanwhile try: "read README.md", "list files", "search for TODO", "what time is it", "tell me a long story" or "count to 200"; ' +
  '"run git status" needs your approval, "ask me something" waits for your answer, "delegate count to 20" starts a sub-agent.';

/** Any tool at all, so that people can try their tools without an account: `use book_room {"room":"Oslo"}`. To the end of the line. */
const USE_PATTERN = /\buse\s+([a-zA-Z][\w-]{0,63})\s+(\{[^\n]*\})/g;

/** In this order; what one has taken of a text is no other's. */
const SKILLS: readonly Skill[] = [
  { tool: 'delegate', pattern: /\bdelegate\b[\s:,]+(\S[\s\S]*)/gi, input: (task = '') => ({ task: task.trim() }) },
  {
    tool: 'run_command',
    pattern:
      /(?:^|\bplease\s+|\band\s+|\bthen\s+|[.,;]\s*)run\s+["'`]?([\w./-]+)((?:[ \t]+[\w./=@-]+)*?)["'`]?(?=\s+and\b|\s+then\b|[,.;?!]?\s*$|[,;?!\n])/gi,
    input: (command = '', args = '') => ({ command, args: args.split(/\s+/).filter((arg) => arg !== '') }),
  },
  {
    tool: 'ask_user',
    pattern: /\bask me (?:something|a question|anything)\b/gi,
    input: () => ({
      question: 'Which of these do you trust most to be there tomorrow?',
      options: ['paper', 'a hard disk', 'this conversation'],
    }),
  },
  {
    tool: 'read_file',
    pattern: /\b(?:read|open|show(?: me)?)\s+(?:the\s+file\s+)?["'`]?([\w./-]*\w\.\w+)["'`]?/gi,
    input: (path = '') => ({ path }),
  },
  { tool: 'get_time', pattern: /\bwhat(?:'s| is)?(?: the)? time\b|\btime is it\b/gi, input: () => ({}) },
  { tool: 'list_files', pattern: /\blist\s+(?:all\s+|the\s+|my\s+)*files\b|\bwhat files\b/gi, input: () => ({}) },
  {
    tool: 'search_files',
    pattern: /\bsearch\s+(?:the\s+files\s+)?for\s+["'`]?([^"'`,.;?!\n]+?)["'`]?(?=\s+and\b|\s+then\b|[,.;?!\n]|["'`]|$)/gi,
    input: (query = '') => ({ query }),
  },
];

export function createOfflineModel({ delayMs = DEFAULT_DELAY_MS }: { readonly delayMs?: number } = {}): Model {
  return {
    provider: 'offline',
    async stream(request, options) {
      const { text, calls } = offlineAnswer(request);
      const usage = estimatedUsage(request, text);
      await speak(text, delayMs, options).catch((cause: unknown) => {
        if (options.signal.aborted) throw new ModelInterrupted([], usage);
        throw cause;
      });
      for (const { name } of calls) options.onDelta({ kind: 'tool-call', name });
      const blocks: AssistantBlock[] = [
        { kind: 'text', text },
        ...calls.map(({ name, input }, i) => ({ kind: 'tool-call' as const, callId: `call_${i + 1}`, name, input })),
      ];
      return { blocks, stop: calls.length > 0 ? 'tool-calls' : 'end', usage };
    },
  };
}

async function speak(text: string, delayMs: number, { signal, onDelta }: StreamOptions): Promise<void> {
  const characters = [...text];
  for (let at = 0; at < characters.length; at += PIECE_CHARACTERS) {
    signal.throwIfAborted();
    onDelta({ kind: 'text', text: characters.slice(at, at + PIECE_CHARACTERS).join('') });
    if (delayMs > 0) await sleep(delayMs, undefined, { signal });
  }
}

export function offlineAnswer(request: ModelRequest): OfflineAnswer {
  const consolidated = offlineConsolidation(request);
  if (consolidated !== undefined) return { text: consolidated, calls: [] };
  const { results, added } = lastResults(request.messages);
  if (results.length > 0)
    return { text: [...results.map(report), ...added.map((text) => `You added: "${shortened(text, 200)}".`)].join('\n\n'), calls: [] };

  const wish = wishesIn(request.messages).at(-1) ?? '';
  const opening = request.messages.some(({ role }) => role === 'assistant') ? '' : `${INTRODUCTION}\n\n`;
  const { calls, missing } = wishedTools(request, wish);
  if (calls.length > 0) return { text: `${opening}Let me see.`, calls };
  if (missing.length > 0) return { text: `${opening}I would call ${missing.join(' and ')} for that, but was not offered it.`, calls: [] };
  const reply =
    longText(wish) ??
    `You said: "${shortened(wish, 200)}". That is message ${wishesIn(request.messages).length} of yours that I have seen.`;
  return { text: opening + reply, calls: [] };
}

function wishedTools({ tools }: ModelRequest, wish: string): Pick<OfflineAnswer, 'calls'> & { readonly missing: readonly string[] } {
  const offered = new Set(tools.map(({ name }) => name));
  const wished: OfflineAnswer['calls'][number][] = [];
  let rest = wish.replace(USE_PATTERN, (match: string, name: string, json: string) => {
    const input = objectIn(json);
    if (input === undefined) return match;
    wished.push({ name, input });
    return ' '.repeat(match.length);
  });
  for (const { tool: name, pattern, input } of SKILLS)
    rest = rest.replace(pattern, (match: string, ...more: readonly (string | number | undefined)[]) => {
      const groups = more.filter((one) => typeof one === 'string').slice(0, -1);
      wished.push({ name, input: input(...groups) });
      return ' '.repeat(match.length);
    });
  const missing = [...new Set(wished.map(({ name }) => name).filter((name) => !offered.has(name)))];
  return { calls: wished.filter(({ name }) => offered.has(name)), missing };
}

function objectIn(json: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}

/** Results of tools since the last answer, and what a person added while they ran. */
function lastResults(messages: readonly ConversationMessage[]): {
  readonly results: readonly ToolResultMessage[];
  readonly added: readonly string[];
} {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1);
  return {
    results: since.filter((message) => message.role === 'tool'),
    added: since.flatMap((message) => (message.role === 'user' ? textParts(message) : [])),
  };
}

/** The result of a tool, in the words of the person who requested it. */
function report({ name, outcome, text }: ToolResultMessage): string {
  const result = typeof text === 'string' ? text.trim() : '';
  if (outcome !== 'ok') return `${name} failed: ${shortened(result, QUOTED_CHARACTERS)}`;
  if (result === '') return `${name} had nothing to say.`;
  if (name === 'get_time') return `It is ${shortened(result, QUOTED_CHARACTERS)}.`;
  const lines = result.split('\n');
  const quote = lines.slice(0, QUOTED_LINES).map((line) => `> ${line}`);
  const rest = lines.length > QUOTED_LINES ? `\n(and ${lines.length - QUOTED_LINES} lines more)` : '';
  return `${name} says:\n${shortened(quote.join('\n'), QUOTED_CHARACTERS)}${rest}`;
}

/** Some eight seconds at the usual pace, time enough to kill something. */
function longText(wish: string): string | undefined {
  const count = /\b(?:count|repeat)\b\D{0,20}?(\d{1,4})\b/i.exec(wish);
  if (count) return Array.from({ length: Number(count[1]) }, (_, index) => index + 1).join(' ');
  if (!/\blong\s+(?:story|answer|text)\b/i.test(wish)) return undefined;
  const chapter = 'The worker stopped in the middle of a sentence; another one read what was written and went on.';
  return `${Array.from({ length: 40 }, (_, index) => `Chapter ${index + 1}. ${chapter}`).join('\n')}\nThe end.`;
}

/** For a request to consolidate memory: keeps the memory, adds what a person wanted remembered, and notes how many messages there were. */
export function offlineConsolidation({ system, messages }: ModelRequest): string | undefined {
  const prompt = [system, ...messages.flatMap((message) => (message.role === 'user' ? textParts(message) : []))].join('\n');
  if (!prompt.includes('You are a memory consolidation agent') || !prompt.includes('"memory_update"')) return undefined;
  const memory = /## Current Long-term Memory\n([\s\S]*?)\n+## Conversation to Process/.exec(prompt)?.[1]?.trim() ?? '';
  const talk = prompt.split('## Conversation to Process').at(-1)?.split('How to answer:')[0]?.trim() ?? '';
  const time = /\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}/.exec(talk)?.[0].replace('T', ' ') ?? '0000-00-00 00:00';
  const count = talk.split('\n').filter((line) => line.startsWith('[')).length;
  const beginning = [...talk.replace(/\s+/g, ' ')].slice(0, 160).join('');
  const wished = [...talk.matchAll(/^\[[^\]\n]*\] USER: .*?\bremember that (.{1,200})$/gim)].map(([, what = '']) => `- ${what.trim()}`);
  const known = memory === '(empty)' ? '' : memory;
  const added = [...new Set(wished)].filter((line) => !known.split('\n').includes(line));
  return JSON.stringify({
    history_entry: `[${time}] Talked with the scripted stand-in (${counted(count, 'message')}), beginning: ${beginning}`,
    memory_update: [known, ...added].filter((part) => part !== '').join('\n'),
  });
}

/** The newest text that a person sent in one go: what precedes it are notices and memories. */
function wishesIn(messages: readonly ConversationMessage[]): string[] {
  return messages.flatMap((message, at) => (message.role === 'user' && messages[at + 1]?.role !== 'user' ? textParts(message) : []));
}

function textParts({ text }: Extract<ConversationMessage, { role: 'user' }>): string[] {
  return typeof text === 'string' && text.trim() !== '' ? [text.trim()] : [];
}

/** Estimated, of a model that counts no tokens. */
export function estimatedUsage(request: ModelRequest, answer: string): ModelUsage {
  const { system, tools, messages } = request;
  return {
    inputTokens: estimateTokens(JSON.stringify([system, tools, messages])),
    cachedTokens: 0,
    outputTokens: estimateTokens(answer),
  };
}

/** Never cuts a character in two. */
function shortened(text: string, length: number): string {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length).join('')}…` : text;
}
