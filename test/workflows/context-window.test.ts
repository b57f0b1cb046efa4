/** A model whose server decides how much it takes. */
import { startOllamaApi } from '../support/provider-apis/ollama-api.js';
import { text } from '../support/provider-apis/reply.js';
import { say } from '../support/stage.js';
import { startWorld } from '../support/world.js';

const SHOWN = { model_info: { 'llama.context_length': 65_536 } };
const LONG = 'Some words of a long message. '.repeat(1_200);

test('the budget is what the server gives, num_ctx is asked for, and a whole prompt is no news', async () => {
  const api = await startOllamaApi({ shown: SHOWN, answer: () => text('Read.') });
  const world = await startWorld({ ollama: api.url, agent: { model: 'ollama/llama', context: { maxTokens: 100_000 } } });
  try {
    const id = world.id();
    await world.client.start(id);
    const result = await world.client.send(id, say(id, 'hello'));
    expect(result).toMatchObject({ stopReason: 'end', text: 'Read.' });
    expect(result.error).toBeUndefined();
    expect((await world.client.status(id)).context.budget).toBe(65_536 - 8_192 - 2_000);
    expect(api.hits.at(-1)?.body?.['options']).toEqual({ num_ctx: 65_536, num_predict: 8_192 });
    expect(api.problems).toEqual([]);
  } finally {
    await world.close();
    await api.close();
  }
});

test('a prompt that the server cuts silently is said with the answer, and the context keeps its size', async () => {
  const api = await startOllamaApi({ shown: SHOWN, cutsAt: 4_096, answer: () => text('Read.') });
  const world = await startWorld({ ollama: api.url, agent: { model: 'ollama/llama' } });
  try {
    const id = world.id();
    await world.client.start(id);
    const result = await world.client.send(id, say(id, LONG));
    expect(result).toMatchObject({
      stopReason: 'end',
      text: 'Read.',
      error: { type: 'prompt-cut', message: expect.stringMatching(/has read 4096\. Set context\.maxTokens of agent "default"/) },
    });
    expect((await world.client.status(id)).context.tokens).toBeGreaterThan(8_000);
  } finally {
    await world.close();
    await api.close();
  }
});
