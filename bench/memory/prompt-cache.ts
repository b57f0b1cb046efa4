/**
 * What requests cost with Anthropic's prompt cache, by its published rules: a prefix is kept where a mark stands, if it is long enough, for five
 * minutes or an hour from its last use; a request reads the longest one that is found at a mark or at most 20 blocks before it; what is
 * read costs a tenth of plain input, what is written a quarter more (for an hour: twice as much).
 */
import { createHash } from 'node:crypto';
import type { MessageCreateParamsStreaming } from '@anthropic-ai/sdk/resources/messages/messages.js';

const LOOK_BACK = 20;
/** Tokens; of most models. */
const MIN_TOKENS = 1_024;
const [READ, WRITE, WRITE_HOUR] = [0.1, 1.25, 2];
const [FIVE_MINUTES, HOUR] = [300_000, 3_600_000];
const CHARACTERS_PER_TOKEN = 4;

export interface Billed {
  readonly read: number;
  readonly written: number;
  readonly plain: number;
  /** In tokens of plain input. */
  readonly cost: number;
}

type Request = Pick<MessageCreateParamsStreaming, 'system' | 'tools' | 'messages'>;

interface Block {
  /** Of all up to it. */
  readonly hash: string;
  readonly tokens: number;
  readonly keepsMs: number | undefined;
}

/** `at`: milliseconds by any clock. */
export function createPromptCache(): (request: Request, at: number) => Billed {
  const kept = new Map<string, { until: number; readonly keepsMs: number }>();
  return (request, at) => {
    const blocks = toBlocks(request);
    const marks = blocks.flatMap(({ keepsMs }, place) => (keepsMs === undefined ? [] : [place]));
    const isThere = (place: number): boolean => (kept.get(blocks[place]?.hash ?? '')?.until ?? -1) >= at;
    const hit = Math.max(-1, ...marks.flatMap((mark) => before(mark).filter(isThere)));
    const tokens = (place: number): number => blocks[place]?.tokens ?? 0;
    const last = Math.max(hit, ...marks.filter((mark) => tokens(mark) >= MIN_TOKENS), -1);
    for (const place of [...marks.filter((mark) => tokens(mark) >= MIN_TOKENS), ...(hit < 0 ? [] : [hit])]) {
      const { hash = '', keepsMs = FIVE_MINUTES } = blocks[place] ?? {};
      const lifetime = Math.max(keepsMs, isThere(place) ? (kept.get(hash)?.keepsMs ?? 0) : 0);
      kept.set(hash, { until: at + lifetime, keepsMs: lifetime });
    }
    const [read, written, plain] = [tokens(hit), tokens(last) - tokens(hit), tokens(blocks.length - 1) - tokens(last)];
    const price = blocks[last]?.keepsMs === HOUR ? WRITE_HOUR : WRITE;
    return { read, written, plain, cost: read * READ + written * price + plain };
  };
}

function before(mark: number): number[] {
  return Array.from({ length: LOOK_BACK + 1 }, (_, back) => mark - back).filter((place) => place >= 0);
}

function toBlocks({ tools = [], system = [], messages }: Request): Block[] {
  const parts: readonly (readonly [where: string, block: unknown])[] = [
    ...tools.map((tool) => ['tool', tool] as const),
    ...listOf(system).map((block) => ['system', block] as const),
    ...messages.flatMap(({ role, content }) => listOf(content).map((block) => [role, block] as const)),
  ];
  const hash = createHash('sha256');
  let characters = 0;
  return parts.map(([where, block]) => {
    // The marks are no part of what is kept.
    const text = `${where} ${JSON.stringify(block, (name, value: unknown) => (name === 'cache_control' ? undefined : value))}`;
    hash.update(text);
    characters += text.length;
    return { hash: hash.copy().digest('hex'), tokens: Math.ceil(characters / CHARACTERS_PER_TOKEN), keepsMs: lifetimeOf(block) };
  });
}

function lifetimeOf(block: unknown): number | undefined {
  const { cache_control: mark } = (typeof block === 'object' ? block : {}) as { readonly cache_control?: { readonly ttl?: string } | null };
  return mark ? (mark.ttl === '1h' ? HOUR : FIVE_MINUTES) : undefined;
}

function listOf(content: unknown): readonly unknown[] {
  return Array.isArray(content) ? (content as readonly unknown[]) : [content];
}
