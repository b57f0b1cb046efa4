/**
 * How much a model of Ollama takes, as its server says (`/api/show`).
 *
 * - Without `num_ctx` the server cuts prompts at a size that it does not report, so every call sends it.
 * - The agent's `context.maxTokens` decides, then the model's `num_ctx`, then DEFAULT_WINDOW, since a model's maximum may need more
 *   than the machine's memory. None of them exceeds the model's maximum.
 * - The server's answer is bounded, in time, bytes and range. No answer is no error: the call itself shows what is wrong.
 */
import { timeoutSignal } from '../../platform/promises.js';
import type { ContextWindow } from '../context-window.js';
import { asObject, asText } from '../read-json.js';

export const DEFAULT_WINDOW = 32_768;
const SMALLEST = 256;
const LARGEST = 10_000_000;
const MAX_BYTES = 4 * 1024 * 1024;
const PATIENCE_MS = 5_000;
/** A model may be made anew under its name; a server that was away comes back. */
const REMEMBERED_MS = 600_000;
const TRIED_AGAIN_MS = 60_000;
const MAX_REMEMBERED = 64;

/** Of one model; undefined for what the server did not say. */
export interface ShownWindow {
  /** What it was made for. */
  readonly most?: number;
  /** `num_ctx` of its Modelfile. */
  readonly set?: number;
}

export function toContextWindow({ most, set }: ShownWindow, wanted?: number): ContextWindow {
  return { tokens: Math.min(wanted ?? set ?? DEFAULT_WINDOW, most ?? Infinity), isKnown: most !== undefined };
}

export function readShown(body: unknown): ShownWindow {
  const { model_info: info, parameters } = asObject(body);
  const lengths = Object.entries(asObject(info)).flatMap(([name, value]) => (name.endsWith('.context_length') ? inRange(value) : []));
  const [set] = inRange(Number(/^num_ctx\s+(\d{1,12})\s*$/m.exec(asText(parameters))?.[1]));
  // A model of two parts, one for pictures, names the length of each: prompts go through the smaller one.
  return { ...(lengths.length > 0 && { most: Math.min(...lengths) }), ...(set !== undefined && { set }) };
}

/** Asks once for each model, and again after a while. Never rejects. */
export function createWindows(
  { host, headers }: { readonly host: string; readonly headers: Readonly<Record<string, string>> },
  { fetch: ask = fetch, now = Date.now }: { readonly fetch?: typeof fetch; readonly now?: () => number } = {},
): (model: string) => Promise<ShownWindow> {
  const known = new Map<string, { readonly shown: Promise<ShownWindow>; until: number }>();
  const show = async (model: string): Promise<ShownWindow> => {
    const signal = timeoutSignal(PATIENCE_MS);
    const body = JSON.stringify({ model });
    const response = await ask(`${host}/api/show`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      signal,
    });
    if (response.ok) return readShown(JSON.parse(await boundedText(response)));
    await response.body?.cancel();
    return {};
  };
  return (model) => {
    const found = known.get(model);
    if (found && now() < found.until) return found.shown;
    const shown = show(model).catch((): ShownWindow => ({}));
    const entry = { shown, until: now() + REMEMBERED_MS };
    void shown.then(({ most }) => {
      if (most === undefined) entry.until = now() + TRIED_AGAIN_MS;
    });
    known.delete(model);
    known.set(model, entry);
    for (const oldest of known.keys()) if (known.size > MAX_REMEMBERED) known.delete(oldest);
    return shown;
  };
}

function inRange(value: unknown): [number] | [] {
  return typeof value === 'number' && Number.isInteger(value) && value >= SMALLEST && value <= LARGEST ? [value] : [];
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  if (!response.body) return '';
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
