/** A model's answer is held to what its request wishes, whatever the provider has made of it. */
import { streamHeld } from '../../src/activities/model-step/stream-held.js';
import type { Model, ModelDelta, ModelRequest, ModelResponse } from '../../src/models/model.js';
import type { AssistantBlock } from '../../src/records/message.js';

const USAGE = { inputTokens: 1, cachedTokens: 0, outputTokens: 1 };
const call = (name: string): AssistantBlock => ({ kind: 'tool-call', callId: name, name, input: {} });
const said = (text: string): AssistantBlock => ({ kind: 'text', text });

async function held(
  request: Partial<ModelRequest>,
  blocks: readonly AssistantBlock[],
  pieces: readonly string[] = [],
  stoppedAt?: string,
): Promise<{ readonly shown: string; readonly response: ModelResponse }> {
  const model: Model = {
    provider: 'scripted',
    stream: async (_, { onDelta }) => {
      for (const text of pieces) onDelta({ kind: 'text', text });
      return { blocks, stop: 'tool-calls', usage: USAGE, ...(stoppedAt && { stoppedAt }) };
    },
  };
  const deltas: ModelDelta[] = [];
  const whole: ModelRequest = { model: 'm', maxTokens: 1, system: '', tools: [], messages: [], ...request };
  const response = await streamHeld(model, whole, { signal: new AbortController().signal, onDelta: (delta) => deltas.push(delta) });
  return { shown: deltas.flatMap((delta) => (delta.kind === 'text' ? [delta.text] : [])).join(''), response };
}

test.each([
  ['in one piece', ['a STOP b']],
  ['cut in the middle of it', ['a S', 'TO', 'P b']],
  ['after a false beginning', ['a ', 'STOP', ' b']],
])('a stop text %s ends what is shown', async (_, pieces) => {
  const { shown, response } = await held({ stopAt: ['STOP', 'never'] }, [said('a STOP b'), call('client__x')], pieces);
  expect([shown, response.blocks, response.stop, response.stoppedAt]).toEqual(['a ', [said('a ')], 'end', 'STOP']);
});

test('what only began like a stop text is shown at the end', async () => {
  const { shown, response } = await held({ stopAt: ['STOP'] }, [said('a STO')], ['a ST', 'O']);
  expect([shown, response.blocks, response.stop]).toEqual(['a STO', [said('a STO')], 'tool-calls']);
});

test.each([
  ['STOP', 'STOP'],
  ['another', undefined],
])('a stop text that a provider names, %s, counts where it was asked for', async (stoppedAt, expected) => {
  const { response } = await held({ stopAt: ['STOP'] }, [said('a')], [], stoppedAt);
  expect(response.stoppedAt).toBe(expected);
});

test('with one call the first of a client’s tools is left, and those of the agent', async () => {
  const blocks = [call('look'), call('client__a'), call('look'), call('client__b')];
  expect((await held({ oneCall: true }, blocks)).response.blocks).toEqual(blocks.slice(0, 3));
  expect((await held({}, blocks)).response.blocks).toEqual(blocks);
});
