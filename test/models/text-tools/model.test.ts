import type { ModelRequest, ModelResponse } from '../../../src/models/model.js';
import { withTextTools } from '../../../src/models/text-tools/model.js';

const REQUEST: ModelRequest = {
  model: 'm',
  maxTokens: 100,
  system: 'You are.',
  tools: [{ name: 'read_file', description: 'Reads.', inputSchema: { type: 'object', properties: { path: { type: 'string' } } } }],
  messages: [
    { role: 'user', text: 'read' },
    {
      role: 'assistant',
      model: 'x/m',
      stop: 'tool-calls',
      blocks: [{ kind: 'tool-call', callId: 'c1', name: 'read_file', input: { path: 'a<b>.md', depth: 2 } }],
    },
    { role: 'tool', callId: 'c1', name: 'read_file', outcome: 'ok', text: 'content' },
  ],
};

async function run(answer: Partial<ModelResponse>, format: 'xml' | 'json'): Promise<{ asked: ModelRequest; response: ModelResponse }> {
  let asked: ModelRequest | undefined;
  const model = withTextTools(
    {
      provider: 'x',
      stream: (request) => {
        asked = request;
        const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 1 };
        return Promise.resolve({ blocks: [], stop: 'end', usage, ...answer } as ModelResponse);
      },
    },
    format,
  );
  const response = await model.stream(REQUEST, { signal: new AbortController().signal, onDelta: () => undefined });
  if (!asked) throw new Error('not asked');
  return { asked, response };
}

const said = (text: string): Partial<ModelResponse> => ({ blocks: [{ kind: 'text', text }] });

test.each(['xml', 'json'] as const)('tools, calls and results go as %s, and what is asked for is read back', async (format) => {
  const call =
    format === 'xml' ? '<tool name="read_file">\n<arg name="path">b.md</arg>\n</tool>' : '{"tool": "read_file", "input": {"path": "b.md"}}';
  const { asked, response } = await run(said(`I look.\n${call}\n`), format);
  expect(asked.tools).toEqual([]);
  expect(asked.system).toMatch(/^You are\.\n\n[^]*read_file: Reads\./);
  expect(asked.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  expect(JSON.stringify(asked.messages)).not.toContain('callId');
  expect(asked.messages[2]).toEqual({ role: 'user', text: 'Result of read_file (ok):\ncontent' });
  expect(response).toMatchObject({
    stop: 'tool-calls',
    blocks: [
      { kind: 'text', text: 'I look.' },
      { kind: 'tool-call', name: 'read_file', input: { path: 'b.md' } },
    ],
  });
});

test('its own writing of a call is what it would read', async () => {
  const { asked } = await run(said(''), 'xml');
  const call = asked.messages[1];
  const text = call?.role === 'assistant' && call.blocks[0]?.kind === 'text' ? String(call.blocks[0].text) : '';
  const { response } = await run(said(text), 'xml');
  expect(response.blocks).toMatchObject([{ kind: 'tool-call', name: 'read_file', input: { path: 'a<b>.md' } }]);
});

test('an answer without calls, or one that was cut, is left as it is', async () => {
  expect((await run(said('Just words.'), 'xml')).response.blocks).toEqual([{ kind: 'text', text: 'Just words.' }]);
  const cut = await run({ ...said('{"tool": "read_file", "input": {"path": "b.md"}}'), stop: 'max-tokens' }, 'json');
  expect(cut.response).toMatchObject({ stop: 'max-tokens', blocks: [{ kind: 'text' }] });
});

test('a call that cannot be run is reported, not run', async () => {
  const { response } = await run(said('{"tool": "rm", "input": {}}'), 'json');
  expect(response.stop).toBe('end');
  expect(JSON.stringify(response.blocks)).toContain('rm');
  expect(response.blocks.every(({ kind }) => kind === 'text')).toBe(true);
});
