/**
 * What one life of a connection to a server can do, and how it fails. Nothing of MCP's library is in it: the types of our package lead here, and
 * the library is optional.
 */
import type { JsonObject } from '../../records/message.js';
import type { Variables } from './server-config.js';
import type { SignInSession } from './sign-in/session.js';

export interface Requests {
  readonly hasTools: boolean;
  readonly hasResources: boolean;
  readonly hasPrompts: boolean;
  list(what: Listed): Promise<ListedItems>;
  /** One request; rejects with the server's error, when the signal aborts, or after `quietMs` without an answer or a word of progress. */
  ask(method: string, params: JsonObject, how: Asking): Promise<Record<string, unknown>>;
  /** Whether it still answers. */
  isAlive(): Promise<boolean>;
}

export interface Asking {
  readonly signal: AbortSignal;
  /** Absent: the signal alone ends it. */
  readonly quietMs?: number;
}

/** All pages of a list, at most `MAX_LISTED` items. */
export interface ListedItems {
  readonly items: readonly unknown[];
  /** There were more. */
  readonly isCut: boolean;
  /** For how many milliseconds the server says that it stays so. */
  readonly freshMs?: number;
}

export type Listed = 'tools' | 'resources' | 'resourceTemplates' | 'prompts';

export interface Connection extends Requests {
  /** Whether arguments that a tool's schema marks are sent in headers too. */
  readonly hasHeaders: boolean;
  close(): Promise<void>;
}

export interface ConnectionEvents {
  readonly onToolsChanged: () => void;
  /** It is gone, and was not closed from here. */
  readonly onLost: (fault: ConnectionFault) => void;
}

/** What went wrong, and the last output of the server's process: that is for its operator's eyes only. */
export class ConnectionFault extends Error {
  override readonly name = 'ConnectionFault';
  constructor(
    message: string,
    readonly stderrTail = '',
    options: ErrorOptions & { readonly instead?: Mode | undefined } = {},
  ) {
    super(message, options);
    this.instead = options.instead;
  }

  /** In what other way the server may be reached. */
  readonly instead: Mode | undefined;
}

export interface ConnectOptions extends ConnectionEvents {
  readonly variables: Variables;
  readonly version: string;
  /** Puts tokens on its requests. */
  readonly signIn?: SignInSession | undefined;
  /** For the connection, and for a list. */
  readonly timeoutMs: number;
}

export type Mode = 'auto' | 'legacy' | { readonly pin: string };
