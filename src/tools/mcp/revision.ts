/** What the protocol has since its revision of 2026-07-28 that concerns a client, where its library leaves something to us. */
import { isRecord } from '../../platform/json.js';
import type { JSONRPCMessage, Transport } from './stdio-transport.js';

export const FIRST_MODERN = '2026-07-28';

export interface LooseTransport extends Transport {
  /** The method that was sent last. */
  readonly lastMethod: () => string | undefined;
  /** Nothing was answered yet when the server was greeted as an older one. */
  readonly wasSilent: () => boolean;
}

/**
 * The library holds each answer of a modern server against the schema of all of it, and throws a whole list away for one odd tool. Behind this
 * transport it sees an empty answer instead, with the real one inside, so that what one tool gets wrong concerns that tool.
 */
export function createLooseTransport(inner: Transport): LooseTransport {
  let isModern = false;
  let isAnswered = false;
  let wasSilent = false;
  let lastMethod: string | undefined;
  const outer: LooseTransport = {
    lastMethod: () => lastMethod,
    wasSilent: () => wasSilent,
    start: () => {
      inner.onmessage = (message, extra) => {
        if (!('method' in message)) isAnswered = true;
        outer.onmessage?.(isModern ? setAside(message) : message, extra);
      };
      inner.onerror = (error) => outer.onerror?.(error);
      inner.onclose = () => outer.onclose?.();
      return inner.start();
    },
    send: (message, how) => {
      if ('method' in message) lastMethod = message.method;
      if (lastMethod === 'initialize') wasSilent = !isAnswered;
      return inner.send(message, how);
    },
    close: () => inner.close(),
    get sessionId() {
      return inner.sessionId;
    },
    setProtocolVersion(version) {
      isModern = version >= FIRST_MODERN;
      inner.setProtocolVersion?.(version);
    },
    ...(inner.hasPerRequestStream === true && { hasPerRequestStream: true }),
    ...('stderr' in inner && 'pid' in inner && { stderr: inner.stderr, pid: inner.pid }),
  };
  return outer;
}

const WHOLE = 'perdura/answer';

/** What its schemas want of any answer. */
const EMPTY = {
  ...{ resultType: 'complete', content: [], tools: [], prompts: [], resources: [], resourceTemplates: [], contents: [], messages: [] },
  ...{ supportedVersions: [FIRST_MODERN], capabilities: {}, ttlMs: 0, cacheScope: 'private' },
} as const;

/** Answers to the library's questions have an id that is a text; what asks for more is the library's business too. */
function setAside(message: JSONRPCMessage): JSONRPCMessage {
  if (!('result' in message) || typeof message.id !== 'number') return message;
  const { resultType = 'complete' } = message.result;
  return resultType === 'complete' ? { ...message, result: { ...EMPTY, [WHOLE]: message.result } } : message;
}

/** The answer as the server gave it. */
export function wholeAnswer(answer: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const whole = answer[WHOLE];
  return isRecord(whole) ? whole : answer;
}

const MARK = 'x-mcp-header';
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const MIRRORED_TYPES = ['string', 'integer', 'boolean'];
/** What their values hold is data, and no schema. */
const DATA = new Set(['default', 'const', 'enum', 'example', 'examples']);

/**
 * Over HTTP, arguments that a schema marks are sent in headers too. Why a tool cannot be called that way: then it may not be offered. A mark
 * stands on an argument, or on a field of one, of a simple type, and nowhere else.
 */
export function headerFault(schema: unknown): string | undefined {
  const names = new Set<string>();
  const visit = (value: unknown, isReached: boolean, isArgument: boolean): string | undefined => {
    if (Array.isArray(value)) return findFirst(value, (inner) => visit(inner, false, false));
    if (!isRecord(value)) return undefined;
    const { [MARK]: name, type } = value;
    if (name !== undefined) {
      if (!isReached || !isArgument) return `its input schema has ${MARK} where no argument is`;
      if (typeof name !== 'string' || !HEADER_NAME.test(name)) return `its input schema names a header that cannot be one in ${MARK}`;
      if (!MIRRORED_TYPES.includes(String(type)))
        return `its input schema has ${MARK} on an argument that is no ${MIRRORED_TYPES.join(' or ')}`;
      if (names.has(name.toLowerCase())) return `its input schema names one header twice in ${MARK}`;
      names.add(name.toLowerCase());
    }
    return findFirst(Object.entries(value), ([key, inner]) => {
      if (DATA.has(key)) return undefined;
      // Names of arguments are no words of a schema.
      if (key === 'properties' && isRecord(inner)) return findFirst(Object.values(inner), (one) => visit(one, isReached, true));
      return visit(inner, false, false);
    });
  };
  return visit(schema, true, false);
}

function findFirst<T>(values: readonly T[], look: (value: T) => string | undefined): string | undefined {
  for (const value of values) {
    const found = look(value);
    if (found !== undefined) return found;
  }
  return undefined;
}
