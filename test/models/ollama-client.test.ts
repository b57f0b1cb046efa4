import { createOllamaModel } from '../../src/models/ollama/client.js';
import type { ModelFailure } from '../../src/models/model.js';
import { startOllamaApi } from '../support/provider-apis/ollama-api.js';
import { httpError } from '../support/provider-apis/faults.js';
import { text, type Reply } from '../support/provider-apis/reply.js';
import { request } from './builders.js';

async function askAt(
  host: (url: string) => string,
  reply: Reply,
): Promise<{ outcome: unknown; headers: Record<string, unknown> | undefined }> {
  const api = await startOllamaApi({ script: [{ reply }] });
  try {
    const model = createOllamaModel({ host: host(api.url) });
    const asked = model.stream(request({ model: 'llama' }), { signal: new AbortController().signal, onDelta: () => {} });
    const outcome: unknown = await asked.catch((error: unknown) => error);
    return { outcome, headers: api.hits[0]?.headers };
  } finally {
    await api.close();
  }
}

test('a password in the address goes along as a header, and is in no message', async () => {
  const withPassword = (url: string): string => url.replace('http://', 'http://ada:p%40ss@');
  const basic = Buffer.from('ada:p@ss').toString('base64');
  const { outcome, headers } = await askAt(withPassword, httpError(401, { message: `p@ss is wrong, and ${basic} too` }));
  expect(headers?.authorization).toBe(`Basic ${basic}`);
  expect((outcome as ModelFailure).message).toContain('401 [key] is wrong, and [key] too. Check what the server in OLLAMA_HOST asks for.');
});

test('the address may have a path and a slash at its end', async () => {
  const { outcome } = await askAt((url) => `${url}/`, text('Hi'));
  expect(outcome).toMatchObject({ stop: 'end' });
});

test('a model that is not there says how to get it', async () => {
  const { outcome } = await askAt((url) => url, httpError(404));
  expect(outcome).toMatchObject({ kind: 'not-found', message: expect.stringContaining('`ollama pull`') });
});
