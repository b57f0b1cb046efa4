/** A server's tool as one of the agent's. Whatever the server does is a result that the model reads. */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../records/message.js';
import { defineTool } from '../define-tool.js';
import { examineLeaving } from '../egress-scan.js';
import { errorText, boundText, RESULT_BYTES, toText } from '../result-text.js';
import { createMediaReader, type MediaReader } from '../result-text.js';
import type { Examined, Tool, ToolResult } from '../tool.js';
import { ServerDown, type ServerLink } from './link.js';
import { SignInNeeded } from './sign-in/session.js';
import { totalTimeout } from './server-config.js';
import type { ToolPin } from '../../stores/store.js';
import { toPin, withSafeNames, type ServerTool, type ToolState } from './server-tool.js';
import { withoutHidden } from '../hidden-text.js';
import { isRecord } from '../../platform/json.js';
import { schemaCheck } from '../../platform/json-schema/check.js';
import { hasBranches } from '../../platform/json-schema/normal-form.js';
import { truncate } from '../../records/text.js';

export interface OfferedTool {
  readonly name: string;
  readonly agent: string;
  readonly link: ServerLink;
  /** As a person, or the first sight, has accepted it. */
  readonly accepted: ServerTool;
  readonly pin: ToolPin;
}

/** How long a call waits for a server that is just being connected. */
export const CONNECT_PATIENCE_MS = 8_000;

/** Characters of what does not fit. */
const MAX_WHY = 500;

export function toTool({ name, agent, link, accepted, pin }: OfferedTool): Tool {
  const { server, tool, description } = accepted;
  const { schema: inputSchema, fromWire } = withSafeNames(accepted.inputSchema);
  const { timeout, trustAnnotations } = link.server;
  return {
    name,
    description,
    inputSchema,
    policy: {
      repeatable: trustAnnotations && (accepted.readOnly || accepted.idempotent),
      quick: false,
      timeoutMs: totalTimeout(link.server),
    },
    // No provider takes branches at the top, so the model has not seen them as they are. Others the server judges.
    mustFit: hasBranches(accepted.inputSchema),
    schemaViolation: async (input) => {
      const verdict = await schemaCheck.judge({ schema: accepted.inputSchema, data: fromWire(argumentsIn(input)) });
      return verdict.kind === 'violated' ? truncate(`the arguments do not fit the tool's schema: ${verdict.problems}`, MAX_WHY) : undefined;
    },
    examine: (input) => Promise.resolve(leavingFor(link, input)),
    async run(input, { signal }) {
      try {
        await link.refresh(CONNECT_PATIENCE_MS);
        const refusal = findRefusal({ name, agent, link, accepted, pin });
        if (refusal !== undefined) return { ok: false, error: refusal };
        return toToolResult(
          await link.ask('tools/call', { name: tool, arguments: fromWire(argumentsIn(input)) }, { signal, quietMs: timeout }),
          link.secrets.redact,
        );
      } catch (error) {
        const what = `The tool ${tool} of the MCP server ${server}`;
        if (!isQuiet(error)) return failed(what, link, error);
        return { ok: false, error: `${what} sent no answer and no progress for ${timeout} ms: whether it was done is unknown.` };
      }
    },
  };
}

/** Of the library: the time for a word was over. */
function isQuiet(error: unknown): boolean {
  return isRecord(error) && error['code'] === 'REQUEST_TIMEOUT' && /timed out/i.test(errorText(error));
}

/** A server with an address may read all that it is sent; for a server on this machine only known secrets need approval. */
export function leavingFor({ server, secrets }: Pick<ServerLink, 'server' | 'secrets'>, input: JsonValue): Examined {
  const text = JSON.stringify(input);
  const to = `the MCP server ${server.name}`;
  if (server.type === 'http') return examineLeaving(text, to, secrets);
  return secrets.isIn(text) ? examineLeaving(text, to, secrets) : {};
}

/** For a server's tools, resources and prompts alike. */
export function failed(what: string, { server, secrets }: Pick<ServerLink, 'server' | 'secrets'>, error: unknown): ToolResult {
  if (error instanceof SignInNeeded)
    return {
      ok: false,
      error: `${what} did not run: ${error.message}. Call ${SIGN_IN_TOOL} with the server ${server.name}: it asks a person.`,
    };
  if (error instanceof ServerDown) return { ok: false, error: `The MCP server ${server.name} is down: ${withoutHidden(error.message)}` };
  const reason = secrets.redact(withoutHidden(errorText(error).slice(0, 8_000))).slice(0, 4_000);
  const isLost = /connection closed/i.test(reason);
  return {
    ok: false,
    error: isLost ? `${what} was running when the server went away: whether it was done is unknown.` : `${what} failed: ${reason}`,
  };
}

function findRefusal({ name, agent, link, accepted, pin }: OfferedTool): string | undefined {
  const listing = link.listing();
  // Not connected: asking it says why.
  if (listing === undefined) return undefined;
  const { server, tool } = accepted;
  const live = listing.tools.find((one) => one.tool === tool);
  // What it has in its place is not named: no person has seen those names.
  if (live === undefined) return `The MCP server ${server} has no tool ${tool} any more.`;
  return toPin(live).hash === pin.hash ? undefined : describeWaiting({ name, agent, server }, 'changed');
}

/** With our name for the tool alone: a server could write anything into its name for it, for a model to obey or for a person to paste. */
export function describeWaiting(
  { name, agent, server }: Pick<OfferedTool, 'name' | 'agent'> & { readonly server: string },
  state: ToolState,
): string {
  const what = state === 'changed' ? 'changed what it says about its tool' : 'added the tool';
  return (
    `The MCP server ${server} has ${what} ${name} since it was accepted, so the tool does not run. ` +
    `A person can look at it and accept it: perdura mcp accept ${agent} ${name}`
  );
}

/** What is no object the server would refuse with less words. */
function argumentsIn(input: JsonValue): JsonObject {
  return isRecord(input) ? (input as JsonObject) : {};
}

// What a server answers, as a tool result: text that a model reads, bounded, with words in the place of what is no text.

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

/** Takes out what was given in confidence. */
type Redact = (text: string) => string;

/**
 * What is read of an answer, in characters: more than is shown, since invisible characters are taken out. Nothing behind it is looked at, so
 * that an answer of any length takes no longer than one of this.
 */
const READ_CHARACTERS = 2 * RESULT_BYTES;

export function toToolResult(answer: Readonly<Record<string, unknown>>, redact: Redact = asItIs): ToolResult {
  const reading = createReading(redact);
  readParts(reading, answer['content']);
  const structured = answer['structuredContent'];
  if (structured !== undefined && structured !== null && !saysTheSame(reading.texts, structured)) reading.add(toText(structured));
  const shown = reading.text();
  const media = reading.media.media();
  if (answer['isError'] === true)
    return { ok: false, error: shown === '' ? 'The server says that it failed, and not why.' : shown, ...media };
  return { ok: true, content: shown === '' ? '(the tool returned nothing)' : shown, ...media };
}

/** Of `resources/read`. */
export function resourceResult(answer: Readonly<Record<string, unknown>>, redact: Redact = asItIs): ToolResult {
  const reading = createReading(redact);
  const read: readonly unknown[] = Array.isArray(answer['contents']) ? answer['contents'].slice(0, MAX_PARTS) : [];
  for (const one of read) {
    const checked = contents.safeParse(one);
    if (checked.success) readContents(reading, checked.data);
    else reading.add('[a part that cannot be read]');
  }
  return { ok: true, content: reading.text() || '(the resource is empty)', ...reading.media.media() };
}

/** Of `prompts/get`: what a person would have put into the conversation, here as text that a tool brings. */
export function promptResult(answer: Readonly<Record<string, unknown>>, redact: Redact = asItIs): ToolResult {
  const reading = createReading(redact);
  const messages: readonly unknown[] = Array.isArray(answer['messages']) ? answer['messages'].slice(0, MAX_PARTS) : [];
  messages.forEach((message, i) => {
    const { role, content } = (typeof message === 'object' && message !== null ? message : {}) as { role?: unknown; content?: unknown };
    reading.add(`${i === 0 ? '' : '\n'}[${role === 'assistant' ? 'assistant' : 'user'}]`);
    readParts(reading, [content]);
  });
  return { ok: true, content: reading.text() || '(the prompt is empty)', ...reading.media.media() };
}

interface Reading {
  /** Of a tool's result, for models that take them. */
  readonly media: MediaReader;
  /** As they came, as far as they were read. */
  readonly texts: readonly string[];
  add(text: string): void;
  /** Bounded, with a note of what is missing. */
  text(): string;
}

function createReading(redact: Redact): Reading {
  const texts: string[] = [];
  const pieces: string[] = [];
  let [left, bytes, isCut] = [READ_CHARACTERS, 0, false];
  return {
    media: createMediaReader(),
    texts,
    add(text) {
      bytes += Buffer.byteLength(text) + (bytes === 0 ? 0 : 1);
      if (text.length > left) isCut = true;
      if (left <= 0) return;
      const read = text.slice(0, left);
      left -= read.length + 1;
      texts.push(read);
      pieces.push(withoutHidden(read));
    },
    text: () => boundText(redact(pieces.join('\n')), RESULT_BYTES, isCut ? bytes : undefined),
  };
}

function asItIs(text: string): string {
  return text;
}

function readParts(reading: Reading, content: unknown): void {
  if (!Array.isArray(content)) return;
  for (const one of content.slice(0, MAX_PARTS) as readonly unknown[]) {
    const checked = part.safeParse(one);
    if (checked.success) readPart(reading, checked.data);
    else reading.add('[a part of a kind that is not known here]');
  }
  if (content.length > MAX_PARTS) reading.add(`[${content.length - MAX_PARTS} more parts left out]`);
}

function readPart(reading: Reading, one: Part): void {
  switch (one.type) {
    case 'text':
      return reading.add(one.text);
    case 'image':
    case 'audio':
      return reading.add(
        `[${one.type}, ${plainLine(one.mimeType ?? 'of an unnamed kind')}, ${bytesIn(one.data)} bytes${addFile(reading, one.data, one.mimeType)}]`,
      );
    case 'resource_link':
      return reading.add(
        `[resource ${[one.name, one.uri, one.mimeType, one.description].flatMap((word) => (word ? [plainLine(word)] : [])).join(', ')}]`,
      );
    case 'resource':
      return readContents(reading, one.resource);
  }
}

function readContents(reading: Reading, { uri = '', mimeType, text: content, blob }: z.output<typeof contents>): void {
  const about = [`resource ${plainLine(uri)}`, ...(mimeType === undefined ? [] : [plainLine(mimeType)])].join(', ');
  if (content !== undefined) reading.add(`[${about}]\n${content}`);
  else reading.add(blob === undefined ? `[${about}: empty]` : `[${about}, ${bytesIn(blob)} bytes${addFile(reading, blob, mimeType)}]`);
}

/** What to say of it: nothing where a model gets it. */
function addFile(reading: Reading, base64: string, mimeType = ''): string {
  const why = reading.media.add(base64, mimeType);
  return why === undefined ? '' : `: not shown, ${why}`;
}

/** On one line, and not for ever. */
function plainLine(given: string): string {
  const shown = withoutHidden(given.slice(0, 1_000)).replace(/\s+/g, ' ').trim();
  return shown.length > 300 ? `${shown.slice(0, 300)}…` : shown;
}

function bytesIn(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
}

/**
 * Servers say the same twice, for clients that know only text: as JSON; a value that is no object under `result` (FastMCP), a list of them in
 * a text each.
 */
function saysTheSame(texts: readonly string[], structured: unknown): boolean {
  const wrapped = isRecord(structured) && Object.keys(structured).length === 1 ? structured['result'] : undefined;
  return [structured, wrapped].some((value) => {
    if (value === undefined) return false;
    if (texts.some((text) => isSame(text, value))) return true;
    return Array.isArray(value) && value.length === texts.length && value.every((one, at) => isSame(texts[at] ?? '', one));
  });
}

function isSame(text: string, value: unknown): boolean {
  if (typeof value === 'string') return text.trim() === value.trim();
  // Read as far as is read of an answer, so that it takes no longer to compare them.
  try {
    return isDeepStrictEqual(JSON.parse(text), value);
  } catch {
    return false;
  }
}

/** How a model has a person sign in: a call of it waits for an approval whose words hold the link. */
export const SIGN_IN_TOOL = 'mcp_sign_in';

const SIGN_IN_PATIENCE_MS = 8_000;

/** None where no server waits for a person; for a run also where none does any more: the call may have waited for that. */
export function signInTool(links: readonly ServerLink[], isRun: boolean): readonly Tool[] {
  const waiting = links.filter(({ signIn }) => (isRun ? signIn() !== undefined : signIn()?.isNeeded() === true));
  if (waiting.length === 0) return [];
  const names = waiting.map(({ server }) => server.name).join(', ');
  return [
    defineTool({
      name: SIGN_IN_TOOL,
      description:
        `Ask the person to sign in at an MCP server that does not answer without it: ${names}. The person gets a link; nothing else is ` +
        'needed of you. Afterwards the tools of that server can be used.',
      input: z.object({ server: z.string().max(200) }),
      policy: { repeatable: true, timeoutMs: 60_000 },
      examine({ server }, { conversation }) {
        const session = links.find((link) => link.server.name === server)?.signIn();
        return session?.isNeeded() === true ? { asks: { why: session.ask(conversation), overRules: true, isPrivate: true } } : {};
      },
      async run({ server }) {
        const link = links.find((one) => one.server.name === server);
        const session = link?.signIn();
        if (!link || !session) return { ok: false, error: `No MCP server ${JSON.stringify(server)} waits for a person here: ${names}.` };
        await session.look();
        if (session.isNeeded()) return { ok: false, error: `No person has signed in yet: ${session.words}.` };
        await link.refresh(SIGN_IN_PATIENCE_MS);
        if (session.isNeeded()) return { ok: false, error: `The MCP server ${server} does not take the new sign-in: ${session.words}.` };
        return `A person has signed in at the MCP server ${server}. Its tools can be called now.`;
      },
    }),
  ];
}
