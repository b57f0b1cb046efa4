/**
 * The spans that no activity makes, from what observers are told: a turn, and its calls that wait for a person or a sub-agent. Each is
 * made at its end. What a worker has seen begin it remembers, and a worker that goes on after it does not know: then a turn's beginning is
 * not known, and neither are the waits that had begun.
 */
import { SpanKind, SpanStatusCode, type Attributes, type Link, type Span, type Tracer } from '@opentelemetry/api';
import type { ConversationEvent, EventOf } from '../../conversation/event.js';
import type { TurnNews } from '../../conversation/views/observation.js';
import { shownText, type JsonValue } from '../../records/message.js';
import { scopeParts } from '../../records/identity.js';
import type { Observed } from '../observer.js';
import {
  A,
  inputValue,
  outputValue,
  SPAN,
  textMessages,
  toModelAttributes,
  toSession,
  toUsageAttributes,
  type Content,
} from './conventions.js';
import { createTurnContext, deriveCallIds, deriveIds, readTraceparent, toLink, type GivenIds } from './turn-trace.js';

const MAX_TURNS = 10_000;
/** Of texts, each of which is bounded. */
const MAX_QUESTIONS = 500;

interface OpenTurn {
  readonly startedAt: number;
  readonly news: TurnNews;
  readonly calls: Map<string, OpenCall>;
  /** The texts of its last answer. */
  answered?: string;
}

interface OpenCall {
  readonly name: string;
  readonly input: JsonValue;
  /** A person allows it, or answers it; a sub-agent does. */
  readonly waits: 'approval' | 'person' | 'sub-agent';
  readonly startedAt: number;
  readonly child?: string;
}

export interface TurnSpansOptions {
  readonly tracer: Tracer;
  readonly ids: GivenIds;
  /** Absent: contents are not shown. */
  readonly content?: Content | undefined;
}

export function createTurnSpans({ tracer, ids, content }: TurnSpansOptions): (event: ConversationEvent, of: Observed) => void {
  const turns = createMemory<OpenTurn>(MAX_TURNS);
  const questions = createMemory<string>(MAX_QUESTIONS);

  const placeAttributes = (conversation: string, news: TurnNews): Attributes => ({
    [A.conversation]: conversation,
    [A.agent]: news.agent,
    [A.turn]: news.turnId,
    [A.life]: news.life,
    ...whose(conversation, news),
  });

  const startCall = (
    call: OpenCall,
    callId: string,
    open: OpenTurn,
    { namespace, conversation }: Observed,
    attributes: Attributes,
  ): Span => {
    const { life, turnId: turn } = open.news;
    const place = { namespace, conversation, life, turn };
    const parent = createTurnContext(tracer, ids, deriveIds(place));
    const isApproval = call.waits === 'approval';
    const all: Attributes = {
      ...placeAttributes(conversation, open.news),
      ...(isApproval ? { [A.kind]: 'CHAIN' } : { [A.kind]: 'TOOL', [A.operation]: SPAN.executeTool, [A.toolType]: 'function' }),
      [A.toolName]: call.name,
      [A.toolCallId]: callId,
      ...(content && toArguments(content.json(call.input))),
      ...attributes,
    };
    const name = `${isApproval ? 'approval' : SPAN.executeTool} ${call.name}`;
    const start = (): Span => tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes: all, startTime: call.startedAt }, parent);
    return isApproval ? start() : ids.during(deriveCallIds(place, callId), start);
  };

  const settle = (callId: string, at: number, of: Observed, describe: (call: OpenCall) => Attributes & { failed?: string }): void => {
    const open = turns.get(conversationKey(of));
    const call = open?.calls.get(callId);
    if (!open || !call) return;
    open.calls.delete(callId);
    const { failed, ...attributes } = describe(call);
    const span = startCall(call, callId, open, of, { ...attributes, ...(failed !== undefined && { [A.errorType]: failed }) });
    if (failed !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failed });
    span.end(at);
  };

  const noteAnswer = ({ output, at }: Extract<EventOf<'effect-completed'>, { effect: 'model-step' }>, of: Observed): void => {
    const open = turns.get(conversationKey(of));
    if (!open || output.kind !== 'answered') return;
    const { blocks, plans = [] } = output.answer;
    if (content)
      open.answered = content.text(blocks.flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : [])).join('\n\n'));
    const calls = blocks.flatMap((block) => (block.kind === 'tool-call' ? [block] : []));
    for (const [i, { callId, name, input }] of calls.entries()) {
      const { approval, workflowAction: action } = plans[i] ?? {};
      const asksPerson = action?.kind === 'ask-person' || action?.kind === 'ask-client';
      const waits = approval?.policy === 'ask' ? 'approval' : asksPerson ? 'person' : undefined;
      if (waits) open.calls.set(callId, { name, input, waits, startedAt: at });
    }
  };

  const noteChild = ({ input, at }: Extract<EventOf<'effect-started'>, { effect: 'start-child' }>, of: Observed): void => {
    const { agent = '', delegation } = input.options;
    const call = {
      name: 'delegate',
      input: { agent, task: delegation.task },
      waits: 'sub-agent',
      startedAt: at,
      child: input.child,
    } as const;
    turns.get(conversationKey(of))?.calls.set(input.callId, call);
    // The sub-agent's conversation begins with it, and tells of no message.
    if (content) questions.set(messageKey({ ...of, conversation: input.child }, 'task'), content.text(delegation.task));
  };

  const decided = ({ decision, at }: EventOf<'decided'>, of: Observed): void => {
    const { callId, decision: word, note, output, isError } = decision;
    settle(callId, at, of, ({ waits }) => {
      if (waits === 'approval') return { [A.decision]: word, ...(content && outputValue(content.text(note ?? word))) };
      const answer = content?.text(typeof output === 'string' ? output : JSON.stringify(output ?? note ?? word));
      const isRight = word === 'approve' && isError !== true;
      return {
        [A.outcome]: isRight ? 'ok' : 'error',
        ...(answer !== undefined && toResult(answer)),
        ...(!isRight && { failed: word === 'deny' ? 'rejected' : 'error' }),
      };
    });
  };

  const childEnded = ({ callId, report, at }: EventOf<'child-ended'>, of: Observed): void =>
    settle(callId, at, of, ({ child }) => ({
      [A.outcome]: report.stopReason === 'end' ? 'ok' : 'error',
      ...(child !== undefined && { [A.child]: child }),
      ...(content && toResult(content.text(report.text))),
      ...(report.stopReason !== 'end' && { failed: report.error?.type ?? report.stopReason }),
    }));

  const endTurn = (news: TurnNews & { readonly ended: NonNullable<TurnNews['ended']> }, at: number, of: Observed): void => {
    const { namespace, conversation } = of;
    const { stopReason, usage, toolCalls, error } = news.ended;
    const noted = turns.get(conversationKey(of));
    const open = noted?.news.turnId === news.turnId && noted.news.life === news.life ? noted : undefined;
    if (open) turns.delete(conversationKey(of));
    const question = news.messageIds.flatMap((id) => questions.take(messageKey(of, id)) ?? []).join('\n\n');
    const place = { namespace, conversation, life: news.life, turn: news.turnId };
    const attributes: Attributes = {
      [A.kind]: 'AGENT',
      [A.operation]: SPAN.invokeAgent,
      ...placeAttributes(conversation, news),
      [A.stopReason]: stopReason,
      [A.toolCalls]: toolCalls,
      ...(news.model !== null && toModelAttributes(news.model)),
      ...toUsageAttributes(usage),
      ...(content && question !== '' && { [A.inputMessages]: textMessages('user', question), ...inputValue(question) }),
      ...(content && open?.answered && toAnswer(open.answered)),
      ...(error === undefined ? {} : { [A.errorType]: error }),
      ...(open === undefined && { [A.startUnknown]: true }),
    };
    const startTime = open?.startedAt ?? at;
    const options = { root: true, kind: SpanKind.INTERNAL, attributes, startTime, links: createLinks(namespace, news) };
    const span = ids.during(deriveIds(place), () => tracer.startSpan(`${SPAN.invokeAgent} ${news.agent}`, options));
    if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
    span.end(at);
  };

  return (event, of) => {
    const turn = of.change?.turn;
    if (turn && !turn.ended) turns.set(conversationKey(of), { startedAt: event.at, news: turn, calls: new Map() });
    if (event.kind === 'message-received' && content) questions.set(messageKey(of, event.messageId), content.text(event.text));
    if (event.kind === 'effect-completed' && event.effect === 'model-step') noteAnswer(event, of);
    if (event.kind === 'effect-started' && event.effect === 'start-child') noteChild(event, of);
    if (event.kind === 'decided') decided(event, of);
    if (event.kind === 'child-ended') childEnded(event, of);
    if (turn?.ended) endTurn({ ...turn, ended: turn.ended }, event.at, of);
  };
}

/** A sub-agent's turn belongs to the call that waits for it; a turn that a request has brought, to that request's trace. */
function createLinks(namespace: string, { parent, traceparent }: TurnNews): Link[] {
  const client = traceparent === undefined ? undefined : readTraceparent(traceparent);
  return [
    ...(parent ? [toLink(deriveCallIds({ namespace, conversation: parent.conversation, life: parent.life }, parent.callId))] : []),
    ...(client ? [{ context: client }] : []),
  ];
}

/** `user.id` is whose memory it is, unless that is the agent's for all. */
export function whose(conversation: string, { agent, scope }: { readonly agent: string; readonly scope: string }): Attributes {
  const { tenant, scope: name } = scopeParts(scope);
  return {
    [A.session]: toSession(conversation),
    ...(name !== agent && { [A.user]: name }),
    ...(tenant !== undefined && { [A.tenant]: tenant }),
  };
}

export function toArguments(json: string): Attributes {
  return { [A.toolArguments]: json, [A.input]: json, [A.inputType]: 'application/json' };
}

export function toResult(text: string): Attributes {
  return { [A.toolResult]: text, ...outputValue(text) };
}

function toAnswer(text: string): Attributes {
  return { [A.outputMessages]: textMessages('assistant', text), ...outputValue(text) };
}

function conversationKey({ namespace, conversation }: Observed): string {
  return JSON.stringify([namespace, conversation]);
}

function messageKey({ namespace, conversation }: Observed, messageId: string): string {
  return JSON.stringify([namespace, conversation, messageId]);
}

/** The newest so many. */
function createMemory<T>(most: number) {
  const all = new Map<string, T>();
  return {
    get: (key: string) => all.get(key),
    delete: (key: string) => void all.delete(key),
    take(key: string): T | undefined {
      const found = all.get(key);
      all.delete(key);
      return found;
    },
    set(key: string, value: T) {
      all.delete(key);
      all.set(key, value);
      if (all.size > most) all.delete(all.keys().next().value ?? '');
    },
  };
}
