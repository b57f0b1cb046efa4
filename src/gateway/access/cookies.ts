/** The cookies of a browser: not for scripts, not for other sites, and not in the clear where there is https. */
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import type { GatewayContext } from '../context.js';
import type { OpenedSession } from './entrance.js';
import { SIGN_IN_SECONDS } from './sign-in.js';

const SESSION = 'perdura';
const SIGN_IN = 'perdura-sign-in';

/** `__Host-` makes it Secure, and no other name of a domain can set it. */
const prefixed = (context: GatewayContext): 'host' | undefined => (context.get('seen').isSecure ? 'host' : undefined);
const common = (context: GatewayContext) => ({ path: '/', httpOnly: true, prefix: prefixed(context) }) as const;

export function readSessionCookie(context: GatewayContext): string | undefined {
  return getCookie(context, SESSION, prefixed(context));
}

export function setSessionCookie(context: GatewayContext, { cookie, seconds }: OpenedSession): void {
  setCookie(context, SESSION, cookie, { ...common(context), sameSite: 'Strict', maxAge: seconds });
}

export function deleteSessionCookie(context: GatewayContext): void {
  deleteCookie(context, SESSION, common(context));
}

/** Lax: the identity provider's page leads back here, which is from another site. It opens nothing. */
export function setSignInCookie(context: GatewayContext, carried: string): void {
  setCookie(context, SIGN_IN, carried, { ...common(context), sameSite: 'Lax', maxAge: SIGN_IN_SECONDS });
}

/** Once: it is gone from the browser with this answer. */
export function takeSignInCookie(context: GatewayContext): string | undefined {
  const carried = getCookie(context, SIGN_IN, prefixed(context));
  deleteCookie(context, SIGN_IN, common(context));
  return carried;
}
