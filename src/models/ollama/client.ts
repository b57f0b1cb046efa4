/** Models that run in Ollama, on this machine or another, over its own API, streaming. */
import type { Ollama } from 'ollama' with { 'resolution-mode': 'import' };
import { loadOptional } from '../../platform/optional-package.js';
import type { Provider } from '../failure.js';
import { guardedCall, type Line } from '../guarded-call.js';
import type { Model, ModelRequest } from '../model.js';
import { createAnswer, withCheckedLines } from './answer.js';
import { renderRequest } from './render.js';
import { createWindows, windowOf } from './window.js';

export interface OllamaOptions {
  /** A URL. Default: this machine, port 11434. `user:password@` in it goes along as a header. */
  readonly host?: string;
  readonly fetch?: typeof fetch;
}

const NAME = 'ollama';
export const THIS_MACHINE = 'http://127.0.0.1:11434';

export function createOllamaModel({ host: written = THIS_MACHINE, fetch }: OllamaOptions): Model {
  const place = toPlace(written);
  const { host, headers } = place;
  const provider = toProvider(place);
  const shown = createWindows({ host, headers }, fetch && { fetch });
  return {
    provider: NAME,
    contextWindow: async (model, wanted) => windowOf(await shown(model), wanted),
    async stream(request, options) {
      const answer = createAnswer(NAME, options.onDelta);
      return await guardedCall({ provider, request, options, answer, fetch, ask: (line) => ask({ host, headers }, request, line) });
    },
  };
}

export interface Place {
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function toProvider({ secrets }: { readonly secrets: readonly string[] }): Provider {
  return {
    name: NAME,
    secrets,
    advice: {
      auth: 'Check what the server in OLLAMA_HOST asks for.',
      connection: 'Check that Ollama runs there (`ollama serve`), and OLLAMA_HOST.',
      'not-found': 'Get the model with `ollama pull`, or check its name (PERDURA_MODEL, or "model" in agent.json).',
    },
  };
}

async function* ask(place: Place, request: ModelRequest, line: Line): AsyncIterable<unknown> {
  const client = await createClient(place, line);
  yield* await client.chat(renderRequest(request));
}

/** One for each call, as its line is: the SDK stops calls only all at once. Loaded by the first call. */
export async function createClient({ host, headers }: Place, line: Line): Promise<Ollama> {
  const { Ollama: Client } = await loadOptional(['ollama'], () => import('ollama'));
  return new Client({ host, headers, fetch: async (input, init) => withCheckedLines(await line.fetch(input, init)) });
}

/** fetch takes no password in an address. */
export function toPlace(written: string): Place & { readonly secrets: readonly string[] } {
  const url = new URL(written);
  const { username, password } = url;
  url.username = '';
  url.password = '';
  const host = url.href.replace(/\/$/, '');
  if (username === '' && password === '') return { host, headers: {}, secrets: [] };
  const [user, secret] = [decoded(username), decoded(password)];
  const basic = Buffer.from(`${user}:${secret}`).toString('base64');
  return { host, headers: { Authorization: `Basic ${basic}` }, secrets: [password, secret, basic] };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
