/**
 * Our connection to Temporal. It takes histories of any size: one event can be larger than the 4 MiB of gRPC's default. And its
 * calls all end when it is closed. Temporal's client says a failed call again after a pause, and what it
 * says on a closed channel throws out of that pause's timer, where it cannot be caught: such a call ends here instead.
 */
import {
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  type ConnectionOptions,
  type GrpcRetryOptions,
} from '@temporalio/client';

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];
type Call = ReturnType<Interceptor>;

const CANCELLED = 1;
const ANY_SIZE = { 'grpc.max_receive_message_length': 256 * 1024 * 1024 };

export async function openConnection(options: ConnectionOptions, usual: GrpcRetryOptions = defaultGrpcRetryOptions()): Promise<Connection> {
  let isClosed = false;
  const retry = makeGrpcRetryInterceptor({
    ...usual,
    retryableDecider: (attempt, status) => !isClosed && usual.retryableDecider(attempt, status),
  });
  // Within the one that says it again: each attempt passes here.
  const gate: Interceptor = (options, next) => toCall(isClosed ? ENDED : next(options));
  const connection = Connection.lazy({ ...options, channelArgs: ANY_SIZE, interceptors: [retry, gate] });
  const close = connection.close.bind(connection);
  connection.close = async () => {
    isClosed = true;
    await close();
  };
  await connection.ensureConnected().catch(async (error: unknown) => {
    // Else it goes on trying for as long as the process lives.
    await connection.close();
    throw error;
  });
  return connection;
}

/** What its caller uses of a call. */
type CallInUse = ReturnType<Parameters<Interceptor>[1]>;

const ignore = (): void => undefined;

const ENDED: CallInUse = {
  start: (metadata, listener) => listener?.onReceiveStatus?.({ code: CANCELLED, details: 'the connection was closed', metadata }),
  sendMessage: ignore,
  sendMessageWithContext: ignore,
  halfClose: ignore,
  startRead: ignore,
  cancelWithStatus: ignore,
  getPeer: () => '',
  getAuthContext: () => null,
};

/** The type of an interceptor's answer is a class with private fields; what answers is whatever can be called. */
function toCall(call: CallInUse): Call {
  return call as Call;
}
