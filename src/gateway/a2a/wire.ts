/** Objects of A2A 1.0 as they are on the wire (JSON), as far as they are made here. */
import type { JsonValue } from '../../records/message.js';

export type State =
  | 'TASK_STATE_SUBMITTED'
  | 'TASK_STATE_WORKING'
  | 'TASK_STATE_INPUT_REQUIRED'
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_CANCELED'
  | 'TASK_STATE_REJECTED';

export type Part = { readonly text: string } | { readonly data: JsonValue };

export interface Message {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId?: string;
  readonly role: 'ROLE_USER' | 'ROLE_AGENT';
  readonly parts: readonly Part[];
}

export interface Status {
  readonly state: State;
  readonly message?: Message;
  readonly timestamp?: string;
}

export interface Artifact {
  readonly artifactId: string;
  readonly name: string;
  readonly parts: readonly Part[];
  readonly metadata?: Readonly<Record<string, JsonValue>>;
}

export interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly status: Status;
  readonly artifacts: readonly Artifact[];
  readonly history: readonly Message[];
  readonly metadata?: Readonly<Record<string, JsonValue>>;
}

interface OfTask {
  readonly taskId: string;
  readonly contextId: string;
}

export type Update =
  | { readonly task: Task }
  | { readonly message: Message }
  | { readonly statusUpdate: OfTask & { readonly status: Status; readonly metadata?: Readonly<Record<string, JsonValue>> } }
  | { readonly artifactUpdate: OfTask & { readonly artifact: Artifact; readonly append: boolean; readonly lastChunk: boolean } };
