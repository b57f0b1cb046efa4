/** Every line that an activity logs says of which conversation and turn it is. */
import type { ActivityInterceptorsFactory } from '@temporalio/worker';

export const sayTurn: ActivityInterceptorsFactory = ({ info }) => {
  let turn: string | undefined;
  return {
    inbound: {
      execute(input, next) {
        turn = turnOf(input.args[0]);
        return next(input);
      },
    },
    outbound: {
      getLogAttributes: (attributes, next) => next({ ...attributes, conversation: info.workflowExecution?.workflowId, turn }),
    },
  };
};

/** A store step has no turn of its own: it writes messages of turns. */
function turnOf(input: unknown): string | undefined {
  const { turn, write } = (input ?? {}) as { readonly turn?: string; readonly write?: { readonly messages?: readonly { turn: string }[] } };
  return turn ?? write?.messages?.[0]?.turn;
}
