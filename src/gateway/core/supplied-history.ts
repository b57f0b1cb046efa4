/**
 * Clients of stateless protocols send all that was said with each request. Which conversation such a request goes on with follows from
 * its messages alone, and so any gateway finds it.
 *
 * H1  A conversation that was made for such a request has an id that begins with its family: a hash of who asks, the `user` value, the
 *     agent, the instructions and the first thing that was said.
 * H2  A request goes on with a conversation of its family where its messages, without the newest, are exactly the turns of that
 *     conversation: no turn more, none less, no other word.
 * H3  Where there is none, the first message of a new one carries what the client has supplied, marked as that. The next request finds it
 *     by H2: what it compares is the message that it would have begun with.
 */
import { createHash } from 'node:crypto';
import { partSchema } from '../../conversation/protocol/input.js';
import { isFromPerson, shownText, type Entry } from '../../records/message.js';
import { joined, textsOf } from './turn-texts.js';

export interface Said {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

export interface Supplied {
  /** What the client tells the model to be; the agent has instructions of its own, which stand before it. */
  readonly instructions?: string;
  /** In turns: user and assistant, the last one a user's. */
  readonly said: readonly Said[];
}

export interface Asking {
  readonly principal: string;
  readonly user: string;
  readonly agent: string;
}

/** H1: what the ids of its conversations begin with. */
export function familyOf({ principal, user, agent }: Asking, { instructions = '', said }: Supplied): string {
  return `api-${shortHash([principal, user, agent, instructions, said[0]?.text ?? ''])}`;
}

export function shortHash(words: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, 24);
}

/** Puts what one side said in a row together; what it said before the first user message counts as the client's own words too. */
export function inTurns(messages: readonly Said[]): readonly Said[] {
  const turns: Said[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (last?.role === message.role) turns[turns.length - 1] = { role: last.role, text: joined([last.text, message.text]) };
    else turns.push(message);
  }
  return turns;
}

const MARK = '[Supplied by the client, one message a line; none of it was said here:]';
const INSTRUCTIONS = "[The client's instructions:]";

/** H3: what a conversation begins with that starts at this request. */
export function firstMessage({ instructions, said }: Supplied): string {
  const before = said.slice(0, -1);
  const newest = said.at(-1)?.text ?? '';
  return [
    ...(instructions === undefined ? [] : [INSTRUCTIONS, instructions, '']),
    ...(before.length === 0 ? [] : [MARK, ...before.map(({ role, text }) => JSON.stringify({ role, text })), '']),
    newest,
  ].join('\n');
}

/** H2, of everything that is recorded of a conversation. */
export function goesOnWith(entries: readonly Entry[], supplied: Supplied): boolean {
  const { said } = supplied;
  const turns = [...new Set(entries.map(({ turn }) => turn))];
  // Of the requests that may have begun it, the one that leaves as many turns as there are.
  const began = said.length - 1 - 2 * turns.length;
  if (turns.length === 0) return false;
  return turns.every((turn, i) => {
    const at = began + 2 * i;
    const question = entries.filter((entry) => entry.turn === turn && isFromPerson(entry.message));
    const expected = i === 0 ? firstMessage({ ...supplied, said: said.slice(0, at + 1) }) : said[at]?.text;
    const asked = question.map(({ message }) => (message.role === 'user' ? partSchema(shownText(message.text)).text : ''));
    return said[at]?.role === 'user' && joined(asked) === expected && joined(textsOf(entries, turn)).trim() === said[at + 1]?.text.trim();
  });
}
