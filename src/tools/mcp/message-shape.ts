/**
 * How deep a server's message is and how many values it has, counted in its bytes before anything parses it: sixteen mebibytes of brackets
 * take a parser seconds in which the worker does nothing else, and this a tenth of one.
 */
export const MAX_DEPTH = 128;
export const MAX_VALUES = 250_000;
export const SHAPE_REFUSAL = `it sent a message of more than ${MAX_VALUES} values, or more than ${MAX_DEPTH} deep`;

export interface JsonDepthLimit {
  /** The next bytes of a message; false once it is too deep, or has too many values. */
  pass(bytes: Uint8Array): boolean;
  /** Another message begins. */
  next(): void;
}

const [NEWLINE, QUOTE, COMMA, BACKSLASH] = [0x0a, 0x22, 0x2c, 0x5c];
const [OPENS_LIST, CLOSES_LIST, OPENS_OBJECT, CLOSES_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

export function createJsonDepthLimit(): JsonDepthLimit {
  let [depth, values, isString, isEscaped] = [0, 0, false, false];
  return {
    pass(bytes) {
      for (const byte of bytes) {
        if (isEscaped) isEscaped = false;
        else if (isString) {
          // No JSON string holds a line break: what began before one was none.
          if (byte === QUOTE || byte === NEWLINE) isString = false;
          else if (byte === BACKSLASH) isEscaped = true;
        } else if (byte === QUOTE) isString = true;
        else if (byte === COMMA) values++;
        else if (byte === OPENS_LIST || byte === OPENS_OBJECT) {
          depth++;
          values++;
        } else if (byte === CLOSES_LIST || byte === CLOSES_OBJECT) {
          // What a comment between events closes has never been open.
          depth = Math.max(0, depth - 1);
        }
        if (depth > MAX_DEPTH || values > MAX_VALUES) return false;
      }
      return true;
    },
    next() {
      [depth, values, isString, isEscaped] = [0, 0, false, false];
    },
  };
}
