/** What each operation of the native API takes and answers, by what `/openapi.json` says. */
import type { paths } from './schema.js';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
/** Paths that have this method. */
export type Operations<M extends Method> = { [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never }[keyof paths];
export type Operation<M extends Method, P extends keyof paths> = paths[P] extends { [K in M]: infer O } ? O : never;
type Part<O, Name extends string> = O extends { parameters: { [K in Name]?: infer Q } } ? Q : never;
type Body<O> = O extends { requestBody?: { content: { 'application/json': infer B } } } ? B : never;
type Answers<O> = O extends { responses: infer R } ? R[Extract<keyof R, 200 | 201 | 202>] : never;
export type Answer<M extends Method, P extends keyof paths> =
  Answers<Operation<M, P>> extends { content: { 'application/json': infer A } } ? A : undefined;

/** What a request brings. */
export interface Given<O> {
  readonly path?: Part<O, 'path'>;
  readonly query?: Part<O, 'query'>;
  readonly body?: Body<O>;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** `path` with its names filled in, and the query, relative to `home`. What is undefined or null is left out. */
export function toAddress(home: URL, path: string, names: unknown = {}, query: unknown = {}): URL {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String((names as Record<string, unknown>)[name])));
  const address = new URL(filled.replace(/^\//, ''), home);
  for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (one !== undefined && one !== null) address.searchParams.append(name, String(one as string | number | boolean));
    }
  }
  return address;
}
