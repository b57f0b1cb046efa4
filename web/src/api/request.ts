/** The native API, typed by what `/openapi.json` says. */
import { signal } from '@preact/signals';
import { home } from '../address.js';
import type { components, paths } from './schema.js';

/** What has a name in `/openapi.json`. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name];

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type Operations<M extends Method> = { [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never }[keyof paths];
type Operation<M extends Method, P extends keyof paths> = paths[P] extends { [K in M]: infer O } ? O : never;
type Part<O, Name extends string> = O extends { parameters: { [K in Name]?: infer Q } } ? Q : never;
type Body<O> = O extends { requestBody?: { content: { 'application/json': infer B } } } ? B : never;
type Answers<O> = O extends { responses: infer R } ? R[Extract<keyof R, 200 | 201 | 202>] : never;
export type Answer<M extends Method, P extends keyof paths> =
  Answers<Operation<M, P>> extends { content: { 'application/json': infer A } } ? A : undefined;

export interface Given<O> {
  readonly path?: Part<O, 'path'>;
  readonly query?: Part<O, 'query'>;
  readonly body?: Body<O>;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What the gateway refused, in its words; `status` 0: it could not be reached. */
export class RequestError extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
  ) {
    super(message);
    this.name = 'RequestError';
  }
}

/** Whether the last request met a gateway. */
export const isReachable = signal(true);

type Listener = (error: RequestError) => void;
const listeners = new Set<Listener>();

/** Hears of each request that failed: for who must know that one is signed out or offline. */
export function onFailure(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export async function request<M extends Method, P extends Operations<M>>(
  method: M,
  path: P,
  given: Given<Operation<M, P>> = {},
): Promise<Answer<M, P>> {
  const { body, headers } = given;
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await ask(toAddress(path, given.path, given.query), {
    method: method.toUpperCase(),
    ...sent,
    ...(given.signal && { signal: given.signal }),
    headers: { accept: 'application/json', ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
  });
  return (response.status === 204 ? undefined : await response.json()) as Answer<M, P>;
}

/** Any request of the gateway; throws what it refused. */
export async function ask(address: URL, init: RequestInit): Promise<Response> {
  const response = await fetch(address, { credentials: 'same-origin', ...init }).catch((error: unknown) => {
    if (init.signal?.aborted) throw error;
    isReachable.value = false;
    throw failed(new RequestError(0, 'unreachable', 'the gateway cannot be reached'));
  });
  isReachable.value = true;
  if (response.ok) return response;
  const problem = (await response.json().catch(() => ({}))) as { type?: string; detail?: string };
  const kind = (problem.type ?? '').replace(/^urn:perdura:/, '') || 'failed';
  throw failed(new RequestError(response.status, kind, problem.detail ?? `the gateway answered ${response.status}`));
}

export function toAddress(path: string, names: unknown = {}, query: unknown = {}): URL {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String((names as Record<string, unknown>)[name])));
  const address = new URL(filled.replace(/^\//, ''), home);
  for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (one !== undefined && one !== null) address.searchParams.append(name, String(one as string | number | boolean));
    }
  }
  return address;
}

function failed(error: RequestError): RequestError {
  for (const listener of listeners) listener(error);
  return error;
}
