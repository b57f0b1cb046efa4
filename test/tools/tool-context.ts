import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { JsonObject } from '../../src/records/message.js';
import type { Tool, ToolContext } from '../../src/tools/tool.js';

export const CANARY = 'CANARY-5b1c';

export function toolContext(given: Partial<ToolContext> = {}): ToolContext {
  return {
    workspace: '/nowhere',
    signal: new AbortController().signal,
    conversation: 'chat',
    turn: 'turn_0001',
    callId: 'turn_0001/c1',
    idempotencyKey: 'chat/turn_0001/c1',
    context: {},
    now: () => new Date('2026-11-21T14:45:00.000Z'),
    memory: {
      ...{ store: async () => 'mem_0', retrieve: async () => null, query: async () => [] },
      ...{ clear: async () => {}, restore: async () => {} },
      snapshot: () => Promise.reject(new Error('there is no store')),
    },
    history: async function* () {},
    recall: { search: () => Promise.resolve([]), open: () => Promise.resolve([]), files: () => Promise.resolve({}) },
    episodes: () => Promise.resolve([]),
    ...given,
  };
}

/** What a model reads of a call in `place`. */
export async function runIn({ workspace }: Place, tool: Tool, input: JsonObject): Promise<string> {
  const result = await tool.run(input, toolContext({ workspace }));
  return result.ok ? result.content : `error: ${result.error}`;
}

export interface Place {
  /** What lies beside the workspace, and must not be seen. */
  readonly outside: string;
  readonly workspace: string;
  /** Writes a file, and the folders above it. */
  readonly write: (path: string, content: string | Buffer) => void;
  readonly remove: () => void;
}

/** A workspace `ws` in a folder of its own, beside `ws-evil` and `secret.txt`, both with the canary. */
export function createPlace(): Place {
  const outside = realpathSync(mkdtempSync(join(tmpdir(), 'perdura-')));
  const workspace = join(outside, 'ws');
  const write = (path: string, content: string | Buffer): void => {
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    writeFileSync(join(workspace, path), content);
  };
  mkdirSync(workspace);
  mkdirSync(join(outside, 'ws-evil'));
  writeFileSync(join(outside, 'ws-evil', 'x'), CANARY);
  writeFileSync(join(outside, 'secret.txt'), CANARY);
  return { outside, workspace, write, remove: () => rmSync(outside, { recursive: true, force: true }) };
}
