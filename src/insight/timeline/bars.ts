/** Bars of activities and sub-agents, from their events. */
import type { ModelStepInput, ModelStepResult } from '../../conversation/activity-io/effects.js';
import type { RunToolInput, ToolFinished } from '../../conversation/activity-io/tool-effects.js';
import type { Usage } from '../../records/message.js';
import { words } from './payloads.js';
import type { Lane, TimelineBar, UnderWay } from './shape.js';

export interface FoundBar {
  readonly bar: TimelineBar;
  /** Undefined: it is of no turn. */
  readonly turn: string | undefined;
  /** Of a model step: whether it came back with an answer. */
  readonly answered?: boolean;
  readonly asks?: readonly Asked[];
}

export interface Asked {
  readonly callId: string;
  readonly name: string;
  readonly what: 'approval' | 'question' | 'client-tool' | 'wait';
}

export interface Open {
  readonly name: string;
  readonly input: unknown;
  readonly at: number;
  readonly event: number;
  readonly activityId: string;
  started?: { readonly at: number; readonly attempt: number; readonly worker: string | null; readonly failure: string | null };
}

export interface End {
  readonly begun: string;
  readonly outcome: TimelineBar['outcome'];
  readonly failure: string | null;
  readonly output: unknown;
}

const LANE_OF: Readonly<Record<string, Lane>> = {
  'model-step': 'model',
  'run-tool': 'tool',
  compact: 'memory',
  truncate: 'memory',
  uncompact: 'memory',
  evict: 'memory',
  'ask-memory': 'memory',
  heal: 'healing',
  'look-after': 'healing',
};

export function toBar(
  { name, input, at, event, started }: Open,
  end: (End & { readonly at: number; readonly event: number }) | undefined,
  run: string,
  way?: UnderWay,
): FoundBar {
  const bar: TimelineBar = {
    id: `${run}/${event}`,
    lane: LANE_OF[name] ?? 'store',
    label: name,
    detail: '',
    from: at,
    to: end?.at ?? null,
    started: started?.at ?? null,
    attempt: started?.attempt ?? way?.attempt ?? 1,
    worker: started?.worker ?? null,
    outcome: end?.outcome ?? 'running',
    failure: end?.failure ?? started?.failure ?? way?.lastFailure ?? null,
    usage: null,
    model: null,
    callId: null,
    conversation: null,
    event,
    endEvent: end?.event ?? null,
    run,
  };
  switch (name) {
    case 'model-step':
      return modelBar(bar, input as Partial<ModelStepInput> | undefined, end?.output as ModelStepResult | undefined);
    case 'run-tool': {
      const { turn, name: tool, target, callId } = (input ?? {}) as Partial<RunToolInput>;
      const result = end?.output as Partial<ToolFinished> | undefined;
      const isBad = result?.outcome !== undefined && result.outcome !== 'ok';
      return {
        turn,
        bar: {
          ...bar,
          label: words(tool ?? name),
          detail: words(target ?? ''),
          callId: callId ?? null,
          ...(isBad && { outcome: 'failed' as const, failure: `the tool ended with: ${words(String(result.outcome))}` }),
        },
      };
    }
    default: {
      const output = end?.output as { readonly usage?: Usage } | undefined;
      return { turn: undefined, bar: { ...bar, usage: output?.usage ?? null } };
    }
  }
}

export function modelBar(bar: TimelineBar, input: Partial<ModelStepInput> | undefined, output: ModelStepResult | undefined): FoundBar {
  const common = { turn: input?.turn, bar: { ...bar, label: input?.call?.id.replace(/^.*\/m/, 'call ') ?? bar.label } };
  switch (output?.kind) {
    case 'answered': {
      const { model, usage, blocks, plans = [], stop } = output.answer;
      const calls = blocks.flatMap((block) => (block.kind === 'tool-call' ? [block] : []));
      return {
        ...common,
        answered: true,
        bar: {
          ...common.bar,
          model,
          usage,
          detail: calls.length === 0 ? words(stop) : words(`asks for ${calls.map(({ name }) => name).join(', ')}`),
        },
        asks: calls.flatMap(({ callId: id, name }, at): Asked[] => {
          const plan = plans[at];
          if (plan?.approval?.policy === 'ask') return [{ callId: id, name, what: 'approval' }];
          const kind = plan?.workflowAction?.kind;
          if (kind === 'ask-person') return [{ callId: id, name, what: 'question' }];
          if (kind === 'ask-client') return [{ callId: id, name, what: 'client-tool' }];
          return kind === 'wait-for' || kind === 'wait-until' ? [{ callId: id, name, what: 'wait' }] : [];
        }),
      };
    }
    case 'failed':
      return {
        ...common,
        answered: false,
        bar: { ...common.bar, outcome: 'failed', failure: words(`${output.failure.type}: ${output.failure.message}`) },
      };
    case 'deferred':
      return { ...common, answered: false, bar: { ...common.bar, detail: `not asked: ${words(output.reason)}` } };
    default:
      return common;
  }
}

export function childBar(
  { at, event, id, title }: { readonly at: number; readonly event: number; readonly id: string; readonly title: string },
  end: (Pick<End, 'outcome' | 'failure'> & { readonly at: number; readonly event: number }) | undefined,
  run: string,
): FoundBar {
  const [, of] = /:(turn_\d+):\d+$/.exec(id) ?? [];
  return {
    turn: of,
    bar: {
      id: `${run}/${event}`,
      lane: 'sub-agent',
      label: words(title || id),
      detail: '',
      from: at,
      to: end?.at ?? null,
      started: at,
      attempt: 1,
      worker: null,
      outcome: end?.outcome ?? 'running',
      failure: end?.failure ?? null,
      usage: null,
      model: null,
      callId: null,
      conversation: id,
      event,
      endEvent: end?.event ?? null,
      run,
    },
  };
}
