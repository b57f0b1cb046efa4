/** A worker is killed in the middle of a turn: the timeline shows where, and how the turn went on; and what `perdura serve` says of it by itself. */
import { saidIn } from '../support/echo-model.js';
import { gate, text } from '../support/provider-apis/reply.js';
import { sceneTest } from '../support/scene.js';
import { hasBrowser, picture, standBefore } from './browser.js';

const held = gate({ chars: 10 });
let asked = 0;

/** Skipped by its name on a machine without a browser. */
const onStage: typeof sceneTest = (title, ...rest) => (hasBrowser ? sceneTest(title, ...rest) : test.skip(title, () => undefined));

onStage(
  'the death of a worker stands in the timeline, with the time that was lost',
  {
    impatient: true,
    answer: (request) => {
      asked += 1;
      const said = saidIn(request).at(-1) ?? '';
      return { ...text(`You said: ${said}, and it is long enough to be cut.`), ...(asked === 1 && { hold: held }) };
    },
  },
  async (stage) => {
    const id = stage.id();
    const worker = await stage.startWorker();
    const answered = stage.client.send(id, 'hello', { start: { title: 'Cut in two' } });
    await held.reached;
    await worker.kill();
    await stage.startWorker();
    expect(await answered).toMatchObject({ stopReason: 'end' });
    held.release();

    const stand = await standBefore(stage.client);
    stage.onClose(() => stand.close());
    const { page } = await stand.open(`?timeline=${id}`);
    await page.getByText('A worker died').first().waitFor();
    expect(await page.locator('.bar-lost').count()).toBeGreaterThan(0);
    expect(await page.locator('.mark-line.worker-died').count()).toBeGreaterThan(0);
    const model = await page.locator('.bar.lane-model').first().getAttribute('aria-label');
    expect(model).toMatch(/attempt 2/);
    await page.locator('.bar.lane-model').first().click();
    expect(await page.locator('.bar-detail').innerText()).toMatch(/were lost/);
    await picture(page, 'worker-died-1440-light');

    // The product's own gateway: what it knows of agents, of itself and of the past comes with the command.
    const gateway = await stage.startGateway();
    const get = async (path: string): Promise<unknown> => {
      const answer = await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${gateway.token}` } });
      expect([path, answer.status]).toEqual([path, 200]);
      return answer.json();
    };
    expect(await get('/v1/agents/default')).toMatchObject({
      name: 'default',
      tools: expect.arrayContaining([expect.objectContaining({ name: 'read_file' })]),
    });
    expect(await get('/v1/findings')).toMatchObject({
      findings: expect.arrayContaining([expect.objectContaining({ what: 'Worker', health: 'ok' })]),
    });
    expect(await get(`/v1/conversations/${id}/moments`)).toMatchObject({ turns: [{ turn: 'turn_0001' }], problems: [] });
    expect(await get(`/v1/conversations/${id}/turns/turn_0001/why`)).toMatchObject({ inPrompt: 2, causes: [] });
  },
);
