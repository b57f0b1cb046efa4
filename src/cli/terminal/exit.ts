/** How a command ends: exit codes, and the one place where an error becomes a sentence. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, notFound: 4, timedOut: 124, interrupted: 130 } as const;

/** Shown to the person as it is, without a stack. */
export class CliError extends Error {
  override readonly name = 'CliError';
  constructor(
    message: string,
    readonly exitCode: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Errors come from several libraries: distinguished by name and code, since two copies of a class are never `instanceof`. */
export function toExitCode(error: unknown): number {
  const { name, code, kind, exitCode, cause } = readFields(error);
  if (typeof exitCode === 'number') return exitCode;
  if (name === 'ClientError') return CLIENT_ERRORS[String(kind)] ?? (isRefused(cause) ? EXIT.unreachable : EXIT.failed);
  if (name === 'ConfigError') return EXIT.usage;
  if (name === 'StoreUnavailable' || code === GRPC_UNAVAILABLE || code === GRPC_DEADLINE) return EXIT.unreachable;
  if (code === GRPC_PERMISSION_DENIED || code === GRPC_UNAUTHENTICATED) return EXIT.unreachable;
  if (UNREACHABLE_CODES.has(String(code))) return EXIT.unreachable;
  if (name === 'WorkflowNotFoundError' || name === 'NamespaceNotFoundError' || code === GRPC_NOT_FOUND) return EXIT.notFound;
  return cause === undefined || cause === null ? EXIT.failed : toExitCode(cause);
}

const CLIENT_ERRORS: Readonly<Record<string, number>> = {
  'not-found': EXIT.notFound,
  'not-waiting': EXIT.notFound,
  invalid: EXIT.usage,
  conflict: EXIT.usage,
  unreachable: EXIT.unreachable,
  aborted: EXIT.interrupted,
};

const GRPC_DEADLINE = 4;
const GRPC_NOT_FOUND = 5;
const GRPC_PERMISSION_DENIED = 7;
const GRPC_UNAUTHENTICATED = 16;
const GRPC_UNAVAILABLE = 14;
const UNREACHABLE_CODES = new Set(['ECONNREFUSED', 'ENOTFOUND', 'ETIMEDOUT', 'ECONNRESET', 'EHOSTUNREACH']);

/** Whether Temporal is there and lets this client not do that: by a code of gRPC, or in the words of the worker's core. */
export function isRefused(error: unknown): boolean {
  for (let at = error; at !== undefined && at !== null; at = readFields(at).cause) {
    const { code } = readFields(at);
    if (code === GRPC_PERMISSION_DENIED || code === GRPC_UNAUTHENTICATED) return true;
    if (/PermissionDenied|Unauthenticated/.test(at instanceof Error ? at.message : '')) return true;
  }
  return false;
}

function readFields(error: unknown): { name?: unknown; code?: unknown; kind?: unknown; exitCode?: unknown; cause?: unknown } {
  return typeof error === 'object' && error !== null ? error : {};
}
