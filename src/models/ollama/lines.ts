/**
 * Looks at the lines of a stream before the SDK does: that one prints a line it cannot read and goes on without it, and
 * makes of a refusal an error like any other.
 */
import { isRecord } from '../read-json.js';
import { toRefusal } from '../refusal.js';
import { brokenStream } from '../unread-call.js';

/** The same response; its body breaks at a line that is no JSON, or that says no. */
export function withCheckedLines(response: Response): Response {
  if (!response.body) return response;
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = '';
  const check = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') controller.enqueue(encoder.encode(`${checked(line)}\n`));
    },
    flush(controller) {
      if (rest.trim() !== '') controller.enqueue(encoder.encode(`${checked(rest)}\n`));
    },
  });
  return new Response(response.body.pipeThrough(check), response);
}

function checked(line: string): string {
  const value = parsed(line);
  if (isRecord(value) && 'error' in value) throw toRefusal(value);
  return line;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw brokenStream('a line is no JSON', cause);
  }
}
