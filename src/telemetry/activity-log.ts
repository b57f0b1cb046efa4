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

/** `record` takes the messages of a turn, the others take the turn itself. */
function turnOf(input: unknown): string | undefined {
  const { turn, messages } = (input ?? {}) as { readonly turn?: string; readonly messages?: readonly { readonly turn: string }[] };
  return turn ?? messages?.[0]?.turn;
}
