/** How a conversation is stepped, and what waits in its queue, in words. */
import type { QueuedEvent } from '../../conversation/protocol/contract.js';
import type { TimeFormat } from '../args/global-options.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { formatBytes, formatCount, formatTime } from './quantities.js';
import type { Breakpoints, StepResult, SubAgent } from '../../conversation/protocol/stepping.js';

/** Whatever of it an answer has; `running` and the breakpoints come from a worker of this version. */
export interface ControlWords {
  readonly mode: string;
  readonly stepLock: string | null;
  readonly running?: string | null;
  readonly pausedBy: string | null;
  readonly breakpoints?: Breakpoints;
  readonly next: string | null;
  readonly subAgents?: readonly SubAgent[];
}

/** `perdura debug mode`; what it goes through to its sub-agents stands under it. */
export function renderControl({ mode, stepLock, running, pausedBy, breakpoints = {}, next, subAgents = [] }: ControlWords): StyledLine[] {
  const fact = (name: string, text: string, style?: 'yellow' | 'green'): StyledLine => [
    { text: name.padEnd(12), style: 'dim' },
    { text: toTerminalLine(text, 400), style },
  ];
  return [
    fact(
      'mode',
      mode === 'stepping' ? 'stepping: each thing waits for a step' : 'auto: it goes on by itself',
      mode === 'stepping' ? 'yellow' : 'green',
    ),
    ...(pausedBy === null ? [] : [fact('stopped by', pausedBy, 'yellow')]),
    ...(stepLock === null ? [] : [fact('step', `${stepLock} is running${running ? `: ${running}` : ''}`)]),
    fact('breakpoints', describeBreakpoints(breakpoints)),
    ...(mode === 'stepping' ? [fact('next', next ?? 'nothing: it waits for what is under way, or for a message')] : []),
    ...renderTree(subAgents),
  ];
}

/** Sub-agents at work, each under the one that started it, and which of them hold. */
export function renderTree(subAgents: readonly SubAgent[]): StyledLine[] {
  const all = new Set(subAgents.map(({ conversation }) => conversation));
  return subAgents.map((one): StyledLine => {
    const above = [...all].filter((other) => one.conversation.startsWith(`${other}:`)).length;
    return [
      { text: '  '.repeat(above) + '└ ', style: 'dim' },
      { text: toTerminalLine(one.conversation, 200), style: 'cyan' },
      { text: `  ${toTerminalLine(describeStanding(one), 300)}`, style: one.next === null ? 'dim' : 'yellow' },
    ];
  });
}

function describeStanding({ mode, next, pausedBy }: SubAgent): string {
  const paused = pausedBy === null ? '' : ` (stopped by ${pausedBy})`;
  if (next !== null) return `holds: ${next}${paused}`;
  return mode === 'auto' ? 'goes on by itself' : `stepping: waits for what is under way, or for a person${paused}`;
}

export function describeBreakpoints({ tools = [], events = [], onError, costUsd }: Breakpoints): string {
  const parts = [
    ...tools.map((name) => `before tool ${name}`),
    ...events.map((type) => `before event ${type}`),
    ...(onError === true ? ['on an error'] : []),
    ...(costUsd === undefined ? [] : [`at a cost of $${costUsd}`]),
  ];
  return parts.length === 0 ? 'none' : parts.join(', ');
}

/** What a step has done, and what would be next. */
export function renderStep(result: StepResult): StyledLine[] {
  const { did, words, dispatchResult, queuedEventCount, next } = result;
  const style = did === 'nothing' ? 'dim' : 'cyan';
  return [
    [{ text: did.padEnd(12), style }, { text: toTerminalLine(words, 400) }],
    ...(dispatchResult === null ? [] : [renderChanges(dispatchResult)]),
    ...(next === null || did === 'nothing'
      ? []
      : [[{ text: 'next'.padEnd(12), style: 'dim' }, { text: toTerminalLine(next, 400) }] as StyledLine]),
    ...(queuedEventCount === 0
      ? []
      : [[{ text: 'queue'.padEnd(12), style: 'dim' }, { text: `${formatCount(queuedEventCount)} waiting` }] as StyledLine]),
  ];
}

function renderChanges({ addedChunks, removedChunkIds, contextTokens }: NonNullable<StepResult['dispatchResult']>): StyledLine {
  const { before, after } = contextTokens;
  const some = (ids: readonly string[]): string =>
    ids.length > 4 ? `${ids.slice(0, 3).join(', ')} and ${ids.length - 3} more` : ids.join(', ');
  const parts = [
    ...(addedChunks.length === 0 ? [] : [`+ ${some(addedChunks)}`]),
    ...(removedChunkIds.length === 0 ? [] : [`− ${some(removedChunkIds)}`]),
    before === after ? `${formatCount(after)} tokens` : `${formatCount(before)} → ${formatCount(after)} tokens`,
  ];
  return [
    { text: 'context'.padEnd(12), style: 'dim' },
    { text: parts.join(' · '), style: 'dim' },
  ];
}

export function describeQueued({ event }: QueuedEvent): string {
  switch (event.kind) {
    case 'message':
      return `${event.turnId === 'turn_0000' ? '' : `${event.turnId} `}message of ${formatBytes(event.bytes)}${event.delivery === 'queue' ? '' : ` (${event.delivery})`}`;
    case 'reset':
      return 'reset: clears the session';
    case 'app':
      return `event ${toTerminalLine(event.type, 64)}`;
    case 'more':
      return `${formatCount(event.count)} more, further back in the store`;
  }
}

export function renderQueue(queue: readonly QueuedEvent[], timeFormat: TimeFormat, now: number): StyledLine[] {
  if (queue.length === 0) return [[{ text: 'the queue is empty', style: 'dim' }]];
  return queue.map((queued): StyledLine => [
    { text: queued.id.padEnd(12), style: 'cyan' },
    { text: ` ${describeQueued(queued)}` },
    { text: `  ${formatTime(queued.queuedAt, timeFormat, now)}`, style: 'dim' },
  ]);
}
