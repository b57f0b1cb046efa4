/**
 * Our connection to Temporal, and the search attributes that its namespace must have. The connection takes histories of any size: one event
 * can be larger than the 4 MiB of gRPC's default. And its calls all end when it is closed. Temporal's client says a failed call again after
 * a pause, and what it says on a closed channel throws out of that pause's timer, where it cannot be caught: such a call ends here instead.
 */
import {
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  type ConnectionOptions,
  type GrpcRetryOptions,
  type OperatorService,
} from '@temporalio/client';
import { SearchAttributeType } from '@temporalio/common';
import { SEARCH_ATTRIBUTES } from '../../workflows/messages.js';

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];
type Call = ReturnType<Interceptor>;

const CANCELLED = 1;
const ANY_SIZE = { 'grpc.max_receive_message_length': 256 * 1024 * 1024 };
/** gRPC asks the proxy of `http_proxy` for this machine too, unless `no_proxy` names it. */
const DIRECT = { 'grpc.enable_http_proxy': 0 };
const THIS_MACHINE = /^(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?$/;

export async function openConnection(options: ConnectionOptions, usual: GrpcRetryOptions = defaultGrpcRetryOptions()): Promise<Connection> {
  let isClosed = false;
  const retry = makeGrpcRetryInterceptor({
    ...usual,
    retryableDecider: (attempt, status) => !isClosed && usual.retryableDecider(attempt, status),
  });
  // Within the one that says it again: each attempt passes here.
  const gate: Interceptor = (options, next) => toCall(isClosed ? ENDED : next(options));
  const channelArgs = { ...ANY_SIZE, ...(THIS_MACHINE.test(options.address ?? 'localhost') && DIRECT) };
  const connection = Connection.lazy({ ...options, channelArgs, interceptors: [retry, gate] });
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

// Which of our search attributes a namespace has, and how to give it those that are missing.

interface AttributeHost {
  readonly operatorService: Pick<OperatorService, 'listSearchAttributes' | 'addSearchAttributes'>;
}

/** Temporal's `IndexedValueType`, by the name that the SDK uses. */
const INDEXED_TYPES: Readonly<Partial<Record<SearchAttributeType, number>>> = {
  [SearchAttributeType.KEYWORD]: 2,
  [SearchAttributeType.INT]: 3,
  [SearchAttributeType.DOUBLE]: 4,
};

export async function missingAttributes({ operatorService }: AttributeHost, namespace: string): Promise<string[]> {
  const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
  return Object.keys(SEARCH_ATTRIBUTES).filter((name) => customAttributes?.[name] === undefined);
}

/** Answers with the names that it registered. */
export async function registerAttributes(host: AttributeHost, namespace: string): Promise<string[]> {
  const missing = await missingAttributes(host, namespace);
  if (missing.length === 0) return missing;
  const wanted = Object.values(SEARCH_ATTRIBUTES).filter((key) => missing.includes(key.name));
  const searchAttributes = Object.fromEntries(wanted.map((key) => [key.name, INDEXED_TYPES[key.type] ?? 2]));
  await host.operatorService.addSearchAttributes({ namespace, searchAttributes });
  return missing;
}

const ASK_AGAIN_MS = 60_000;

/** For a worker: the answer at hand, looked up beside and not again once all are there. */
export function createAttributeCheck(host: AttributeHost, namespace: string): () => Promise<boolean> {
  let registered = false;
  let askedAt = -Infinity;
  let asking: Promise<void> | undefined;
  const ask = (): Promise<void> => {
    askedAt = Date.now();
    return missingAttributes(host, namespace)
      .then((missing) => {
        registered = missing.length === 0;
      })
      .catch(() => undefined)
      .finally(() => (asking = undefined));
  };
  asking = ask();
  return async () => {
    if (asking) await Promise.race([asking, new Promise((resolve) => setTimeout(resolve, 300).unref())]);
    else if (!registered && Date.now() - askedAt > ASK_AGAIN_MS) asking = ask();
    return registered;
  };
}
