/** The variables that every route has at hand, and how it answers errors. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import type { PerduraClient } from '../client.js';
import { mayAct, type Admission, type Principal, type Role } from './access/principal.js';
import type { Seen } from './access/proxies.js';
import type { Conversations } from './core/conversations.js';
import { GatewayError, type Problem } from './core/errors.js';
import type { RepeatedRequests } from './core/repeated-requests.js';

/** An agent as its folder describes it, without secrets: placeholders of variables are not filled in. */
export interface AgentDescription {
  readonly name: string;
  readonly config: object;
  readonly tools: readonly { readonly name: string; readonly description: string; readonly inputSchema: object; readonly from: string }[];
  readonly servers: readonly AgentServer[];
  /** Its system prompt, without any memory. */
  readonly system: string;
}

/** An MCP server of an agent, with the tools that were accepted of it, and those that wait for that. */
export interface AgentServer {
  readonly name: string;
  readonly type: string;
  /** Its address, or its program without the arguments. */
  readonly place: string;
  /** Names of headers or environment variables. */
  readonly variables: readonly string[];
  readonly pins: readonly ServerToolPin[];
  /** Added or changed since: not offered until a person accepts them. */
  readonly waiting?: readonly ServerToolPin[];
}

/** Without a description where it cannot be read. */
export interface ServerToolPin {
  readonly tool: string;
  readonly hash: string;
  readonly description: string | null;
  readonly inputSchema: object | null;
}

/** As `perdura doctor` finds it. */
export interface Finding {
  readonly what: string;
  readonly health: 'ok' | 'warning' | 'broken' | 'skipped';
  readonly found: string;
  /** The command that mends it, or the thing to do. */
  readonly mend?: string;
}

/** A turn as a case of a dataset, in a file of a project. */
export interface AddedCase {
  readonly id: string;
  /** Of the dataset. */
  readonly name: string;
  readonly cases: number;
  readonly isNew: boolean;
  readonly labels: readonly string[];
}

/** What a gateway counts, for Prometheus. */
export interface GatewayMetrics {
  readonly contentType: string;
  /** Streams that are open now. */
  readonly streams: { inc(): void; dec(): void };
  request(method: string, route: string, status: number, seconds: number): void;
  text(): Promise<string>;
}

export interface GatewayVariables {
  readonly Variables: {
    /** What `POST /v1/attachments` takes, and for how long. */
    readonly uploads: { readonly maxBytes: number; readonly silenceMs: number; readonly keepMs?: number };
    /** Names the request in the answer's headers and in the log. */
    readonly requestId: string;
    readonly principal: Principal;
    readonly admission: Admission;
    /** The signal of the request, up to where its answer begins: aborted when its token opens nothing any more. */
    readonly admitted: AbortSignal;
    /** The address that sent the request, as far as it can be trusted. */
    readonly seen: Seen;
    readonly conversations: Conversations;
    /** By which a repeat of a request finds the first one. */
    readonly repeated: { readonly record: RepeatedRequests; readonly joinsEqual: boolean };
    /** Called once the client has the answer, where a repeat could ask for it. */
    readonly delivered: (() => void) | undefined;
    readonly metrics: GatewayMetrics;
    readonly closing: AbortSignal;
    /** Takes out of the words of an error what the gateway knows as a secret. */
    readonly redact: (text: string) => string;
    readonly agents: () => Promise<readonly string[]>;
    readonly describeAgent: (name: string) => Promise<AgentDescription | undefined>;
    readonly findings: () => Promise<readonly Finding[]>;
    /** Undefined where this gateway writes into no project. */
    readonly addToDataset: (
      client: PerduraClient,
      id: string,
      turn: string,
      to: { readonly name: string; readonly labels: readonly string[] },
    ) => Promise<AddedCase | undefined>;
    /** For a conversation that the client may see in Temporal's UI: the address that shows an event of one of its runs. */
    readonly temporalLink: (id: string) => Promise<((run: string, event: number) => string | null) | undefined>;
  };
}

export type GatewayApp = OpenAPIHono<GatewayVariables>;
export type GatewayContext = Context<GatewayVariables>;

/** RFC 9457. */
export function answerNative(context: Context, { status, type, message }: Problem): Response {
  return context.body(JSON.stringify({ type: `urn:perdura:${type}`, title: type, status, detail: message }), status, {
    'content-type': 'application/problem+json',
  });
}

/** For routes that not all may use. */
export function needs(role: Role): MiddlewareHandler<GatewayVariables> {
  return async (context, next) => {
    if (!mayAct(context.get('principal'), role)) {
      throw new GatewayError({ status: 403, type: 'forbidden', message: `this needs the role ${role}` });
    }
    await next();
  };
}

/** Arguments that a person writes run in place of the model's: the role user may only allow or refuse a call. */
export function checkEdits(context: GatewayContext, decisions: readonly { readonly input?: unknown }[]): void {
  if (mayAct(context.get('principal'), 'operator') || decisions.every(({ input }) => input === undefined)) return;
  throw new GatewayError({ status: 403, type: 'forbidden', message: 'to change the arguments of a call needs the role operator' });
}

/** Ends with the client's connection, with the gateway, and with the token. */
export function requestSignal(context: GatewayContext): AbortSignal {
  return AbortSignal.any([context.req.raw.signal, context.get('closing'), context.get('admitted')]);
}

/** The address by which the client reaches it, as trusted proxies state it; the host was checked. */
export function readOrigin(context: GatewayContext): string {
  const { host = 'localhost', isSecure } = context.get('seen');
  return `${isSecure ? 'https' : 'http'}://${host}`;
}
