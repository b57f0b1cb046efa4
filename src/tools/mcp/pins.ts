/** What has been accepted of each server's tools (S34): a tool whose words have changed since does not run. */
import { z } from 'zod';
import type { AgentKey, Pins, ToolPin } from '../../stores/store.js';
import type { JsonObject } from '../../records/message.js';
import { acceptedText, hashOfText, type ServerTool } from './server-tool.js';

export type { AgentKey, Pins, ToolPin } from '../../stores/store.js';

const accepted = z.object({
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()),
  readOnly: z.boolean(),
  idempotent: z.boolean(),
});

export function toPin(tool: ServerTool): ToolPin {
  const text = acceptedText(tool);
  return { server: tool.server, tool: tool.tool, hash: hashOfText(text), text };
}

/** Undefined for a pin that was damaged: such a tool waits for a person. */
export function toServerTool({ server, tool, hash, text }: ToolPin): ServerTool | undefined {
  if (hashOfText(text) !== hash) return undefined;
  try {
    const checked = accepted.safeParse(JSON.parse(text));
    return checked.success ? { server, tool, ...checked.data, inputSchema: checked.data.inputSchema as JsonObject } : undefined;
  } catch {
    return undefined;
  }
}

/** All pins of an agent, by server and tool. What is seen for the first time is pinned as it is. */
export async function loadPins(store: Pins, key: AgentKey, live: readonly ServerTool[]): Promise<ReadonlyMap<string, ToolPin>> {
  const known = byTool(await store.list(key));
  const fresh = live.filter(({ server, tool }) => !known.has(pinKey(server, tool)));
  if (fresh.length === 0) return known;
  await store.pin(key, fresh.map(toPin));
  // Another worker may have been first, with other words.
  return byTool(await store.list(key));
}

export function pinKey(server: string, tool: string): string {
  return JSON.stringify([server, tool]);
}

export function byTool(pins: readonly ToolPin[]): ReadonlyMap<string, ToolPin> {
  return new Map(pins.map((pin) => [pinKey(pin.server, pin.tool), pin]));
}
