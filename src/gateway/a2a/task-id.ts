/**
 * Ids of tasks. A task is a turn; its id has in it the context, as the client names it, and the turn, so that any gateway finds both, and
 * the client reads the context that it has chosen.
 */
import { turnId } from '../../records/identity.js';
import type { TurnName } from '../core/turn-status.js';
import { toConversationId } from '../core/read-body.js';

export interface TaskName extends TurnName {
  readonly task: string;
  /** The conversation, as the client names it. */
  readonly context: string;
}

export const MAX_CONTEXT = 256;
const MAX_TASK_ID = 1_500;
const NAME = /^([^]{1,256}):turn_(\d{1,15})$/;

export function taskName(context: string, turn: string): TaskName {
  const task = Buffer.from(`${context}:${turn}`).toString('base64url');
  return { task, context, conversation: toConversationId(context), turn };
}

/** Undefined for what no gateway can have given out. */
export function readTaskId(task: string): TaskName | undefined {
  if (task.length > MAX_TASK_ID) return undefined;
  const [, context, number] = NAME.exec(Buffer.from(task, 'base64url').toString()) ?? [];
  if (context === undefined) return undefined;
  const name = taskName(context, turnId(Number(number)));
  return name.task === task ? name : undefined;
}
