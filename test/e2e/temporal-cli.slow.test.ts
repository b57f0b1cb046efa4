/** Somebody without any code of ours: Temporal's own command line speaks to a conversation. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { textOf, violations } from '../chaos/invariants.js';
import { answerTo, echo } from '../support/echo-model.js';
import { sceneTest, until, type Scene } from '../support/scene.js';
import { temporalProgram } from '../support/temporal-server.js';

sceneTest(
  'the temporal CLI starts a conversation and sends it signals: the same id five times is one message, and a bare text is one too',
  { answer: (request) => echo(request) },
  async (scene) => {
    const id = scene.id();
    await scene.startWorker();
    await temporal(scene, ['start', '--type', 'conversation', '--task-queue', scene.taskQueue, '-w', id]);
    for (let n = 0; n < 5; n++) await signal(scene, id, '{"id":"x","text":"hello"}');
    await signal(scene, id, '"and a bare text"');

    const history = await until('both answers', async () => {
      const entries = await scene.client.history(id);
      return entries.length >= 4 ? entries : undefined;
    });
    expect(history.map(textOf)).toEqual(['hello', answerTo('hello'), 'and a bare text', answerTo('and a bare text')]);
    expect(scene.api.hits).toHaveLength(2);
    const result = await scene.client.send(id, { id: 'x', text: 'hello' });
    expect(violations(history, [{ messageId: 'x', result, expectedText: answerTo('hello') }])).toEqual([]);
    expect(await scene.client.status(id)).toMatchObject({ turns: 2, rejectedInputs: { count: 0 } });

    const { stdout } = await temporal(scene, ['update', 'execute', '--name', 'send', '-w', id, '--input', '"by update"', '-o', 'json']);
    expect(stdout).toContain(answerTo('by update'));
  },
);

function signal(scene: Scene, id: string, input: string) {
  return temporal(scene, ['signal', '-w', id, '--name', 'message', '--input', input]);
}

function temporal(scene: Scene, args: readonly string[]) {
  const [command, ...rest] = args;
  return promisify(execFile)(temporalProgram(), ['workflow', command ?? '', ...rest, '--address', scene.address]);
}
