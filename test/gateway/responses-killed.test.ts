/** A worker that dies while a response streams: who comes back after any number ends with the bytes of who never left. */
import OpenAI from 'openai';
import { oneToken } from '../../src/gateway/access/tokens.js';
import { serveGateway } from '../../src/gateway/serve.js';
import { saidIn } from '../support/echo-model.js';
import { text } from '../support/provider-apis/reply.js';
import { sceneTest } from '../support/scene.js';

const TOKEN = 'a-token-that-only-tests-have';
const WORDS = 'All of this is said in one breath, and it is long enough to be cut in two.';

type StreamEvent = OpenAI.Responses.ResponseStreamEvent;

/** The text of the last event's response: what clients keep. */
function finalText(events: readonly StreamEvent[]): string {
  const last = events.at(-1);
  if (last?.type !== 'response.completed') throw new Error(`ended with ${String(last?.type)}`);
  return last.response.output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => ('text' in part ? part.text : ''))
    .join('');
}

let asked = 0;

sceneTest(
  'kill -9 of the worker in the middle of a response',
  {
    impatient: true,
    redis: true,
    answer: (request) => {
      asked += 1;
      const said = saidIn(request).at(-1) ?? '';
      return { ...text(`${said}: ${WORDS}${asked > 1 ? ' Once more.' : ''}`), chunks: { size: 6, delayMs: 150 } };
    },
  },
  async (scene) => {
    const gateway = await serveGateway({ client: scene.client, authenticate: oneToken(TOKEN), port: 0 });
    scene.onClose(() => gateway.close());
    const openai = new OpenAI({ apiKey: TOKEN, baseURL: `${gateway.url}/v1` });
    const worker = await scene.startWorker();
    const staying: StreamEvent[] = [];
    const leaving: StreamEvent[] = [];
    let id = '';
    let killed: Promise<unknown> | undefined;
    for await (const event of await openai.responses.create({ model: 'default', input: 'tell', stream: true })) {
      staying.push(event);
      if (event.type === 'response.created') id = event.response.id;
      if (event.type !== 'response.output_text.delta' || killed !== undefined) continue;
      leaving.push(...staying);
      killed = worker.kill().then(() => scene.startWorker());
    }
    await killed;
    const last = leaving.at(-1)?.sequence_number ?? 0;
    for await (const event of await openai.responses.retrieve(id, { stream: true, starting_after: last })) leaving.push(event);
    expect(finalText(staying)).toBe(`tell: ${WORDS} Once more.`);
    expect(finalText(leaving)).toBe(finalText(staying));
    expect(leaving.map(({ sequence_number: n }) => n)).toEqual(leaving.map((_, at) => at));
    expect(staying.map(({ type }) => type)).toEqual(leaving.map(({ type }) => type));
    expect((await openai.responses.retrieve(id)).output_text).toBe(finalText(staying));
    expect(await openai.responses.stream({ response_id: id, starting_after: last }).finalResponse()).toMatchObject({
      output_text: finalText(staying),
    });
  },
  120_000,
);
