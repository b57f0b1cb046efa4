/** A conversation's context, how it is stepped, and what waits in its queue, as text. */
import type { CompactionOutcome, ContextIndex, QueuedEvent } from '../../conversation/protocol/contract.js';
import { countSlots } from '../../records/slots.js';
import { type StyledLine, toTerminalLine } from '../terminal/terminal-text.js';
import { formatQuantity, formatCount, formatBytes, formatTime } from './quantities.js';
import { renderTable, wrap, type Column, type Look } from './table.js';
import type { TimeFormat } from '../args/global-options.js';
import type { Breakpoints, StepResult, SubAgent } from '../../conversation/protocol/stepping.js';

interface Part {
  readonly name: string;
  readonly tokens: number;
}

export function renderContext(index: ContextIndex, look: Pick<Look, 'width' | 'measure'>): StyledLine[] {
  const { budget, compactsAt, total } = index;
  const facts = describeFacts(index).flatMap((fact) => wrap(fact, look.width ?? Infinity, look.measure));
  const dim = facts.map((text): StyledLine => [{ text, style: 'dim' }]);
  if (budget === 0) return [[{ text: 'how much fits is known once the first turn has begun', style: 'dim' }], ...dim];
  const columns: Column<Part>[] = [
    { title: 'PART', cell: ({ name }) => name, rank: 0 },
    { title: 'TOKENS', cell: ({ tokens }) => formatCount(tokens), align: 'right', rank: 1 },
    // Of what people set: beside all that a large model takes each part would be next to nothing.
    { title: 'SHARE', cell: ({ tokens }) => describeShare(tokens, compactsAt), align: 'right', rank: 2 },
  ];
  const rows: Part[] = [
    ...toParts(index),
    { name: 'in all', tokens: total },
    { name: 'compacted from', tokens: compactsAt },
    { name: 'fits', tokens: budget },
  ];
  return [...renderTable(rows, columns, look), ...dim];
}

function toParts({ chunks, compactsAt, total }: ContextIndex): Part[] {
  const sum = (kind: ContextIndex['chunks'][number]['kind']): number =>
    chunks.filter((chunk) => chunk.kind === kind).reduce((tokens, chunk) => tokens + chunk.tokens, 0);
  return [
    { name: 'system and tools', tokens: sum('SYSTEM') },
    { name: 'memory', tokens: sum('MEMORY') },
    { name: 'messages', tokens: sum('WORKING_FLOW') },
    { name: 'free', tokens: Math.max(0, compactsAt - total) },
  ];
}

/** Something is never shown as nothing. */
function describeShare(tokens: number, budget: number): string {
  const exact = (tokens / budget) * 100;
  return `${exact > 0 && exact < 1 ? '<1' : Math.round(exact)} %`;
}

function describeFacts(index: ContextIndex): string[] {
  const { epoch, compactions, canUndo, window, reported, tokenizer, tokenRatio, chunks, budget, assumedBudget } = index;
  const messages = chunks.reduce((sum, { slots = [] }) => sum + countSlots(slots), 0);
  return [
    `${formatQuantity(messages, 'message')} in epoch ${epoch}`,
    ...(assumedBudget === undefined
      ? []
      : [
          `the model has refused a prompt as too long: ${formatCount(budget)} tokens are its size now, and not ${formatCount(assumedBudget)}; ` +
            'another context.maxTokens in agent.json is tried anew',
        ]),
    ...(compactions === 0
      ? []
      : [`compacted ${compactions === 1 ? 'once' : `${compactions} times`}${canUndo ? '; the last one can be taken back' : ''}`]),
    ...(window ? describeWindow(window) : []),
    ...(reported === null ? [] : [`the last prompt as its provider counted it: ${formatCount(reported)} tokens`]),
    `${reported === null ? '' : 'what came since is '}${tokenizer === undefined ? `estimated by its scripts: ${describeRatio(tokenRatio)}` : `counted by ${tokenizer}`}`,
  ];
}

function describeRatio(ratio = 1): string {
  return ratio === 1 ? 'four Latin letters are a token' : `this model takes ${ratio.toFixed(2)} tokens for one of them`;
}

/** What a trim left, and what is to leave. */
function describeWindow({ consolidated, trimsFrom, trims, messages, unsummarized }: NonNullable<ContextIndex['window']>): string[] {
  const summarized = messages - unsummarized;
  const left = [
    ...(summarized === 0 ? [] : [`long-term memory's summary of ${formatCount(summarized)}`]),
    ...(unsummarized === 0 ? [] : [`shortened lines of ${formatCount(unsummarized)} that no model had summarized`]),
  ].join(', ');
  return [
    ...(trims === 0
      ? []
      : [
          `trimmed ${trims === 1 ? 'once' : `${trims} times`}: ${formatQuantity(messages, 'message')} left the prompt; its memory has ${left}`,
        ]),
    ...(consolidated === 0
      ? []
      : [
          `long-term memory has ${formatCount(consolidated)} of these: they leave ${trimsFrom === null ? 'once that makes the prompt smaller' : `when the prompt passes ${formatCount(trimsFrom)} tokens`}`,
        ]),
  ];
}

/** How a compaction or its undoing went, in words. */
export function describeOutcome(outcome: CompactionOutcome): string {
  switch (outcome.kind) {
    case 'compacted': {
      const { turns, method, tokensBefore, tokensAfter } = outcome;
      const by = method === 'rules' ? 'by rules, since the model gave no usable summary' : 'by the model';
      const sizes = `${formatCount(tokensBefore)} tokens of messages are ${formatCount(tokensAfter)} now`;
      return `${turns} ${turns === 1 ? 'turn is' : 'turns are'} memory now, summarized ${by}: ${sizes}`;
    }
    case 'cited': {
      const { messages, tokensBefore, tokensAfter } = outcome;
      const what = messages === 1 ? 'one long message is' : `${messages} long messages are`;
      return `${what} shown by beginning and end now: ${formatCount(tokensBefore)} tokens of messages are ${formatCount(tokensAfter)} now`;
    }
    case 'truncated':
      return `${outcome.entries} of the oldest messages are left out of the prompt: ${formatCount(outcome.tokensBefore)} tokens are ${formatCount(outcome.tokensAfter)} now`;
    case 'nothing-to-truncate':
      return 'there is nothing to leave out: the context is below the hard threshold';
    case 'undone':
      return 'the last compaction is taken back: the next request is what it would have been';
    case 'nothing-to-compact':
      return 'there is nothing to compact: the latest turns stay as they are';
    case 'nothing-to-undo':
      return 'there is no compaction to take back';
    case 'failed':
      return `the conversation is as it was: ${outcome.message}`;
  }
}

// How a conversation is stepped, and what waits in its queue, in words.

/** Whatever of it an answer has; `running` and the breakpoints come from a worker of this version. */
interface ControlWords {
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
