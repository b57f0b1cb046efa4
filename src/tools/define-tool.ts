/**
 * From an author's definition to a tool that is safe to run on whatever a model sends.
 *
 * - A mistake of the author throws here, at definition, not in a conversation.
 * - `run` never throws: a bad input, a thrown error and a strange result are all text that the model reads.
 * - Every text is bounded and well-formed Unicode, since it goes into history, into a store and to a provider.
 */
import { z } from 'zod';
import { LIMITS } from '../conversation/protocol/limits.js';
import { MEDIA_KINDS, type JsonObject, type JsonValue, type Media, type ToolResultMessage } from '../records/message.js';
import { boundText, errorText, firstBytes, toText, listIssues } from './result-text.js';
import { createMediaReader } from './result-text.js';
import type { Tool, ToolDefinition, ToolPolicy, ToolResult } from './tool.js';

export const TOOL_NAME_PATTERN = /^[a-zA-Z0-9_-]{1,64}$/;

const TASK_QUEUE_PATTERN = /^[a-zA-Z0-9][a-zA-Z0-9._:/-]{0,199}$/;

const TIMEOUT_MS = 60_000;
const QUICK_TIMEOUT_MS = 1_000;
const ECHO_BYTES = 600;
const MAX_ATTEMPTS = 10;

/** Makes a tool that agents can call. Throws for a name, a description, a schema or a policy that cannot be used. */
export function defineTool<Schema extends z.ZodObject>(definition: ToolDefinition<Schema>): Tool {
  const { name, description } = definition;
  if (!TOOL_NAME_PATTERN.test(name)) {
    throw new Error(`cannot define the tool ${JSON.stringify(name)}: a name has 1 to 64 letters, digits, "_" or "-"`);
  }
  if (description.trim() === '')
    throw new Error(`cannot define the tool ${name}: the description, which tells the model when to use it, is empty`);
  const schema = refusingUnknown(definition.input);
  return {
    name,
    description,
    inputSchema: toJsonSchema(name, 'input', schema),
    ...(definition.output && { outputSchema: toJsonSchema(name, 'output', definition.output) }),
    policy: toPolicy(name, definition.policy),
    schemaViolation: async (input) => {
      try {
        const checked = await schema.safeParseAsync(input);
        return checked.success ? undefined : invalidInput(name, schema, checked.error, input);
      } catch {
        // What a check of the author's throws, the run says.
        return undefined;
      }
    },
    ...(definition.verify && { verify: verifier(schema, definition.verify) }),
    ...(definition.examine && { examine: examiner(schema, definition.examine) }),
    ...(definition.workflowAction && {
      workflowAction: (input, context) => {
        const checked = schema.safeParse(input);
        return checked.success ? definition.workflowAction?.(checked.data, context) : undefined;
      },
    }),
    async run(input, context) {
      try {
        const checked = await schema.safeParseAsync(input);
        if (!checked.success) return { ok: false, error: invalidInput(name, schema, checked.error, input) };
        return toResult(await definition.run(checked.data, context));
      } catch (thrown) {
        return { ok: false, error: errorText(thrown) };
      }
    },
  };
}

/** A tool without `verify` cannot tell: the call is then of unknown outcome. */
function verifier<Schema extends z.ZodObject>(
  schema: Schema,
  verify: NonNullable<ToolDefinition<Schema>['verify']>,
): NonNullable<Tool['verify']> {
  return async (input, context) => {
    try {
      const checked = await schema.safeParseAsync(input);
      if (!checked.success) return { done: false };
      const verified = await verify(checked.data, context);
      if (verified === 'unknown' || !verified.done) return verified;
      return { done: true, content: toText(verified.content) };
    } catch {
      return 'unknown';
    }
  };
}

/** Arguments that do not fit are the run's to refuse; what cannot be looked at is a person's to look at. */
function examiner<Schema extends z.ZodObject>(
  schema: Schema,
  examine: NonNullable<ToolDefinition<Schema>['examine']>,
): NonNullable<Tool['examine']> {
  return async (input, context) => {
    try {
      const checked = await schema.safeParseAsync(input);
      return checked.success ? await examine(checked.data, context) : {};
    } catch (error) {
      return { asks: { why: `it could not be looked at beforehand: ${firstBytes(errorText(error), ECHO_BYTES)}` } };
    }
  };
}

/** A key that does nothing misleads the model that sent it. An author who wants extra keys says so by `catchall` or `looseObject`. */
function refusingUnknown<Schema extends z.ZodObject>(schema: Schema): Schema {
  // `strict` keeps shape and checks, so what comes out of it has the same type.
  return schema.def.catchall ? schema : (schema.strict() as unknown as Schema);
}

function toJsonSchema(name: string, io: 'input' | 'output', schema: z.ZodType): JsonObject {
  try {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io });
    // Once through JSON: what is left is plain data that may go into history.
    return JSON.parse(JSON.stringify(rest)) as JsonObject;
  } catch (cause) {
    throw new Error(`cannot define the tool ${name}: its ${io} has no JSON Schema (${errorText(cause)})`, { cause });
  }
}

function toPolicy(name: string, given: Partial<ToolPolicy> = {}): ToolPolicy {
  const quick = given.quick ?? false;
  const policy: ToolPolicy = {
    repeatable: given.repeatable ?? false,
    quick,
    timeoutMs: given.timeoutMs ?? (quick ? QUICK_TIMEOUT_MS : TIMEOUT_MS),
    ...(given.attempts === undefined ? {} : { attempts: given.attempts }),
    ...(given.approval === undefined ? {} : { approval: given.approval }),
    ...(given.taskQueue === undefined ? {} : { taskQueue: given.taskQueue }),
  };
  const { attempts = 1, approval = 'allow' } = policy;
  if (!Number.isSafeInteger(attempts) || attempts < 1 || attempts > MAX_ATTEMPTS) {
    throw new Error(`cannot define the tool ${name}: attempts must be a whole number from 1 to ${MAX_ATTEMPTS}, not ${attempts}`);
  }
  if (attempts > 1 && (quick || !policy.repeatable)) {
    throw new Error(`cannot define the tool ${name}: more than one attempt is for repeatable tools that are not quick`);
  }
  if (!['allow', 'ask', 'deny'].includes(approval))
    throw new Error(`cannot define the tool ${name}: approval must be allow, ask or deny, not ${approval}`);
  const { taskQueue } = policy;
  if (taskQueue !== undefined && (typeof taskQueue !== 'string' || !TASK_QUEUE_PATTERN.test(taskQueue))) {
    throw new Error(
      `cannot define the tool ${name}: taskQueue must be 1 to 200 letters, digits, ".", "_", "-", ":" or "/" and begin with a letter or digit, ` +
        `not ${JSON.stringify(taskQueue)}`,
    );
  }
  if (taskQueue !== undefined && quick)
    throw new Error(`cannot define the tool ${name}: a tool with a taskQueue runs elsewhere, so it cannot be quick`);
  // A model step that is broken off runs again, and the tools that ride on it.
  if (quick && !policy.repeatable) throw new Error(`cannot define the tool ${name}: a quick tool must be repeatable`);
  if (!Number.isSafeInteger(policy.timeoutMs) || policy.timeoutMs <= 0) {
    throw new Error(`cannot define the tool ${name}: timeoutMs must be a whole number of milliseconds above 0, not ${policy.timeoutMs}`);
  }
  return policy;
}

function invalidInput(name: string, schema: z.ZodObject, error: z.ZodError, input: JsonValue): string {
  const fields = Object.keys(schema.shape);
  return boundText(
    [
      `${name} did not run: its arguments do not fit its schema.`,
      ...listIssues(error.issues).map((line) => `- ${line}`),
      fields.length > 0 ? `Fields of ${name}: ${fields.join(', ')}.` : `${name} takes no fields; send {}.`,
      `You sent: ${toText(input, ECHO_BYTES)}`,
    ].join('\n'),
  );
}

/** The type promises a text or a result; a tool written in plain JavaScript may hand back anything. */
function toResult(value: unknown): ToolResult {
  if (typeof value === 'object' && value !== null && 'ok' in value) {
    if (value.ok === true && 'content' in value) return withBeside(toText(value.content), value);
    if (value.ok === false && 'error' in value) return { ok: false, error: errorText(value.error), ...readMedia(value).media };
  }
  return { ok: true, content: toText(value) };
}

/** What comes besides the text and cannot be used is left out, with a word: the tool itself has done its work. */
function withBeside(
  content: string,
  given: { readonly content: unknown; readonly task?: unknown; readonly files?: unknown; readonly context?: unknown },
): ToolResult {
  const task = taskSchema.optional().safeParse(given.task);
  const files = filesSchema.optional().safeParse(given.files);
  const context = contextSchema.optional().safeParse(given.context);
  const { media, problems: wrongFiles } = readMedia(given);
  const problems = [
    ...wrongFiles,
    ...(task.success ? [] : listIssues(task.error.issues).map((issue) => `task: ${issue}`)),
    ...(context.success ? [] : listIssues(context.error.issues).map((issue) => `context: ${issue}`)),
    ...(files.success ? [] : listIssues(files.error.issues).map((issue) => `files: ${issue}`)),
  ];
  return {
    ok: true,
    content:
      problems.length === 0
        ? content
        : boundText(`${content}\n[What the tool returned besides this text was left out: ${problems.join('; ')}]`),
    ...(task.data && { task: task.data }),
    ...(context.data && { context: context.data as JsonObject }),
    ...media,
    // Once through JSON: a path list that is undefined is not there.
    ...(files.data && { files: JSON.parse(JSON.stringify(files.data)) as ToolResultMessage['files'] }),
  };
}

const source = z.union([
  z.object({ mediaType: z.string().max(200), base64: z.string() }),
  z.object({ mediaType: z.string().max(200), url: z.url({ protocol: /^https?$/ }).max(LIMITS.mediaUrl) }),
]);

/** References are the conversation's to give: a tool brings files themselves, or their addresses. */
function readMedia(given: object): { readonly media: Media; readonly problems: readonly string[] } {
  const reader = createMediaReader();
  const problems: string[] = [];
  for (const kind of MEDIA_KINDS) {
    const list: unknown = (given as Readonly<Record<string, unknown>>)[kind];
    if (list === undefined) continue;
    const checked = z.array(source).max(LIMITS.mediaPerMessage).safeParse(list);
    if (!checked.success) {
      problems.push(...listIssues(checked.error.issues).map((issue) => `${kind}: ${issue}`));
      continue;
    }
    for (const one of checked.data) {
      const problem = 'url' in one ? reader.addAddress(kind, one) : reader.add(one.base64, one.mediaType);
      if (problem !== undefined) problems.push(`${kind}: ${problem}`);
    }
  }
  return { media: reader.media(), problems };
}

// What a tool's result may have besides its text. Checked, since it goes into a conversation's state and into its memory.

/** Half characters would be refused by stores and providers. */
const words = z.string().overwrite((text) => text.toWellFormed());

export const taskSchema = z.object({
  goal: words.max(500),
  openTasks: z.array(words.min(1).max(200)).max(20),
});

/** Of what an application shares with its tools: what JSON can say, and not too much of it. */
const CONTEXT_BYTES = 16 * 1024;
const contextSchema = z
  .record(z.string().max(200), z.json())
  .refine((value) => JSON.stringify(value).length <= CONTEXT_BYTES, `more than ${CONTEXT_BYTES} characters of JSON`);

const paths = z.array(words.min(1).max(1000)).max(200).optional();
const filesSchema = z.object({ read: paths, edited: paths, written: paths });
