/** `perdura memory care` and `schedule`: a scope's memory is put in order, now or again and again. */
import { memoryCareId, memoryWorkflowId } from '../../conversation/protocol/memory-contract.js';
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { formatCount, formatDuration, formatTime } from '../views/quantities.js';
import { tell, withMemory, type ScopeWanted } from '../session/with-memory.js';

export interface CareWanted extends ScopeWanted {
  readonly agent?: string;
}

export function careForMemory(context: CliContext, wanted: CareWanted): Promise<number> {
  return withMemory(context, wanted, { needsWorker: true }, async (desk) => {
    const { memory, withSlowNotice } = desk;
    const { scope } = memory;
    const cared = await withSlowNotice(`taking care of the memory of ${scope}`, memory.care(wanted.agent));
    const { kind, bytesBefore, bytesAfter, facts } = cared;
    const merged = facts.length === 0 ? '' : `; ${formatCount(facts.length)} facts that another one says too are gone`;
    const done = `the memory of ${scope} is in order: ${formatCount(bytesBefore)} → ${formatCount(bytesAfter)} bytes${merged}`;
    const input = wanted.agent === undefined ? {} : { agent: wanted.agent };
    tell(desk, {
      data: { scope, ...cared },
      lines: [[{ text: kind === 'cared' ? done : `there is nothing to do in the memory of ${scope}` }]],
      temporal: ['workflow', 'update', 'execute', '--name', 'care', '-w', memoryWorkflowId(scope), '--input', JSON.stringify(input)],
    });
    return EXIT.ok;
  });
}

export interface ScheduleWanted extends CareWanted {
  /** Milliseconds. */
  readonly every?: number;
  readonly off?: boolean;
}

export function scheduleCare(context: CliContext, wanted: ScheduleWanted): Promise<number> {
  return withMemory(context, wanted, {}, async (desk) => {
    const { memory, look, withSlowNotice } = desk;
    const { scope } = memory;
    const { every, off, agent } = wanted;
    if (off === true) await withSlowNotice(`ending the schedule of ${scope}`, memory.schedule(null));
    else if (every !== undefined) await withSlowNotice(`making a schedule for ${scope}`, memory.schedule(`${every}ms`, agent));
    const next = await withSlowNotice(`asking for the schedule of ${scope}`, memory.nextCare());
    const often = every === undefined ? '' : ` every ${formatDuration(every)}`;
    const told =
      next === undefined
        ? `no care of the memory of ${scope} is scheduled${off === true ? ' any more' : '; --every 24h does that'}`
        : `the memory of ${scope} is taken care of${often}, next ${formatTime(next.getTime(), look.timeFormat, look.now)}`;
    tell(desk, {
      data: { scope, next: next ?? null, ...(every === undefined ? {} : { everyMs: every }) },
      lines: [[{ text: told }]],
      temporal: next === undefined ? ['schedule', 'list'] : ['schedule', 'describe', '-s', memoryCareId(scope)],
    });
    return EXIT.ok;
  });
}
