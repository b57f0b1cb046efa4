/** Nothing behind it opens without a token, or the cookie of a browser that was let in. */
import type { Context, MiddlewareHandler } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import type { GatewayContext, GatewayVariables } from '../context.js';
import { hasBody } from '../core/read-body.js';
import { GatewayError } from '../core/errors.js';
import type { Browsers, OpenedSession, Authenticate } from './entrance.js';
import { createOpenCounter, type CreateLimiter, type Limiter } from './limits.js';
import { createAdmission, type Principal } from './principal.js';
import { toNetwork } from './proxies.js';
import { SIGN_IN_SECONDS } from './sign-in.js';

interface AuthenticatedOptions {
  readonly authenticate: Authenticate;
  readonly browsers?: Browsers;
  readonly createLimiter: CreateLimiter;
  /** Wrong tokens and codes, by where they come from. */
  readonly wrong: Limiter;
  readonly requestsPerMinute: number;
  readonly openPerToken: number;
  readonly openPaths: ReadonlySet<string>;
  /** How often it is looked at again, while a request is open. */
  readonly lookAgainMs?: number;
}

export function authenticated(options: AuthenticatedOptions): MiddlewareHandler<GatewayVariables> {
  const { createLimiter, wrong, openPaths } = options;
  const requests = createLimiter('requests', options.requestsPerMinute, 60);
  const open = createOpenCounter(options.openPerToken);
  return async (context, next) => {
    if (openPaths.has(context.req.path)) return next();
    const presented = presentedToken(context);
    const letIn = async (): Promise<Principal | undefined> =>
      presented === undefined ? ofBrowser(context, options.browsers) : options.authenticate(presented);
    const principal = await letIn();
    if (principal === undefined) {
      // Counted only now: a right token always opens, whatever else comes from its address.
      // Nothing of a body is read.
      if (hasBody(context)) context.header('connection', 'close');
      await wrong.take(toNetwork(context.get('seen').address));
      context.header('www-authenticate', 'Bearer');
      const what = presented === undefined ? 'a token is needed' : 'this token opens nothing, or no longer';
      const message = `${what}: send Authorization: Bearer with one that \`perdura serve\` or \`perdura admin token create\` has named`;
      throw new GatewayError({ status: 401, type: 'unauthorized', message });
    }
    await requests.take(principal.name);
    const close = open.open(principal.name);
    context.set('principal', principal);
    const { outgoing } = (context.env ?? {}) as { outgoing?: { once?: (event: 'close', listener: () => void) => void } };
    outgoing?.once?.('close', close);
    const admission = createAdmission(principal, letIn, options.lookAgainMs);
    const watch = admission.watch();
    context.set('admission', admission);
    context.set('admitted', watch.signal);
    try {
      await next();
    } finally {
      watch.stop();
      // In a server that is not Node's an answer counts until it begins.
      if (outgoing?.once === undefined) close();
    }
    watch.signal.throwIfAborted();
  };
}

/** Clients of Anthropic's API send `x-api-key`. */
function presentedToken(context: Context): string | undefined {
  const [, token] = /^Bearer +(\S{1,8192})$/i.exec(context.req.header('authorization') ?? '') ?? [];
  return token ?? context.req.header('x-api-key');
}

async function ofBrowser(context: GatewayContext, browsers: Browsers | undefined): Promise<Principal | undefined> {
  const cookie = readSessionCookie(context);
  if (browsers === undefined || cookie === undefined) return undefined;
  refuseOtherSites(context);
  return await browsers.principalOf(cookie);
}

/**
 * Browsers send a cookie with requests of any page, at least within one site: another port of this machine, another name of a domain. So
 * the cookie counts only where the browser states that a page of this origin sent the request; for reading also where it states nothing.
 */
export function refuseOtherSites(context: GatewayContext): void {
  const { host, isSecure } = context.get('seen');
  const [site, origin] = [context.req.header('sec-fetch-site'), context.req.header('origin')?.toLowerCase()];
  const isChange = !['GET', 'HEAD'].includes(context.req.method);
  const authority = `://${host?.toLowerCase()}`;
  const isSameOrigin = origin === `https${authority}` || (!isSecure && origin === `http${authority}`);
  const isAllowed =
    (origin === undefined || isSameOrigin) &&
    (site === undefined ? origin !== undefined || !isChange : site === 'same-origin' || (site === 'none' && !isChange));
  if (isAllowed) return;
  const message = 'a cookie opens only for pages of this gateway itself: others send a token, in Authorization';
  throw new GatewayError({ status: 403, type: 'forbidden', message });
}

/** The cookies of a browser: not for scripts, not for other sites, and not in the clear where there is https. */
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
