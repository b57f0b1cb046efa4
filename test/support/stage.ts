/** Many conversations in one world, each with a script of its own: every message begins with the id of its conversation. */
import { lastToolResults, textOf, type ApiRequest } from './provider-apis/api-request.js';
import { text, type Reply } from './provider-apis/reply.js';
import { waitFor } from './wait-for.js';
import type { World } from './world.js';

export type Line = Reply | ((request: ApiRequest) => Reply);

export interface Stage {
  /** The world's `answer`. */
  readonly answer: (request: ApiRequest) => Reply;
  /** What the model says next in that conversation; at the end of its script it says "Understood.". */
  play(id: string, ...lines: readonly Line[]): void;
  /** What the model was asked in that conversation, oldest first. */
  requests(id: string): readonly ApiRequest[];
  waitForRequest(id: string, n: number): Promise<ApiRequest>;
}

const ID = /c-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** A fork begins with what was said elsewhere: `by: 'last'` goes by what was said last. */
export function createStage({ by = 'first' }: { readonly by?: 'first' | 'last' } = {}): Stage {
  const scripts = new Map<string, Line[]>();
  const asked = new Map<string, ApiRequest[]>();
  const requests = (id: string): readonly ApiRequest[] => asked.get(id) ?? [];
  return {
    answer(request) {
      const id = conversationOf(by === 'first' ? request.messages : [...request.messages].reverse(), by);
      asked.set(id, [...requests(id), request]);
      const line = scripts.get(id)?.shift() ?? text('Understood.');
      return typeof line === 'function' ? line(request) : line;
    },
    play: (id, ...lines) => void scripts.set(id, [...(scripts.get(id) ?? []), ...lines]),
    requests,
    waitForRequest: (id, n) =>
      waitFor(
        () => requests(id)[n - 1],
        (request) => request !== undefined,
      ).then((request) => request as ApiRequest),
  };
}

/** What a person says there: the id tells the stage whose line it is. */
export function say(id: string, words: string): string {
  return `${id} ${words}`;
}

function conversationOf(messages: ApiRequest['messages'], by: 'first' | 'last'): string {
  for (const { content, role } of messages) {
    const id =
      role === 'user'
        ? textOf(content)
            .match(ID)
            ?.at(by === 'first' ? 0 : -1)
        : undefined;
    if (id !== undefined) return id;
  }
  throw new Error('no message of this request begins with the id of its conversation');
}

/** Resolves once these words have come from the model. */
export async function heardFrom({ client }: Pick<World, 'client'>, id: string, words: string): Promise<void> {
  let said = '';
  for await (const { event } of client.watch(id, { after: '0' })) {
    if (event.kind === 'text') said += event.text;
    if (said.includes(words)) return;
  }
}

/** The tool results that a request brings, as plain texts. */
export function resultTexts(request: ApiRequest | undefined): string[] {
  return request ? lastToolResults(request).map(({ content }) => textOf(content)) : [];
}
