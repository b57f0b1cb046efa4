/** One thing that is said to a workflow, written by hand down to the bytes: as it is drawn, kept in the corpus, and sent. */
import type { Client } from '@temporalio/client';
import { temporal as proto } from '@temporalio/proto';
import { timeoutSignal } from '../../src/platform/promises.js';

export interface Said {
  readonly to: 'conversation' | 'memory';
  /** `start` starts another workflow; its `name` is the workflow's type. */
  readonly kind: 'signal' | 'update' | 'query' | 'start';
  readonly name: string;
  /** Absent: no argument at all. */
  readonly payloads?: readonly Written[];
}

export interface Written {
  /** Default: `json/plain`. Null: no metadata. */
  readonly encoding?: string | null;
  /** Pieces, each with how often it stands there. What stands between `@@` is replaced by what the conversation is called. */
  readonly data: string | readonly (readonly [piece: string, times: number])[];
}

/** Of the conversation and the memory that are spoken to. */
export interface Names {
  readonly id: string;
  readonly child: string;
  readonly life: string;
  readonly scope: string;
  readonly queue: string;
  /** What its sub-agent was given; the attacker has read the history. */
  readonly capability: string;
}

interface Payload {
  readonly metadata?: Record<string, Uint8Array>;
  readonly data: Uint8Array;
}

const AT_MOST_MS = 5_000;
const { UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED: ACCEPTED } = proto.api.enums.v1.UpdateWorkflowExecutionLifecycleStage;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
let started = 0;

/** What came of it, in words; what is refused is as good as what is done. */
export async function tell(temporal: Client, { to, kind, name, payloads: written }: Said, names: Names): Promise<string> {
  const service = temporal.workflowService;
  const workflowExecution = { workflowId: to === 'memory' ? `memory:${names.scope}` : names.id };
  const payloads = written?.map((one) => toPayload(one, names));
  const args = payloads ? { payloads } : undefined;
  const namespace = 'default';
  const call = async (): Promise<unknown> => {
    switch (kind) {
      case 'signal':
        return service.signalWorkflowExecution({ namespace, workflowExecution, signalName: name, input: args });
      case 'update':
        return service.updateWorkflowExecution({
          namespace,
          workflowExecution,
          waitPolicy: { lifecycleStage: ACCEPTED },
          request: { meta: { updateId: `fuzz-${++started}`, identity: 'fuzz' }, input: { name, args } },
        });
      case 'query':
        return service.queryWorkflow({ namespace, execution: workflowExecution, query: { queryType: name, queryArgs: args } });
      case 'start': {
        started += 1;
        const workflowId = to === 'memory' ? `memory:${names.scope}:${started}` : `${names.id}-${started}`;
        const taskQueue = { name: names.queue };
        const requestId = `fuzz-${started}`;
        return service.startWorkflowExecution({ namespace, workflowId, workflowType: { name }, taskQueue, input: args, requestId });
      }
    }
  };
  return temporal
    .withAbortSignal(timeoutSignal(AT_MOST_MS), call)
    .then(() => 'done')
    .catch((error: Error) => error.message.slice(0, 200));
}

function toPayload({ encoding = 'json/plain', data }: Written, names: Names): Payload {
  const text = typeof data === 'string' ? data : data.map(([piece, times]) => piece.repeat(times)).join('');
  const named = text.replace(/@@(id|child|life|scope|queue|capability)@@/g, (_, name: keyof Names) => names[name]);
  return { ...(encoding === null ? {} : { metadata: { encoding: bytes(encoding) } }), data: bytes(named) };
}
