import { withToolFormat } from '../../src/activities/model-step/call-model.js';
import { modelLimits } from '../../src/models/known-models.js';
import { ModelFailure, type Model, type ModelRequest } from '../../src/models/model.js';

const tools = [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object', properties: {} } }];

/** What a call looks like that this model is told to make. */
async function toldToCall(name: string, textTools?: 'xml' | 'json' | 'off', own?: 'xml' | 'json'): Promise<string> {
  let asked: ModelRequest | undefined;
  const model: Model = {
    provider: 'own',
    ...(own && { textTools: own }),
    stream(request) {
      asked = request;
      return Promise.resolve({ blocks: [], stop: 'end', usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0 } });
    },
  };
  const request = { model: name, maxTokens: 10, system: '', tools, messages: [] };
  await withToolFormat(model, modelLimits(name), { textTools }).stream(request, {
    signal: new AbortController().signal,
    onDelta: () => {},
  });
  if (asked?.tools.length === 1 && asked.system === '') return 'by itself';
  return asked?.system.includes('<tool name=') ? 'xml' : 'json';
}

test.each<[string, Parameters<typeof toldToCall>, string]>([
  ['a model calls by itself', ['anthropic/claude-sonnet-5-5'], 'by itself'],
  ['a model that nobody knows too', ['own/model'], 'by itself'],
  ['a model that is known to have no tools writes its calls', ['ollama/gemma3:12b'], 'xml'],
  ['another of that server does not', ['ollama/llama3.1:8b'], 'by itself'],
  ['a provider may say so', ['own/model', undefined, 'json'], 'json'],
  ['agent.json has the last word', ['ollama/gemma3', 'json'], 'json'],
  ['… which may be that it has tools', ['ollama/gemma3', 'off'], 'by itself'],
  ['… whatever the provider says', ['own/model', 'off', 'xml'], 'by itself'],
])('%s', async (_, args, expected) => {
  expect(await toldToCall(...args)).toBe(expected);
});

// ollama/ollama#14795, langchain4j/langchain4j#3475 (vLLM), Kilo-Org/kilocode#9006 (OpenRouter), defilantech/LLMKube#126 and
// ggml-org/llama.cpp#10920 (llama.cpp).
test.each([
  'registry.ollama.ai/library/Qwen3.5:0.8b does not support tools',
  '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
  'No endpoints found that support tool use. Try disabling "question".',
  'tools param requires --jinja flag',
  'Unsupported param: tools',
])('a model that refuses tools as such writes its calls in its text, and is asked once with them: %s', async (words) => {
  const requests: ModelRequest[] = [];
  const model: Model = {
    provider: `teller-${words.length}`,
    stream(request) {
      requests.push(request);
      if (request.tools.length > 0) return Promise.reject(new ModelFailure('invalid-request', `400 ${words}`, { status: 400 }));
      return Promise.resolve({ blocks: [], stop: 'end', usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0 } });
    },
  };
  const request = { model: 'm', maxTokens: 10, system: '', tools, messages: [] };
  const options = { signal: new AbortController().signal, onDelta: () => {} };
  await withToolFormat(model, modelLimits('own/m'), {}).stream(request, options);
  await withToolFormat(model, modelLimits('own/m'), {}).stream(request, options);
  expect(requests.map((one) => one.tools.length)).toEqual([1, 0, 0]);
  expect(requests[2]?.system).toContain('<tool name=');
  // An agent that says it has tools is told what is wrong.
  const off = withToolFormat(model, modelLimits('own/m'), { textTools: 'off' }).stream(request, options);
  await expect(off).rejects.toThrow(words);
});
