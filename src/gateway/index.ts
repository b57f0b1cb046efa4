/**
 * `import … from 'perdura/gateway'`: conversations over HTTP, in your server.
 *
 * @packageDocumentation
 */
import { type GatewayOptions, createGateway as createApp } from './app.js';

/** Hono's app, as any server of fetch handlers takes it. */
export interface Gateway {
  /** Answers one request. */
  readonly fetch: (request: Request, env?: unknown) => Response | Promise<Response>;
}

/** Every conversation that the client reaches, over HTTP: `/openapi.json` describes it. `serveGateway` also starts a server. */
export function createGateway(options: GatewayOptions): Gateway {
  const app = createApp(options);
  return { fetch: (request, env) => app.fetch(request, env as Record<string, unknown> | undefined) };
}

export { serveGateway, type ServedGateway, type ServeOptions } from './serve.js';
export { createEntrance, type Browsers, type Entrance, type EntranceOptions, type OpenedSession } from './access/entrance.js';
export { watchAuthFile, type AuthFile, type AuthSource } from './access/auth-file.js';
export type { SharedCounts } from './access/limits.js';
export { recordSpentInFolder, recordSpentInRedis, type GivenAway, type SpentRecord } from './access/spent.js';
export { keptToken, oneToken, type Authenticate } from './access/entrance.js';
export { ROLES, type Principal, type Role } from './access/principal.js';
export type { GatewayOptions } from './app.js';
export type { AgentDescription, AgentServer, Finding, ServerToolPin } from './context.js';
