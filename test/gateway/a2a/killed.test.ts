/** A worker that dies while a task streams: who stayed, who came back and who asks later have the same bytes. */
import type { StreamResponse } from '@a2a-js/sdk' with { 'resolution-mode': 'import' };
import { oneToken } from '../../../src/gateway/access/tokens.js';
import { serveGateway } from '../../../src/gateway/serve.js';
import { saidIn } from '../../support/echo-model.js';
import { text } from '../../support/provider-apis/reply.js';
import { sceneTest } from '../../support/scene.js';
import { artifactsAfter, clientOf, collect, TOKEN } from './a2a-client.js';

const WORDS = 'All of this is said in one breath, and it is long enough to be cut in two.';
let asked = 0;

sceneTest(
  'kill -9 of the worker in the middle of a task',
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
    const client = await clientOf(gateway.url);
    const worker = await scene.startWorker();
    const part = { content: { $case: 'text' as const, value: 'tell' }, metadata: undefined, filename: '', mediaType: '' };
    const own = {
      messageId: 'm1',
      contextId: 'killed',
      taskId: '',
      role: 1,
      parts: [part],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    };
    const request = { tenant: '', message: own, configuration: undefined, metadata: undefined };
    const staying: StreamResponse[] = [];
    let id = '';
    let killed: Promise<unknown> | undefined;
    let back: Promise<StreamResponse[]> | undefined;
    for await (const event of client.sendMessageStream(request)) {
      staying.push(event);
      if (event.payload?.$case === 'task') id = event.payload.value.id;
      if (event.payload?.$case !== 'artifactUpdate' || killed !== undefined) continue;
      killed = worker.kill().then(() => scene.startWorker());
      back = collect(client.resubscribeTask({ tenant: '', id }));
    }
    await killed;
    const whole = [`tell: ${WORDS} Once more.`];
    expect(artifactsAfter(staying)).toEqual(whole);
    expect(artifactsAfter((await back) ?? [])).toEqual(whole);
    expect((await client.getTask({ tenant: '', id })).artifacts.map(({ parts }) => parts[0]?.content?.value)).toEqual(whole);
    const again = await client.sendMessage(request);
    expect(again).toMatchObject({ id, status: { state: 3 }, artifacts: [{ parts: [{ content: { value: whole[0] } }] }] });
    expect(asked).toBe(2);
  },
  120_000,
);
