/**
 * What the native API answers about a conversation: its status, what is recorded of it, what waits in it.
 *
 * @rule native/answers-as-described: An answer has the fields that `/openapi.json` has, and no others. (test: test/gateway/native-answers.test.ts)
 */
import { z } from '@hono/zod-openapi';
import { STOP_REASONS } from '../../conversation/protocol/contract.js';
import { UNFINISHED } from '../../records/turn-end.js';
import { budget, json, orNull } from './schemas.js';

export const instant = z.number().openapi({ description: 'epoch milliseconds' });
export const seconds = z.number().openapi({ description: 'seconds since 1970' });
const texts = z.array(z.string());
const mode = z.enum(['auto', 'stepping']);
const range = z.array(z.int()).openapi({ description: 'first and last' });

export const usage = z
  .object({
    ...{ inputTokens: z.int(), cachedTokens: z.int(), outputTokens: z.int() },
    ...{ cacheWriteTokens: z.int().optional(), reasoningTokens: z.int().optional() },
    costUsd: z.number().nullable(),
  })
  .openapi('Usage', { description: '`costUsd` is null where the price of the model is not known' });
const error = { type: z.string(), message: z.string() };
const fallback = { model: z.string(), insteadOf: z.string(), reason: z.string() };

const longText = z
  .object({ ref: z.string(), sha256: z.string(), bytes: z.int(), preview: z.string() })
  .openapi('LongText', { description: 'a text that lies in the store: its beginning, and how long it is' });
const recordedText = z.union([z.string(), longText]);

const turnResultFields = {
  turnId: z.string().nullable(),
  text: z.string(),
  textRef: longText.optional(),
  stopReason: z.enum(STOP_REASONS),
  usage,
  payload: json.optional().openapi({ description: 'the answer as data, where the message had an `output`' }),
  toolCalls: z.int(),
  fallback: z.object(fallback).optional().openapi({ description: 'the model that has answered in place of the first one' }),
  error: z.object(error).optional(),
};
export const turnResult = z.object(turnResultFields).openapi('TurnResult');
export const answeredAgain = z
  .object({ ...turnResultFields, cut: z.int().openapi({ description: 'turns that went' }), branch: z.int().nullable() })
  .openapi('AnsweredAgain', { description: '`branch` keeps what went' });

export const pendingTurn = z.object({ conversation: z.string(), turn: z.string() });

export const submitted = z
  .object({
    conversation: z.string(),
    messageId: z.string(),
    turn: z.string().nullable(),
    acceptedAs: z.enum(['queue', 'steer', 'interrupt', 'duplicate']),
    position: z.int(),
    after: z.string().openapi({ description: 'cursor: the events of the turn begin after it' }),
  })
  .openapi('Submitted');

export const turnEnd = z.object({ turn: z.string(), stopReason: z.enum(UNFINISHED), error: z.object(error).optional() }).openapi('TurnEnd');
const lastError = z.object({ turnId: z.string(), stopReason: z.enum(STOP_REASONS), ...error });

export const listed = z
  .object({
    id: z.string(),
    running: z.boolean(),
    state: z.string(),
    agent: z.string().nullable(),
    scope: z.string().nullable().openapi({ description: 'whose memory it has' }),
    tenant: z.string().nullable(),
    publicId: z.string().nullable().openapi({ description: 'by which its tenant knows it, where that is another id; null for the tenant' }),
    title: z.string().nullable(),
    startedAt: z.string(),
    closedAt: z.string().nullable(),
    status: z.string().nullable(),
    model: z.string().nullable(),
    turns: z.int().nullable(),
    costUsd: z.number().nullable(),
    build: z.string().optional().openapi({ description: 'of the workers that have it, where they have builds (Worker Versioning)' }),
    isCurrent: z
      .boolean()
      .openapi({ description: 'status, turns and cost are as of now; else as of its last tenth turn, which `turns` is' }),
    answeredAt: z.string().optional().openapi({ description: 'with `current`: when its model answered last' }),
    phase: z.string().optional().openapi({ description: 'with `current`: what it does now; `idle` between turns' }),
    lastError: lastError.optional().openapi({ description: 'with `current`: of its last turn, where that has no whole answer' }),
  })
  .openapi('Listed');

const waitKind = z.enum(['approval', 'question', 'client-tool']);
const waiting = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('origin'), conversation: z.string() }),
    z.object({ kind: z.literal('retry'), reason: z.string(), message: z.string(), until: z.string() }),
    z.object({ kind: z.literal('memory'), scope: z.string(), until: z.string() }),
    z.object({ kind: z.literal('step'), next: z.string() }),
    z.object({ kind: z.literal('breakpoint'), next: z.string(), why: z.string() }),
    z.object({
      kind: waitKind,
      conversation: z.string(),
      callId: z.string(),
      tool: z.string(),
      target: z.string(),
      others: z.int(),
      until: z.string(),
    }),
    z.object({ kind: z.literal('worker'), tool: z.string(), taskQueue: z.string(), since: z.string() }),
    z.object({ kind: z.literal('time'), tool: z.string(), until: z.string() }),
    z.object({ kind: z.literal('sub-agent'), conversation: z.string() }),
  ])
  .openapi('Waiting');

const subAgents = z.array(z.object({ conversation: z.string(), mode, next: z.string().nullable(), pausedBy: z.string().nullable() }));

export const status = z
  .object({
    phase: z.string(),
    waiting: waiting.optional(),
    waitingFor: z.string().optional().openapi({ description: '`waiting` in words' }),
    session: z.int(),
    turn: z.int().openapi({ description: 'number of the latest' }),
    turns: z.int().openapi({ description: 'how many have ended' }),
    answeredAt: instant.optional(),
    epoch: z.int(),
    mode,
    stepLock: z.string().nullable(),
    pausedBy: z.string().nullable(),
    nextStep: z.string().nullable(),
    subAgents: subAgents.optional(),
    queued: z.int(),
    context: z.object({
      tokens: z.number(),
      budget: z.number(),
      compactsAt: z.number().optional(),
      chunks: z.int(),
      prefixHash: z.string().nullable(),
      prefixChanges: z.int(),
      prefixCause: z.string().nullable(),
      compactions: z.int(),
    }),
    window: z
      .object({
        since: instant,
        messages: z.int(),
        consolidated: z.int(),
        limit: z.number().nullable(),
        consolidating: z.int(),
        owed: z.int(),
      })
      .openapi({ description: 'what long-term memory does not have yet of this session' }),
    pendingApprovals: z.int(),
    budget: orNull(budget),
    usage,
    historyEvents: z.int(),
    lastError: lastError.optional(),
    agent: z.string(),
    scope: z.string(),
    tenant: z.string().optional(),
    model: z.string().nullable(),
    chosenModel: z.string().nullable().optional(),
    allowedCalls: z.array(z.object({ tool: z.string(), target: z.string(), callId: z.string() })).optional(),
    fallback: z.object({ ...fallback, turn: z.string() }).optional(),
    title: z.string().nullable(),
    life: z.string(),
    origin: z.object({ kind: z.enum(['fork', 'resume']), conversation: z.string(), turn: z.string().optional() }).optional(),
    rejectedInputs: z.object({ count: z.int(), last: z.array(z.object({ name: z.string(), reason: z.string(), at: instant })) }),
    appEvents: z
      .object({
        chunks: z.int(),
        unreduced: z.object({ count: z.int(), types: texts }),
        parkedCount: z.int(),
        parked: z.array(z.object({ id: z.string(), type: z.string(), error: z.string(), at: instant })),
      })
      .optional(),
  })
  .openapi('Status');

export const conversation = z
  .object({
    id: z.string(),
    state: z.string(),
    agent: z.string().nullable(),
    scope: z.string().nullable(),
    title: z.string().nullable(),
    startedAt: z.string(),
    closedAt: z.string().nullable(),
    status: orNull(status).openapi({ description: 'null where it does not run, or no worker answers' }),
  })
  .openapi('Conversation');

const media = z
  .array(
    z
      .union([
        z.object({ mediaType: z.string(), url: z.string() }),
        z.object({ mediaType: z.string(), base64: z.string() }),
        z.object({ mediaType: z.string(), ref: z.string() }),
      ])
      .openapi('Media'),
  )
  .optional();
const block = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('text'), text: recordedText }),
    z.object({ kind: z.literal('thinking'), text: z.string(), signature: z.string().optional(), provider: z.string() }),
    z.object({ kind: z.literal('opaque'), provider: z.string(), value: json }),
    z.object({ kind: z.literal('tool-call'), callId: z.string(), name: z.string(), input: json, inputRef: longText.optional() }),
  ])
  .openapi('AssistantBlock');
const recordedMessage = z
  .discriminatedUnion('role', [
    z.object({
      role: z.literal('user'),
      text: recordedText,
      from: z.enum(['notice', 'app']).optional().openapi({ description: 'who speaks in place of a person' }),
      late: z
        .object({ callId: z.string(), name: z.string(), text: z.string(), ref: z.string().optional() })
        .openapi('LateResult', {
          description: 'of a notice: the result of a call whose turn had been stopped; it amends the trace of the call',
        })
        .optional(),
      chunk: z.string().optional(),
      updates: z.number().int().optional().openapi({ description: 'slot of the chunk whose place this one takes' }),
      removes: z.array(z.number().int()).optional().openapi({ description: 'slots of chunks that the application took out here' }),
      tools: z.object({ ref: z.string() }).openapi('ToolsOfMessage').optional(),
      echo: z.record(z.string(), json).openapi('EchoOfMessage', { description: 'what the request of the message has set' }).optional(),
      images: media,
      audio: media,
      video: media,
      documents: media,
    }),
    z.object({ role: z.literal('assistant'), blocks: z.array(block), model: z.string(), stop: z.string() }),
    z.object({
      role: z.literal('tool'),
      callId: z.string(),
      name: z.string(),
      outcome: z.enum(['ok', 'error', 'rejected', 'cancelled', 'unknown']),
      text: recordedText,
      item: z
        .object({ id: z.string(), citation: z.string(), isPlain: z.literal(true).optional() })
        .openapi('ItemOfResult')
        .optional(),
      files: z.object({ read: texts.optional(), edited: texts.optional(), written: texts.optional() }).openapi('FilesOfResult').optional(),
      images: media,
      audio: media,
      video: media,
      documents: media,
    }),
  ])
  .openapi('RecordedMessage');

export const entry = z
  .object({
    v: z.literal(1),
    slot: z.int(),
    session: z.int(),
    turn: z.string(),
    seq: z.int(),
    ts: seconds,
    message: recordedMessage,
    messageId: z.string().optional(),
  })
  .openapi('Entry');

export const branch = z
  .object({
    branch: z.int(),
    after: z.string().openapi({ description: 'the last turn that stayed' }),
    turns: texts,
    at: z.string(),
  })
  .openapi('Branch');

const approvalFields = {
  conversation: z.string(),
  callId: z.string(),
  turnId: z.string(),
  kind: waitKind,
  tool: z.string(),
  target: z.string().openapi({ description: 'what it is about, in a few words' }),
  hash: z.string(),
  askedIn: z.int(),
  why: z.string().optional(),
  mayAlways: z.literal(true).optional().openapi({ description: 'a decision may say `always`' }),
  askedAt: instant,
  expiresAt: instant,
};
/** As a conversation itself knows it: without the arguments, which are in the store. */
export const openApproval = z.object(approvalFields).openapi('OpenApproval');
export const approval = z
  .object({
    ...approvalFields,
    via: z.string().openapi({ description: 'the conversation that was asked; `conversation` is itself or a sub-agent of it' }),
    arguments: json.optional().openapi({ description: 'absent where the store does not have them, or has others' }),
    altered: z.literal(true).optional().openapi({ description: 'somebody has changed the arguments in the store: they will not run' }),
  })
  .openapi('Approval');

export const queuedEvent = z
  .object({
    id: z.string(),
    event: z.discriminatedUnion('kind', [
      z.object({
        kind: z.literal('message'),
        messageId: z.string(),
        turnId: z.string(),
        bytes: z.int(),
        delivery: z.enum(['queue', 'steer', 'interrupt']),
        preview: z.string().optional(),
      }),
      z.object({ kind: z.literal('reset'), resetId: z.string() }),
      z.object({ kind: z.literal('app'), type: z.string(), id: z.string() }),
      z.object({ kind: z.literal('more'), count: z.int() }).openapi({ description: 'messages further back, which lie in the store' }),
    ]),
    queuedAt: instant,
  })
  .openapi('QueuedEvent');

const controlFields = {
  mode,
  stepLock: z.string().nullable(),
  breakpoints: z
    .object({ tools: texts.optional(), events: texts.optional(), onError: z.boolean().optional(), costUsd: z.number().optional() })
    .openapi('Breakpoints'),
  pausedBy: z.string().nullable(),
  next: z.string().nullable(),
};
export const controlStatus = z.object(controlFields).openapi('ControlStatus');
export const dispatchResult = {
  addedChunks: texts,
  removedChunkIds: texts,
  contextTokens: z.object({ before: z.number(), after: z.number() }),
};
export const thresholds = z
  .object({ soft: z.number(), hard: z.number(), truncation: z.number(), autoCompact: z.boolean() })
  .nullable()
  .openapi({ description: 'tokens; null until the first turn' });
export const control = z
  .object({
    ...controlFields,
    running: z.string().nullable().openapi({ description: 'what the running step does' }),
    thresholds,
    turn: z
      .object({
        id: z.string(),
        modelCall: z.object({ id: z.string(), inFlight: z.boolean(), failures: z.int() }).nullable(),
        calls: z.array(z.object({ id: z.string(), name: z.string(), target: z.string(), status: z.string() })),
      })
      .nullable(),
    leftOut: z.int(),
    subAgents: subAgents.optional(),
  })
  .openapi('Control');

export const contextIndex = z
  .object({
    epoch: z.int(),
    session: z.int(),
    budget: z.number(),
    assumedBudget: z.number().optional(),
    compactsAt: z.number(),
    total: z.number(),
    tokenizer: z.string().optional(),
    tokenRatio: z.number().optional(),
    reported: z.number().nullable().openapi({ description: 'of the last prompt, as its provider has counted it' }),
    compactions: z.int(),
    canUndo: z.boolean(),
    window: z
      .object({
        consolidated: z.int(),
        trimsFrom: z.number().nullable(),
        trims: z.int(),
        messages: z.int(),
        unsummarized: z.int(),
      })
      .optional(),
    chunks: z.array(
      z.object({
        kind: z.enum(['SYSTEM', 'MEMORY', 'WORKING_FLOW']),
        tokens: z.number(),
        slots: z.array(range).optional(),
        ref: z.string().optional(),
        tools: z.string().optional(),
      }),
    ),
    cited: z.array(range).optional(),
    leftOut: z.array(range).optional(),
  })
  .openapi('ContextIndex');
