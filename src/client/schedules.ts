/** Temporal Schedules that start conversations, or send to one that runs, at times that a person has named. */
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type Client,
  type ScheduleHandle,
  type ScheduleOverlapPolicy,
} from '@temporalio/client';
import { ID_PATTERN, type StartOptions } from '../conversation/protocol/contract.js';
import { WORKFLOW_TYPE } from '../workflows/messages.js';
import { ClientError, toClientError } from './errors.js';

/** When it is due, and what is started then. */
export interface ScheduleOptions {
  /** Times as cron writes them, in `timeZone`: `0 9 * * 1-5`. This, `everyMs`, or both. */
  readonly cron?: readonly string[];
  readonly everyMs?: number;
  /** Of IANA, such as `Europe/Berlin`; default: UTC. */
  readonly timeZone?: string;
  /**
   * What becomes of a due time while what was started before still runs. A conversation runs until it is closed, so the default is
   * `ALLOW_ALL`; all others are Temporal's.
   */
  readonly overlap?: ScheduleOverlapPolicy;
  /** Due times that Temporal could not keep are caught up with, where they are no older; default: one hour. */
  readonly catchUpMs?: number;
  /** With its first `message`; `into` names a conversation that gets it, in place of a new one. */
  readonly start: StartOptions;
}

/** A schedule, as Temporal has it now. */
export interface Scheduled {
  readonly id: string;
  readonly isPaused: boolean;
  readonly note: string | null;
  /** The conversation that it sends to; null: it starts one each time. */
  readonly into: string | null;
  /** The next one; null: none. */
  readonly nextAt: Date | null;
  readonly lastAt: Date | null;
}

/** The namespace's schedules that start conversations; others are not touched. */
export interface SchedulesClient {
  /** Makes a schedule; conversations that it starts are named `ID-<due>`. Throws `ClientError` `invalid` where there is one of that id. */
  addSchedule(id: string, options: ScheduleOptions): Promise<void>;
  /** Those that start conversations, up to 1,000. */
  schedules(): Promise<Scheduled[]>;
  /** `isPaused: false`: it goes on. */
  pauseSchedule(id: string, options?: { isPaused?: boolean; note?: string }): Promise<void>;
  /** Takes no conversation with it. */
  deleteSchedule(id: string): Promise<void>;
}

const CATCH_UP_MS = 3_600_000;
const MAX_LISTED = 1_000;

interface SchedulesAccess {
  readonly client: Client;
  readonly startOptions: (
    id: string,
    options: StartOptions,
  ) => { taskQueue: string; args: StartOptions[]; memo: Record<string, unknown>; staticSummary: string };
}

export function createSchedules({ client, startOptions }: SchedulesAccess): SchedulesClient {
  const change = async (id: string, attempt: string, act: (handle: ScheduleHandle) => Promise<unknown>): Promise<void> => {
    const missing = (options?: ErrorOptions): ClientError =>
      new ClientError('not-found', `${attempt}: there is no such schedule; \`perdura schedule list\` shows all`, options);
    try {
      const handle = client.schedule.getHandle(id);
      const { action } = await handle.describe();
      if (action.workflowType !== WORKFLOW_TYPE) throw missing();
      await act(handle);
    } catch (error) {
      throw error instanceof ScheduleNotFoundError ? missing({ cause: error }) : toClientError(error, attempt);
    }
  };
  return {
    async addSchedule(id, { cron = [], everyMs, timeZone, overlap = 'ALLOW_ALL', catchUpMs = CATCH_UP_MS, start }) {
      const attempt = `cannot make the schedule ${id}`;
      if (!ID_PATTERN.test(id)) throw new ClientError('invalid', `${attempt}: its id must match ${ID_PATTERN.source}`);
      if (cron.length === 0 && everyMs === undefined)
        throw new ClientError('invalid', `${attempt}: say when it is due, as cron writes it or as an interval`);
      if (start.message === undefined) throw new ClientError('invalid', `${attempt}: say what it sends (start.message)`);
      const { taskQueue, args, memo, staticSummary } = startOptions(id, start);
      try {
        await client.schedule.create({
          scheduleId: id,
          spec: {
            ...(cron.length > 0 && { cronExpressions: [...cron] }),
            ...(everyMs !== undefined && { intervals: [{ every: everyMs }] }),
            ...(timeZone !== undefined && { timezone: timeZone }),
          },
          action: { type: 'startWorkflow', workflowType: WORKFLOW_TYPE, workflowId: id, ...{ taskQueue, args, memo, staticSummary } },
          policies: { overlap, catchupWindow: catchUpMs },
          memo: { into: start.into ?? null },
        });
      } catch (error) {
        if (!(error instanceof ScheduleAlreadyRunning)) throw toClientError(error, attempt);
        throw new ClientError('invalid', `${attempt}: there is one of that id; delete it first (\`perdura schedule delete ${id}\`)`);
      }
    },
    async schedules() {
      const found: Scheduled[] = [];
      try {
        for await (const { scheduleId, action, memo, info, state } of client.schedule.list()) {
          if (action?.type !== 'startWorkflow' || action.workflowType !== WORKFLOW_TYPE) continue;
          const into = memo?.['into'];
          found.push({
            id: scheduleId,
            isPaused: state.paused,
            note: state.note || null,
            into: typeof into === 'string' ? into : null,
            nextAt: info.nextActionTimes[0] ?? null,
            lastAt: info.recentActions.at(-1)?.scheduledAt ?? null,
          });
          if (found.length === MAX_LISTED) break;
        }
      } catch (error) {
        throw toClientError(error, 'cannot list schedules');
      }
      return found;
    },
    pauseSchedule: (id, { isPaused = true, note } = {}) =>
      change(id, `cannot ${isPaused ? 'pause' : 'resume'} the schedule ${id}`, (handle) =>
        isPaused ? handle.pause(note) : handle.unpause(note),
      ),
    deleteSchedule: (id) => change(id, `cannot delete the schedule ${id}`, (handle) => handle.delete()),
  };
}
