/** `perdura debug watch`: one line for each live event, over lost connections, until the conversation ends or Ctrl+C. The page draws them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PendingActivity } from '../../client.js';
import type { FeedEvent, Status } from '../../conversation/protocol/contract.js';
import { errorMessage } from '../../platform/errors.js';
import { findConversation } from '../args/find-conversation.js';
import { CONVERSATION, type CommandRow, type CommandSession } from '../session/command.js';
import { temporalCommand } from '../session/connect.js';
import { withTimeoutFallback } from '../session/with-progress.js';
import { EXIT, toExitCode } from '../terminal/exit.js';
import { toTerminalJson, toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { formatDuration, formatTime, formatUsage } from '../views/quantities.js';

const LOOK_MS = 1000;

export const WATCH: readonly CommandRow[] = [
  {
    name: 'debug watch',
    description: 'print what happens in a conversation as it happens; -o json: an event a line',
    args: [CONVERSATION],
    options: [['--from-start', 'begin with the oldest event that is kept']],
    async run(frame, given: string, { fromStart }: { readonly fromStart?: boolean }): Promise<number> {
      const session = await frame.open({ needsWorker: true, whenInterrupted: 'stopped watching; the conversation goes on' });
      const { output, globals, temporal, client } = session;
      const id = await findConversation(session, given);
      const isText = globals.output === 'text';
      const ended = new AbortController();
      const stop = AbortSignal.any([session.signal, ended.signal]);
      if (isText) output.note(`watching ${id}; Ctrl+C ends that`);
      const looking = look(session, id, isText, stop);
      // Nothing more comes once it has ended: what is on its way is let in, then the feed is left.
      void looking.then(() => setTimeout(() => ended.abort(), 500));
      const describe = createEventLines();
      await read(session, id, fromStart === true ? '0' : '$', stop, (cursor, event) => {
        const at = Date.now();
        if (!isText) return output.line(toTerminalJson({ cursor, at, event }));
        const line = describe(event);
        if (line) output.draw([{ text: `${formatTime(at, 'iso', at)}  `, style: 'dim' }, ...line]);
      });
      await looking;
      session.signal.throwIfAborted();
      const { state } = await client.describe(id);
      output.note(`${id} has ended (${state})`);
      if (isText) output.explain(temporalCommand(temporal, ['workflow', 'show', '-w', id, '--follow']));
      return EXIT.ok;
    },
  },
];

/** Goes on after the last event that it had, however often the store or Temporal goes away. */
async function read(
  { client, output }: CommandSession,
  id: string,
  first: string,
  signal: AbortSignal,
  onEvent: (cursor: string, event: FeedEvent) => void,
): Promise<void> {
  let after = first;
  for (let isAway = false; !signal.aborted;) {
    try {
      for await (const { cursor, event } of client.watch(id, { after, signal })) {
        if (isAway) output.note('connected again');
        isAway = false;
        after = cursor;
        onEvent(cursor, event);
      }
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (toExitCode(error) !== EXIT.unreachable) throw error;
      if (!isAway) output.problem(`connection lost (${errorMessage(error)}); trying again`);
      isAway = true;
    }
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** What the feed does not have: retries of activities, how it is stepped, and that the conversation has ended. */
async function look({ client, output }: CommandSession, id: string, isText: boolean, signal: AbortSignal): Promise<void> {
  const toNews = createLookNews();
  while (!signal.aborted) {
    const description = await client.describe(id).catch(() => undefined);
    if (description !== undefined && description.state !== 'running') return;
    if (isText) {
      const status = await withTimeoutFallback(client.status(id), undefined, LOOK_MS).catch(() => undefined);
      const news = toNews(description?.pendingActivities ?? [], status);
      for (const text of news) output.draw([{ text: toTerminalLine(text, 300), style: 'yellow' }]);
    }
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** What is new since the look before; the first status that is not automatic is news too. */
export function createLookNews(): (activities: readonly PendingActivity[], status: ControlView | undefined) => readonly string[] {
  let retries: readonly string[] = [];
  let control = AUTO;
  return (activities, status) => {
    const [retriesBefore, controlBefore] = [retries, control];
    retries = activities.flatMap(describeRetry);
    if (status !== undefined) control = describeControl(status);
    return [...retries.filter((text) => !retriesBefore.includes(text)), ...(control === controlBefore ? [] : [control])];
  };
}

function describeRetry({ type, attempt, lastFailure }: PendingActivity): string[] {
  return attempt < 2 ? [] : [`${type}, attempt ${attempt}${lastFailure === null ? '' : `: ${lastFailure}`}`];
}

const AUTO = 'auto · it runs by itself';

type ControlView = Pick<Status, 'mode' | 'stepLock' | 'pausedBy' | 'nextStep'>;

function describeControl({ mode, stepLock, pausedBy, nextStep }: ControlView): string {
  if (mode === 'auto') return AUTO;
  if (stepLock !== null) return `stepping · ${stepLock} runs`;
  const stopped = pausedBy === null ? '' : ` · stopped by ${pausedBy}`;
  return `stepping${stopped} · next: ${nextStep ?? 'nothing, it waits for a message'}`;
}

/** A line for each event; words of a model are one line for each call, when the first of them comes. */
export function createEventLines(): (event: FeedEvent) => StyledLine | undefined {
  let call: string | undefined;
  const line = (turn: string, what: string, text: string, style?: StyledSpan['style']): StyledLine => [
    { text: `${turn}  ` },
    { text: what, style },
    { text: `  ${toTerminalLine(text, 300)}` },
  ];
  return (event) => {
    switch (event.kind) {
      case 'session':
        return [{ text: `session ${event.session} begins`, style: 'bold' }];
      case 'resync':
        return [{ text: '(a part was missed)', style: 'yellow' }];
      case 'message':
        return line(event.turn, '›', event.preview, 'bold');
      case 'thinking':
      case 'text':
        if (event.call === call) return undefined;
        call = event.call;
        return line(event.turn, 'model', event.kind === 'text' ? 'writes' : 'thinks');
      case 'reset':
        return line(event.turn, 'model', 'starts again: the attempt before was cut off', 'yellow');
      case 'tool-started':
        return line(event.turn, `→ ${event.name}`, event.input, 'cyan');
      case 'tool-finished': {
        const took = typeof event.ms === 'number' ? `${formatDuration(event.ms)} ` : '';
        return line(event.turn, `← ${event.name}`, `${took}${event.outcome} ${event.preview}`, event.outcome === 'ok' ? 'green' : 'red');
      }
      case 'fallback':
        return line(event.turn, 'model', `${event.model} is asked in place of ${event.insteadOf}: ${event.for}`, 'yellow');
      case 'waiting':
        return line(event.turn, 'waiting', `${event.for}; until ${new Date(event.until).toISOString()}`, 'yellow');
      case 'asked':
        return line(event.turn, event.what, `${event.name} ${event.target}; until ${new Date(event.until).toISOString()}`, 'yellow');
      case 'decided':
        return line(event.turn, event.decision, event.name, event.decision === 'approve' || event.decision === 'answer' ? 'green' : 'red');
      case 'paused':
        return line(event.turn, 'stopped', `before ${event.why}`, 'yellow');
      case 'compacted':
        return line(event.turn, 'compacted', `${event.tokensBefore} → ${event.tokensAfter} tokens`, 'dim');
      case 'turn-finished': {
        const { stopReason, usage, error, text } = event.result;
        const style = stopReason === 'end' ? 'green' : stopReason === 'failed' ? 'red' : 'yellow';
        return line(event.turn, stopReason, `${formatUsage(usage)} · ${error?.message ?? text}`, style);
      }
      default:
        return ignoreNewer(event);
    }
  };
}

/** A worker of a later version may report things that this one does not know. */
function ignoreNewer(_event: never): undefined {
  return undefined;
}
