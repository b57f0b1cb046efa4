/** `perdura schedule`: conversations that begin, or get a message, at times that a person has named; Temporal keeps them. */
import { Option } from 'commander';
import type { ScheduleOptions } from '../../client/schedules.js';
import { findConversation } from '../args/find-conversation.js';
import { parseDuration, readText } from '../args/values.js';
import type { Answer, CommandRow } from '../session/command.js';
import { toTerminalLine } from '../terminal/terminal-text.js';

interface AddOptions {
  readonly cron?: readonly string[];
  readonly every?: number;
  readonly timeZone?: string;
  readonly overlap?: keyof typeof OVERLAPS;
  readonly catchUp?: number;
  readonly agent?: string;
  readonly scope?: string;
  readonly model?: string;
  readonly into?: string;
}

const OVERLAPS = {
  'allow-all': 'ALLOW_ALL',
  skip: 'SKIP',
  'buffer-one': 'BUFFER_ONE',
  'buffer-all': 'BUFFER_ALL',
  'cancel-other': 'CANCEL_OTHER',
  'terminate-other': 'TERMINATE_OTHER',
} as const satisfies Readonly<Record<string, ScheduleOptions['overlap']>>;

const SCHEDULE_ID = ['<schedule>', 'its id'] as const;

export const SCHEDULE: readonly CommandRow[] = [
  {
    name: 'schedule add',
    description: 'begin a conversation, or send to one, at certain times',
    args: [SCHEDULE_ID, ['<message>', 'what is sent then; - for stdin']],
    options: [
      ['--cron <times>', 'due as cron writes it, such as "0 9 * * 1-5"; several times for several', addTo],
      ['--every <duration>', 'due every so often, such as 30m', parseDuration],
      ['--time-zone <zone>', 'of IANA, for --cron (default: UTC)'],
      new Option('--overlap <policy>', 'when what was started before still runs (default: allow-all)').choices(Object.keys(OVERLAPS)),
      ['--catch-up <duration>', 'do what was missed, if it is no older (default: 1h)', parseDuration],
      ['--agent <name>', 'of each new conversation (default: "default")'],
      ['--scope <name>', "its long-term memory (default: the agent's)"],
      ['--model <provider/model>', "in place of the agent's model"],
      new Option('--into <conversation>', 'send to this one, which runs, in place of a new one').conflicts(['agent', 'scope', 'model']),
    ],
    help: `Each new conversation is named after the schedule and the time at which it was due, as SCHEDULE-2026-11-30T09:00:00Z, and runs until it is
closed. The id of the message is SCHEDULE@2026-11-30T09:00:00Z: a due time is one message, however often Temporal starts it.`,
    async run(frame, id: string, given: string, options: AddOptions): Promise<Answer> {
      const { cron, every, timeZone, overlap, catchUp, into, agent, scope, model } = options;
      const message = await readText(frame.surroundings, given);
      const session = await frame.open({ needsWorker: true });
      const target = into === undefined ? {} : { into: await findConversation(session, into) };
      await session.client.addSchedule(id, {
        ...(cron && { cron }),
        ...(every !== undefined && { everyMs: every }),
        ...(timeZone !== undefined && { timeZone }),
        ...(overlap !== undefined && { overlap: OVERLAPS[overlap] }),
        ...(catchUp !== undefined && { catchUpMs: catchUp }),
        start: {
          ...(agent !== undefined && { agent }),
          ...(scope !== undefined && { scope }),
          ...(model !== undefined && { model }),
          ...target,
          message,
        },
      });
      return { data: { id }, say: `schedule ${id} is made`, temporal: ['schedule', 'describe', '-s', id] };
    },
  },
  {
    name: 'schedule list',
    description: 'schedules, and when each is due next',
    async run(frame): Promise<Answer> {
      const { client } = await frame.open();
      const schedules = await client.schedules();
      return {
        data: { schedules },
        text: schedules
          .map(({ id, isPaused, note, into, nextAt }) => {
            const next = nextAt === null ? 'never again' : `next ${nextAt.toISOString()}`;
            const when = isPaused ? `paused${note === null ? '' : ` (${toTerminalLine(note, 80)})`}` : next;
            return `${toTerminalLine(id, 64)}  ${when}  ${into === null ? 'begins a conversation' : `into ${toTerminalLine(into, 90)}`}\n`;
          })
          .join(''),
        ...(schedules.length === 0 && { notes: ['no schedule begins conversations here'] }),
        temporal: ['schedule', 'list'],
      };
    },
  },
  {
    name: 'schedule pause',
    description: 'hold a schedule; with --off, let it go on',
    args: [SCHEDULE_ID],
    options: [
      ['--off', 'let it go on'],
      ['--note <text>', 'why, for those who list it'],
    ],
    async run(frame, id: string, { off = false, note }: { readonly off?: boolean; readonly note?: string }): Promise<Answer> {
      const { client } = await frame.open();
      await client.pauseSchedule(id, { isPaused: !off, ...(note !== undefined && { note }) });
      const words = ['schedule', 'toggle', '-s', id, off ? '--unpause' : '--pause'];
      return { data: { id, isPaused: !off }, say: `schedule ${id} ${off ? 'goes on' : 'is paused'}`, temporal: words };
    },
  },
  {
    name: 'schedule delete',
    description: 'delete a schedule; its conversations stay',
    args: [SCHEDULE_ID],
    async run(frame, id: string): Promise<Answer> {
      const { client } = await frame.open();
      await client.deleteSchedule(id);
      return { data: { id }, say: `schedule ${id} is deleted`, temporal: ['schedule', 'delete', '-s', id] };
    },
  },
];

function addTo(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
