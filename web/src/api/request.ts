/** The native API, typed by what `/openapi.json` says. */
import { signal } from '@preact/signals';
import { home } from '../address.js';
import {
  toAddress as addressAt,
  type Answer,
  type Given,
  type Method,
  type Operation,
  type Operations,
} from '../../../packages/perdura-client/src/operations.js';
import type { components } from '../../../packages/perdura-client/src/schema.js';

export type { Answer };

/** What has a name in `/openapi.json`. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name];

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

export function toAddress(path: string, names?: unknown, query?: unknown): URL {
  return addressAt(home, path, names, query);
}

function failed(error: RequestError): RequestError {
  for (const listener of listeners) listener(error);
  return error;
}
