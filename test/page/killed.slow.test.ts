/** kill -9 of the worker while it streams into a browser: the page ends with what the store has, byte for byte. */
import { answerText } from '../../src/records/message.js';
import { gate, text } from '../support/provider-apis/reply.js';
import { sceneTest } from '../support/scene.js';
import { hasBrowser, standBefore } from './browser.js';

const ANSWER = 'Eins zwei drei vier fünf sechs sieben acht neun zehn — 🦔 elf zwölf.';
const TITLE = 'a worker that is killed in mid-word takes nothing from who looks';

if (!hasBrowser) test.skip(TITLE, () => undefined);
else
  sceneTest(TITLE, { redis: true, impatient: true }, async (scene) => {
    const held = gate({ chars: 20 });
    scene.api.play({ reply: { ...text(ANSWER), hold: held } }, { reply: text(ANSWER) });
    const stand = await standBefore(scene.client);
    scene.onClose(() => stand.close());
    const first = await scene.startWorker();
    const id = scene.id();
    const { page } = await stand.open(`?chat=${id}`);
    await page.getByLabel('Message', { exact: true }).fill('count');
    await page.keyboard.press('Enter');
    await held.reached;
    await page.getByText('Eins zwei').waitFor();
    await first.kill();
    await page.getByText('Eins zwei').waitFor();
    await scene.startWorker();
    await page.locator('.turn.is-last:not(.is-running) .turn-foot').waitFor();
    const stored = (await scene.client.history(id)).map(({ message }) => answerText(message)).join('');
    expect(stored).toBe(ANSWER);
    expect((await page.locator('.answer .markdown').allInnerTexts()).map((words) => words.trim())).toEqual([ANSWER]);
  });
