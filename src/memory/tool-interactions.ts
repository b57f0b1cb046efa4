/** A derived view, never stored: a tool call beside its result (seed 000, sections 4 and 6). */
import type { JsonValue } from '../records/message.js';
import type { RawTrace } from './traces.js';

/** A tool call with its result, found together (seed 000). */
export interface ToolInteraction {
  readonly tool_call_id: string;
  /** Of the call; a result that arrives in a later turn changes nothing. */
  readonly turn_id: string;
  readonly tool_name: string;
  /** null when the call's trace is lost. */
  readonly arguments: JsonValue;
  readonly result: JsonValue;
  readonly error: string | null;
  readonly status: 'PENDING' | 'SUCCESS' | 'ERROR';
}

/** In the order of the calls; with `turnId` of that turn only. A result whose call is lost stands at the end, without arguments. */
export function toToolInteractions(traces: readonly RawTrace[], turnId?: string): ToolInteraction[] {
  const results = new Map<string, RawTrace[]>();
  for (const trace of traces) {
    if (trace.trace_type !== 'tool_result') continue;
    const id = trace.tool_call_id ?? '';
    results.set(id, [...(results.get(id) ?? []), trace]);
  }
  const calls = traces.filter((trace) => trace.trace_type === 'tool_call');
  const called = calls.map((call) => toInteraction(call, results.get(call.tool_call_id ?? '')?.shift()));
  const ids = new Set(calls.map((call) => call.tool_call_id ?? ''));
  const lost = [...results].flatMap(([id, [first]]) => (first === undefined || ids.has(id) ? [] : [toInteraction(first, first)]));
  return [...called, ...lost].filter((interaction) => turnId === undefined || interaction.turn_id === turnId);
}

function toInteraction(call: RawTrace, result: RawTrace | undefined): ToolInteraction {
  const error = result?.tool_error ?? null;
  return {
    tool_call_id: call.tool_call_id ?? '',
    turn_id: call.turn_id,
    tool_name: call.tool_name ?? '',
    arguments: call.tool_args ?? null,
    result: result?.tool_result ?? null,
    error,
    status: result === undefined ? 'PENDING' : error === null ? 'SUCCESS' : 'ERROR',
  };
}
