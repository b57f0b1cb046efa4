/**
 * A turn as one text that only grows, for protocols without a way to take anything back (Chat Completions, Messages).
 *
 * The stream's text is always a beginning of the valid texts, joined. After a failed attempt it sends nothing until the next attempt has
 * the same words up to there. At the end the text is that of the recorded turn: streamed or not, it is the same.
 *
 * @rule turns/never-a-wrong-text: If the next attempt uses other words, the text that was sent can no longer become right: the stream ends
 *   with an error, never with a wrong text. (test: test/gateway/begun-anew.test.ts)
 */
import { GatewayError } from '../errors.js';
import { joined, type TurnPiece, type Whole } from './turn-texts.js';

export interface OneText {
  /** The text to send now; throws if the text sent before is wrong (turns/never-a-wrong-text). */
  take(piece: Exclude<TurnPiece, Whole>): string;
  end(whole: Whole): string;
}

export function createOneText(): OneText {
  let sent = '';
  /** Texts of calls that stand, each by its parts. */
  let calls: Map<string, string>[] = [new Map()];
  /** After a failed attempt: what stands is shorter than what was sent. */
  let isBehind = false;
  let isBlind = false;

  const grow = (part: string, text: string): string => {
    const call = calls.at(-1) ?? new Map<string, string>();
    const isFirst = [...call.values()].every((one) => one === '');
    call.set(part, (call.get(part) ?? '') + text);
    if (isBlind) return '';
    if (isBehind) return catchUp(false);
    const more = isFirst && sent !== '' ? `\n\n${text}` : text;
    sent += more;
    return more;
  };

  const catchUp = (
    isEnd: boolean,
    standing = joined(calls.map((call) => [...call.values()].join('')).filter((text) => text !== '')),
  ): string => {
    if (standing.startsWith(sent)) {
      const more = standing.slice(sent.length);
      sent = standing;
      isBehind = false;
      return more;
    }
    // What was stopped half way may be recorded without its end.
    if (sent.startsWith(standing) && (!isEnd || sent.slice(standing.length).trim() === '')) return '';
    throw restarted();
  };

  return {
    take(piece) {
      switch (piece.kind) {
        case 'call':
          calls.push(new Map());
          return '';
        case 'grow':
          return piece.of === 'text' ? grow(piece.part, piece.text) : '';
        case 'void':
          calls = calls.map((call) => new Map([...call].filter(([part]) => !piece.parts.includes(part))));
          isBehind = true;
          return '';
        case 'resync':
          isBlind = true;
          return '';
        default:
          return '';
      }
    },
    end: ({ texts, result }) => catchUp(result.stopReason === 'end', joined(texts)),
  };
}

function restarted(): GatewayError {
  return new GatewayError({
    status: 503,
    type: 'answer-restarted',
    message:
      'the model failed half way and began its answer anew, in other words, which this protocol cannot show: the turn goes on, and the ' +
      'same request with the same Idempotency-Key answers with it',
  });
}
