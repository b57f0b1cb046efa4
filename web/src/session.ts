/** Who looks: let in by the code of a link, by the cookie of an earlier visit, or by an identity provider. */
import { signal } from '@preact/signals';
import { toAddress, ask, onFailure, request, RequestError } from './api/request.js';
import { describeError } from './ui/words.js';

export interface Me {
  readonly name: string;
  readonly role: 'user' | 'operator' | 'admin';
  readonly tenant?: string;
}

export type Session =
  | { readonly is: 'asking' }
  | { readonly is: 'in'; readonly me: Me }
  /** `provider`: people can sign in elsewhere; `problem`: why a code or a cookie did not open. */
  | { readonly is: 'out'; readonly provider: boolean; readonly problem?: string }
  /** `problem`: what a gateway that can be reached says. */
  | { readonly is: 'unreachable'; readonly problem?: string };

export const session = signal<Session>({ is: 'asking' });

const RANKS = ['user', 'operator', 'admin'];

export function mayAct(role: Me['role']): boolean {
  const { value } = session;
  return value.is === 'in' && RANKS.indexOf(value.me.role) >= RANKS.indexOf(role);
}

export async function begin(): Promise<void> {
  onFailure(({ status }) => {
    // A session ends while a page is open: the person must know.
    if (status === 401 && session.value.is === 'in') void toSignIn('Your session has ended.');
  });
  const problem = await takeCode();
  try {
    session.value = { is: 'in', me: await request('get', '/v1/me') };
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) await toSignIn(problem);
    else session.value = { is: 'unreachable', ...(error instanceof RequestError && error.status > 0 && { problem: error.message }) };
  }
}

export async function signOut(): Promise<void> {
  try {
    await ask(toAddress('/auth/logout'), { method: 'POST' });
    await toSignIn();
  } catch (error) {
    // The cookie still opens: who leaves now must know.
    session.value = { is: 'unreachable', problem: `You are still signed in: ${describeError(error)}` };
  }
}

export function signInAddress(): string {
  const to = new URL(location.href);
  to.hash = '';
  return toAddress('/auth/login', {}, { to: `/${to.search}` }).href;
}

/** The code leaves the address before anything else can read or keep it. */
async function takeCode(): Promise<string | undefined> {
  const [, code] = /^#code=(.+)$/.exec(location.hash) ?? [];
  if (code === undefined) return undefined;
  history.replaceState(null, '', location.pathname + location.search);
  const body = JSON.stringify({ code: decodeURIComponent(code) });
  try {
    await ask(toAddress('/auth/code'), { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    return undefined;
  } catch (error) {
    return describeError(error);
  }
}

async function toSignIn(problem?: string): Promise<void> {
  const about = await ask(toAddress('/'), { headers: { accept: 'application/json' } })
    .then((answer) => answer.json() as Promise<{ signIn?: string }>)
    .catch(() => ({}) as { signIn?: string });
  session.value = { is: 'out', provider: about.signIn !== undefined, ...(problem !== undefined && { problem }) };
}
