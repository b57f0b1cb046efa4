/** `perdura admin forget-person`, `verify-receipt` and `retention` as an operator runs them: a real Temporal, a file store. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from '../../support/provider-apis/reply.js';
import { runPerdura, type Ran } from '../../support/run-perdura.js';
import { createStage, say } from '../../support/stage.js';
import { bytesOfFiles } from '../../support/store-bytes.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const stage = createStage({ by: 'last' });
let world: World;
beforeAll(async () => {
  world = await startWorld({ answer: stage.answer });
});
afterAll(() => world.close());

const SECRET = { env: { PERDURA_SECRET: 's'.repeat(40) } };
const perdura = (...args: readonly string[]): Promise<Ran> => runPerdura(world, args, SECRET);

async function talk(scope: string, words: string): Promise<string> {
  const id = world.id();
  await world.client.start(id, { scope });
  stage.play(id, text(`answered ${words}`));
  await world.client.send(id, say(id, words));
  return id;
}

test('a person is erased everywhere, others stay, and the receipt is this installation’s', async () => {
  const [scope, other] = [`ada-${Date.now()}`, `bob-${Date.now()}`];
  const id = await talk(scope, 'canary-of-ada');
  const stays = await talk(other, 'canary-of-bob');

  expect(await perdura('admin', 'forget-person', scope)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('add --yes') as unknown,
  });
  const looked = JSON.parse((await perdura('admin', 'forget-person', scope, '--dry-run', '-o', 'json')).stdout) as object;
  expect(looked).toMatchObject({ of: { kind: 'scope', name: scope }, conversations: 1, running: expect.any(Number) as unknown });

  const file = join(world.dir, 'receipt.json');
  const erased = await perdura('admin', 'forget-person', scope, '--yes', '--receipt', file, '-o', 'json');
  expect(erased).toMatchObject({ code: 0 });
  await waitFor(
    () =>
      world.temporal.workflow
        .getHandle(id)
        .describe()
        .then(
          () => 'there',
          () => 'gone',
        ),
    (state) => state === 'gone',
  );
  const bytes = await bytesOfFiles(join(world.dir, 'memory'));
  expect(bytes).not.toContain('canary-of-ada');
  expect(bytes).toContain('canary-of-bob');
  expect((await perdura('show', stays)).stdout).toContain('answered canary-of-bob');

  const receipt = await readFile(file, 'utf8');
  expect(receipt).not.toContain('canary');
  expect(await perdura('admin', 'verify-receipt', file)).toMatchObject({ code: 0 });
  await writeFile(file, receipt.replace(scope, other));
  expect(await perdura('admin', 'verify-receipt', file)).toMatchObject({ code: 1 });
  expect(await perdura('admin', 'verify-receipt', join(world.dir, 'none.json'))).not.toMatchObject({ code: 0 });

  const again = await talk(scope, 'a new beginning');
  expect((await perdura('show', again)).stdout).toContain('a new beginning');
});

test('of a tenant its workspace goes too, and no other’s', async () => {
  for (const tenant of ['acme', 'globex']) {
    const folder = join(world.dir, 'workspace', tenant);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'notes.txt'), `canary of ${tenant}`);
  }
  const looked = await perdura('admin', 'forget-person', '--tenant', 'acme', '--dry-run', '-o', 'json');
  expect(JSON.parse(looked.stdout)).toMatchObject({ of: { kind: 'tenant', name: 'acme' } });
  const erased = await perdura('admin', 'forget-person', '--tenant', 'acme', '--yes', '-o', 'json');
  expect(erased).toMatchObject({ code: 0 });
  expect(await readdir(join(world.dir, 'workspace'))).toContain('globex');
  expect(await bytesOfFiles(join(world.dir, 'workspace'))).not.toContain('canary of acme');
});

test('what is no scope or tenant, and nobody, are refused before anything is looked up', async () => {
  for (const args of [[], ['a/b'], ['--tenant', 'A b'], ['--tenant', 'acme', '../x']]) {
    expect(await perdura('admin', 'forget-person', ...args, '--yes')).toMatchObject({ code: 2 });
  }
});

test('retention shows what is due by rules that are given, and deletes nothing by itself', async () => {
  const id = await talk(`eve-${Date.now()}`, 'idle since now');
  const shown = await perdura('admin', 'retention', '--keep', '90d', '-o', 'json');
  expect(JSON.parse(shown.stdout)).toMatchObject({ due: [] });
  expect(await perdura('admin', 'retention', '--keep', 'soon')).toMatchObject({ code: 2 });
  expect((await perdura('show', id)).stdout).toContain('idle since now');
});
