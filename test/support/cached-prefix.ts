/** What of a request is marked for the provider's cache: its blocks in the order in which the cache reads them. */
import type { ApiRequest } from './provider-apis/api-request.js';

export interface CachedPrefix {
  /** Tools, system, content of the messages with who says it; without the marks, which are no part of what is cached. */
  readonly blocks: readonly string[];
  /** How many of them stand before the last mark, the marked one with them. */
  readonly marked: number;
  /** Of these. */
  readonly bytes: number;
}

export function cachedPrefix(request: ApiRequest): CachedPrefix {
  const parts: readonly (readonly [where: string, block: unknown])[] = [
    ...(request.tools ?? []).map((tool) => ['tool', tool] as const),
    ...listOf(request.system).map((block) => ['system', block] as const),
    ...request.messages.flatMap(({ role, content }) => listOf(content).map((block) => [role, block] as const)),
  ];
  const blocks = parts.map(
    ([where, block]) => `${where} ${JSON.stringify(block, (name, value: unknown) => (name === 'cache_control' ? undefined : value))}`,
  );
  const marked = parts.findLastIndex(([, block]) => typeof block === 'object' && block !== null && 'cache_control' in block) + 1;
  return { blocks, marked, bytes: blocks.slice(0, marked).reduce((sum, block) => sum + Buffer.byteLength(block), 0) };
}

function listOf(content: unknown): readonly unknown[] {
  if (content === undefined) return [];
  return Array.isArray(content) ? (content as readonly unknown[]) : [content];
}
