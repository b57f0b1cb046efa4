/** A page (jsdom) in which `useChat` of React runs unchanged: the messages are loaded, then it resumes. */
import type * as AiReact from '@ai-sdk/react';
import type * as Ai from 'ai';
import { waitFor } from '../../support/wait-for.js';

/** What of these the tests use: they come without types. */
interface PageWindow {
  readonly document: { readonly body: { appendChild(child: unknown): unknown }; createElement(name: string): unknown };
  readonly navigator: unknown;
  close(): void;
}
interface ReactDom {
  createRoot(container: unknown): { render(element: unknown): void; unmount(): void };
}

export type Helpers = ReturnType<typeof AiReact.useChat>;
type ChatInit = Parameters<typeof AiReact.useChat>[0];

const { JSDOM } = require('jsdom') as { readonly JSDOM: new (html: string) => { readonly window: PageWindow } };
export const { window } = new JSDOM('<!doctype html><body></body>');

/** After the worker is there: its SDK does not start where a page is. */
export function becomePage(): void {
  Object.assign(globalThis, { window, document: window.document });
  Object.defineProperty(globalThis, 'navigator', { value: window.navigator, configurable: true });
}

export interface PageOptions {
  /** Of the gateway. */
  readonly url: string;
  readonly token: string;
  /** What each request has beside its messages. */
  readonly body?: object;
  /** `chat` is what the hook has answered last. */
  readonly init: (chat: () => Helpers) => ChatInit;
}

export async function mountChat(id: string, options: PageOptions): Promise<{ chat(): Helpers; close(): void }> {
  const { createElement } = require('react') as { createElement(component: () => null): unknown };
  const { createRoot } = require('react-dom/client') as ReactDom;
  const { useChat } = require('@ai-sdk/react') as typeof AiReact;
  const { DefaultChatTransport } = require('ai') as typeof Ai;
  const { url, token, body, init } = options;
  const headers = { authorization: `Bearer ${token}` };
  const loaded = await fetch(`${url}/api/chat/${id}/messages`, { headers });
  const messages = loaded.ok ? ((await loaded.json()) as never[]) : [];
  const transport = new DefaultChatTransport({ api: `${url}/api/chat`, headers, ...(body && { body }) });
  let latest: Helpers | undefined;
  const chat = (): Helpers => latest as Helpers;
  const Chat = (): null => {
    latest = useChat({ id, messages, transport, resume: true, ...init(chat) });
    return null;
  };
  const root = createRoot(window.document.body.appendChild(window.document.createElement('div')));
  root.render(createElement(Chat));
  await waitFor(
    () => latest !== undefined,
    (isThere) => isThere,
  );
  return { chat, close: () => root.unmount() };
}
