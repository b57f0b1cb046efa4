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
import { joined, type TurnPiece } from './turn-texts.js';

/** Gives what to send of it now; throws if the text sent before is wrong (turns/never-a-wrong-text). */
export function createOneText(): (piece: TurnPiece) => string {
  let sent = '';
  return (piece) => {
    const standing = joined(piece.texts);
    if (standing.startsWith(sent)) {
      const more = standing.slice(sent.length);
      sent = standing;
      return more;
    }
    // What was stopped half way may be recorded without its end.
    const isWhole = piece.kind === 'whole' && piece.result.stopReason === 'end';
    if (sent.startsWith(standing) && (!isWhole || sent.slice(standing.length).trim() === '')) return '';
    throw restarted();
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
