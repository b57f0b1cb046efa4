/** A response as an object. Pure. */
import { publicCallId, type ClientCall } from '../core/client-calls.js';
import type { FinalAnswer } from '../core/answer.js';
import type { StopReason, TurnResult } from '../../conversation/protocol/contract.js';

export interface ResponseHead {
  readonly id: string;
  readonly created_at: number;
  readonly model: string;
  readonly conversation: string;
  /** The values of the request, where they are known. */
  readonly previous?: string;
  readonly background?: boolean;
  readonly store?: boolean;
  readonly metadata?: unknown;
  /** As the request had them. */
  readonly tools?: readonly unknown[];
  readonly toolChoice?: unknown;
}

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

const STATUS: Partial<Record<StopReason, ResponseStatus>> = {
  'tool-limit': 'incomplete',
  budget: 'incomplete',
  refused: 'incomplete',
  failed: 'failed',
  interrupted: 'cancelled',
  withdrawn: 'cancelled',
};

export function toStatus({ stopReason }: TurnResult): ResponseStatus {
  return STATUS[stopReason] ?? 'completed';
}

/** `retake`: how many items of a stream in its place were taken back. Clients refuse a second item of one id. */
export function itemId({ id }: ResponseHead, at: number, retake = 0): string {
  return `msg_${id.slice('resp_'.length)}_${at + 1}${retake === 0 ? '' : `_${retake + 1}`}`;
}

export function textPart(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

export function messageItem(head: ResponseHead, at: number, text: string | undefined, status: string, retake = 0): object {
  return { id: itemId(head, at, retake), type: 'message', status, role: 'assistant', content: text === undefined ? [] : [textPart(text)] };
}

export function callItem(head: ResponseHead, at: number, { callId, name, input }: ClientCall, status: 'in_progress' | 'completed'): object {
  const given = status === 'completed' ? JSON.stringify(input) : '';
  const call = { call_id: publicCallId(head.conversation, callId), name, arguments: given, status };
  return { id: callItemId(head, at), type: 'function_call', ...call };
}

export function callItemId({ id }: ResponseHead, at: number): string {
  return `fc_${id.slice('resp_'.length)}_${at + 1}`;
}

/** One that has not ended. */
export function runningResponse(head: ResponseHead, status: ResponseStatus = 'in_progress'): object {
  return { ...fields(head), status, error: null, incomplete_details: null, output: [], usage: null };
}

export function endedResponse(head: ResponseHead, { result, texts, calls }: FinalAnswer, retakes: readonly number[] = []): object {
  const status = toStatus(result);
  const { usage, error } = result;
  return {
    ...fields(head),
    status,
    error:
      status === 'failed'
        ? { code: error?.type === 'rate-limit' ? 'rate_limit_exceeded' : 'server_error', message: error?.message ?? '' }
        : null,
    incomplete_details:
      status === 'incomplete' ? { reason: result.stopReason === 'refused' ? 'content_filter' : 'max_output_tokens' } : null,
    output: [
      ...texts.map((text, at) =>
        messageItem(head, at, text, status === 'completed' || at < texts.length - 1 ? 'completed' : 'incomplete', retakes[at]),
      ),
      ...calls.map((call, at) => callItem(head, at, call, 'completed')),
    ],
    usage: {
      input_tokens: usage.inputTokens,
      input_tokens_details: { cached_tokens: usage.cachedTokens },
      output_tokens: usage.outputTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: usage.inputTokens + usage.outputTokens,
    },
  };
}

function fields({
  id,
  created_at,
  model,
  conversation,
  previous,
  background = false,
  store = true,
  metadata,
  tools = [],
  toolChoice = 'auto',
}: ResponseHead): object {
  return {
    id,
    object: 'response',
    created_at,
    model,
    conversation: { id: conversation },
    previous_response_id: previous ?? null,
    background,
    store,
    metadata: metadata ?? {},
    instructions: null,
    parallel_tool_calls: true,
    tool_choice: toolChoice,
    tools,
    temperature: null,
    top_p: null,
    text: { format: { type: 'text' } },
    truncation: 'disabled',
  };
}
