/** Requests to a server over one connection: its lists, single ones, and whether it still answers. */
import { z } from 'zod';
import type { JsonObject } from '../../records/message.js';
import type { Listed, Requests } from './connection.js';
import { wholeAnswer } from './revision.js';
import type { Client, Tool } from './stdio-transport.js';
import { errorFields } from '../../platform/errors.js';
import { isRecord } from '../../platform/json.js';

const METHODS: Readonly<Record<Listed, string>> = {
  tools: 'tools/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
  prompts: 'prompts/list',
};
const MAX_LISTED = 256;
const MAX_PAGES = 20;
const PING_MS = 3_000;
/** Longer than any call: the call's signal ends it. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
const HEADERS_DIFFER = -32_020;

const anything = z.looseObject({});

interface RequestOptions {
  /** For a list. */
  readonly timeoutMs: number;
  readonly onToolsChanged: () => void;
  readonly isModern: boolean;
}

export function createRequests(client: Client, { timeoutMs, onToolsChanged, isModern }: RequestOptions): Requests {
  const capabilities = client.getServerCapabilities() ?? {};
  /** As listed last, by name: they say which arguments go into headers. */
  let schemas: ReadonlyMap<string, unknown> = new Map();
  let listening: Promise<unknown> | undefined;

  /** A modern server tells of changes only who asks for them, and may end that at any time: then the list's age makes up for it. */
  const listen = (): void => {
    if (!isModern || capabilities.tools?.listChanged !== true) return;
    listening ??= client
      .listen({ toolsListChanged: true }, { timeout: timeoutMs })
      .then(({ closed }) => closed)
      .catch(() => undefined)
      .finally(() => (listening = undefined));
  };

  return {
    hasTools: capabilities.tools !== undefined,
    hasResources: capabilities.resources !== undefined,
    hasPrompts: capabilities.prompts !== undefined,

    async list(what) {
      const page = z.looseObject({ [what]: z.array(z.unknown()), nextCursor: z.string().max(10_000).optional() });
      const deadline = Date.now() + timeoutMs;
      const items: unknown[] = [];
      let freshMs: number | undefined;
      if (what === 'tools') listen();
      // A server that does not look at the cursor lists the same again: no item counts twice, and a page that has nothing new is the end.
      const seen = new Set<string>();
      let cursor: string | undefined;
      for (let pages = 0; pages < MAX_PAGES && items.length <= MAX_LISTED; pages++) {
        const params = cursor === undefined ? {} : { cursor };
        const how = { timeout: Math.max(1, deadline - Date.now()) };
        const answer = page.parse(wholeAnswer(await client.request({ method: METHODS[what], params }, anything, how)));
        freshMs = Math.min(freshMs ?? Infinity, Number(answer['ttlMs']) || 0);
        const before = items.length;
        for (const item of (answer[what] as unknown[]).slice(0, MAX_LISTED + 1)) {
          const text = JSON.stringify(item);
          if (!seen.has(text)) items.push(item);
          seen.add(text);
        }
        const isEnd = pages > 0 && items.length === before;
        cursor = isEnd ? undefined : (answer.nextCursor as string | undefined) || undefined;
        if (cursor === undefined) break;
      }
      const kept = items.slice(0, MAX_LISTED);
      if (what === 'tools') schemas = schemasIn(kept);
      return { items: kept, isCut: items.length > MAX_LISTED || cursor !== undefined, freshMs };
    },

    async ask(method, params, { signal, quietMs = NO_TIMEOUT_MS }) {
      // With a handler of progress the library sends a token for it.
      const how = { signal, timeout: quietMs, resetTimeoutOnProgress: true, onprogress: () => undefined };
      const name = String(params['name']);
      try {
        if (!isModern || method !== 'tools/call') return wholeAnswer(await client.request({ method, params }, anything, how));
        const toolDefinition = { name, inputSchema: schemas.get(name) ?? { type: 'object' } } as Tool;
        return wholeAnswer(await client.callTool({ name, arguments: params['arguments'] as JsonObject }, { ...how, toolDefinition }));
      } catch (error) {
        const { code, data } = errorFields(error);
        // What it wants in headers has changed.
        if (code === HEADERS_DIFFER) onToolsChanged();
        if (code !== 'CAPABILITY_NOT_SUPPORTED') throw error;
        const input = isRecord(data) ? String(data['method']) : 'input';
        throw new Error(`it asks for ${input}, which it cannot get here`, { cause: error });
      }
    },

    isAlive: () =>
      (isModern ? client.request({ method: 'server/discover' }, anything, { timeout: PING_MS }) : client.ping({ timeout: PING_MS })).then(
        () => true,
        () => false,
      ),
  };
}

function schemasIn(tools: readonly unknown[]): ReadonlyMap<string, unknown> {
  return new Map(
    tools.flatMap((tool) => (isRecord(tool) && typeof tool['name'] === 'string' ? [[tool['name'], tool['inputSchema']]] : [])),
  );
}
