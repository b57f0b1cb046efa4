/** How browsers get in and out, and what the gateway shows of itself. None of it needs a token. */
import { bodyLimit } from 'hono/body-limit';
import { z } from 'zod';
import { readOrigin, type GatewayApp, type GatewayContext } from '../context.js';
import { GatewayError } from '../core/errors.js';
import {
  refuseOtherSites,
  deleteSessionCookie,
  readSessionCookie,
  setSessionCookie,
  setSignInCookie,
  takeSignInCookie,
} from './authenticated.js';
import type { Browsers } from './entrance.js';
import type { Limiter } from './limits.js';
import { toNetwork } from './proxies.js';
import { notBegun, type SignIn } from './sign-in.js';

export const BROWSER_PATHS = ['/', '/auth/code', '/auth/logout', '/auth/login', '/auth/callback'] as const;

/** It is read before a token was shown. */
const MAX_CODE_BYTES = 4 * 1024;
const codeBody = z.strictObject({ code: z.string().min(1).max(1_000) });

interface BrowserRoutesOptions {
  readonly browsers: Browsers;
  readonly wrong: Limiter;
  readonly basePath: string;
}

export function addBrowserRoutes(app: GatewayApp, { browsers, wrong, basePath }: BrowserRoutesOptions): void {
  const onError = (): never => {
    throw new GatewayError({ status: 413, type: 'too-large', message: `a code has at most ${MAX_CODE_BYTES} bytes` });
  };
  app.post('/auth/code', bodyLimit({ maxSize: MAX_CODE_BYTES, onError }), async (context) => {
    refuseOtherSites(context);
    const body = codeBody.safeParse(await context.req.json().catch(() => undefined));
    if (!body.success) throw new GatewayError({ status: 400, type: 'invalid', message: 'the body is {"code": "…"}, as JSON' });
    const opened = await browsers.exchange(body.data.code);
    if (opened === undefined) {
      await wrong.take(toNetwork(context.get('seen').address));
      const message = 'this code opens nothing: it opens once, within a minute; `perdura admin token link` prints another';
      throw new GatewayError({ status: 401, type: 'unauthorized', message });
    }
    setSessionCookie(context, opened);
    return context.json(opened.principal);
  });

  app.post('/auth/logout', async (context) => {
    refuseOtherSites(context);
    const cookie = readSessionCookie(context);
    if (cookie !== undefined) await browsers.end(cookie);
    deleteSessionCookie(context);
    return context.body(null, 204);
  });

  app.get('/auth/login', async (context) => {
    const { location, carried } = await (
      await findSignIn(browsers)
    ).begin(`${readOrigin(context)}${basePath}/auth/callback`, readPath(context));
    setSignInCookie(context, carried);
    context.header('cache-control', 'no-store');
    return context.redirect(location, 302);
  });

  app.get('/auth/callback', async (context) => {
    const signIn = await findSignIn(browsers);
    const carried = takeSignInCookie(context);
    context.header('cache-control', 'no-store');
    context.header('referrer-policy', 'no-referrer');
    if (carried === undefined) throw notBegun();
    const { principal, to } = await signIn.finish(new URL(context.req.url).search, carried);
    setSessionCookie(context, await browsers.openSession(principal));
    return context.redirect(`${basePath}${to}`, 303);
  });
}

async function findSignIn(browsers: Browsers): Promise<SignIn> {
  const signIn = await browsers.signIn();
  if (signIn !== undefined) return signIn;
  throw new GatewayError({
    status: 404,
    type: 'not-found',
    message: 'no identity provider is set up here: PERDURA_AUTH names one in "oidc"',
  });
}

/** The path to which a person goes after signing in: of this gateway, and nothing that a browser reads as another host. */
function readPath(context: GatewayContext): string {
  const to = context.req.query('to') ?? '/';
  const isPath = to.length <= 500 && /^\/[\x21-\x5b\x5d-\x7e]*$/.test(to) && !to.startsWith('//');
  if (isPath) return to;
  throw new GatewayError({ status: 400, type: 'invalid', message: 'to: a path of this gateway, such as /' });
}
