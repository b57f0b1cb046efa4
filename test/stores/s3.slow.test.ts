/** The archive in a bucket, against a server that speaks S3: `moto_server` of PyPI, which `npm run test:all` finds on PATH or makes. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AwsClient } from 'aws4fetch';
import { createAtRest } from '../../src/platform/at-rest.js';
import { archiveLife } from '../../src/stores/archive/collect.js';
import { createS3Archive, type S3Settings } from '../../src/stores/archive/s3.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { freePort } from '../../src/testing/temporal-server.js';
import { waitFor } from '../support/wait-for.js';
import { aConversation, userEntry } from './builders.js';

let server: ChildProcess;
let dir: string;
let settings: S3Settings;

/** One that is installed, or one in a folder of its own. */
function findMoto(): string {
  if (spawnSync('moto_server', ['--help']).status === 0) return 'moto_server';
  const venv = join(tmpdir(), 'perdura-moto');
  const moto = join(venv, 'bin', 'moto_server');
  if (spawnSync(moto, ['--help']).status === 0) return moto;
  for (const [program, ...args] of [
    ['python3', '-m', 'venv', venv],
    [join(venv, 'bin', 'pip'), 'install', '-q', 'moto[server]'],
  ] as const) {
    const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`cannot make a server of S3: ${program} ${args.join(' ')}: ${stderr}`);
  }
  return moto;
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-s3-'));
  const port = await freePort();
  server = spawn(findMoto(), ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
  const endpoint = `http://127.0.0.1:${port}`;
  settings = { bucket: 'archives', prefix: 'of/mine', endpoint, region: 'us-east-1', accessKeyId: 'id', secretAccessKey: 'key' };
  const client = new AwsClient({ accessKeyId: 'id', secretAccessKey: 'key', region: 'us-east-1', service: 's3', retries: 0 });
  await waitFor(
    () =>
      client.fetch(`${endpoint}/archives`, { method: 'PUT' }).then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status === 200,
  );
}, 300_000);
afterAll(async () => {
  server.kill();
  await rm(dir, { recursive: true, force: true });
});

test('objects come back byte for byte, are listed in pages below their prefix, and go', async () => {
  const place = createS3Archive(settings);
  const names = Array.from({ length: 1_100 }, (_, i) => `default/conv %3A&+ü/life/${i}`);
  const bytes = Buffer.from([0, 1, 254, 255, 13, 10]);
  for (let at = 0; at < names.length; at += 50) await Promise.all(names.slice(at, at + 50).map((name) => place.put(name, bytes)));
  await place.put('default/other/life/1', bytes);
  expect(await place.get(names[7] ?? '')).toEqual(bytes);
  expect(await place.get('default/none')).toBeUndefined();
  const listed: string[] = [];
  for await (const object of place.list('default/conv %3A&+ü/')) {
    expect(object.bytes).toBe(bytes.length);
    expect(object.at).toBeGreaterThan(1_700_000_000_000);
    listed.push(object.name);
  }
  expect(listed.sort()).toEqual([...names].sort());
  await place.remove(names[7] ?? '');
  await place.remove(names[7] ?? '');
  expect(await place.get(names[7] ?? '')).toBeUndefined();
});

test('a conversation is archived there, read, and deleted', async () => {
  const archive = createS3Archive(settings);
  const store = createFileStore({ dir, archive, atRest: createAtRest() });
  const key = aConversation({ conversation: 'conv_1:2:1' });
  await store.entries.append(
    key,
    Array.from({ length: 100 }, (_, i) => userEntry(i + 1, `question ${i} `.repeat(20))),
  );
  const before = await store.entries.page(key, 0, 200);
  expect(await archiveLife(store, key, { before: Date.now() / 1000, isIdle: true })).toMatchObject({ objects: 1, entries: 100 });
  expect(await store.entries.page(key, 0, 200)).toEqual(before);
  const [record] = await store.archived.index(key);
  await store.lives.delete(key);
  expect(await archive.get(record?.name ?? '')).toBeUndefined();
  await store.close();
});

test('what is wrong is said in a sentence: no bucket, no server', async () => {
  const none = createS3Archive({ ...settings, bucket: 'not-there' });
  for (const attempt of [() => none.put('a', Buffer.of(1)), () => none.get('a')])
    await expect(attempt()).rejects.toThrow(
      /the archive at s3:\/\/not-there\/of\/mine: there is no bucket not-there; see that it can be reached/,
    );
  const away = createS3Archive({ ...settings, endpoint: `http://127.0.0.1:${await freePort()}` });
  await expect(away.get('a')).rejects.toThrow(/cannot read an archive: the archive at s3:\/\/archives\/of\/mine: .*ECONNREFUSED/);
});
