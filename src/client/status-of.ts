/** How a workflow stands, for activities that have no conversation to ask. */
import { Client, WorkflowNotFoundError, type ConnectionLike } from '@temporalio/client';

export function createStatusOf(connection: ConnectionLike, namespace: string): (workflowId: string) => Promise<string> {
  const client = new Client({ connection, namespace });
  return async (workflowId) => {
    try {
      return (await client.workflow.getHandle(workflowId).describe()).status.name;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'NOT_FOUND';
      throw error;
    }
  };
}
