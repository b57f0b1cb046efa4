/** kill -9 of the gateway while a file arrives, and while it is sent again: nothing of it stays, and sending it once more is all it takes. */
import { once } from 'node:events';
import { utimes, readdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { sceneTest, until, type GatewayProcess, type Scene } from '../../support/scene.js';
import { bytesOfFiles, bytesOfRedis } from '../../support/store-bytes.js';
import { picture, type Kept } from './two-gateways.js';

const MARK = Buffer.from('sent-in-part-only');
const FILE = Buffer.concat([picture(1), MARK, Buffer.alloc(2_000_000, 9)]);

/** Sends the beginning, and stays. */
async function begin({ url, token }: GatewayProcess): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const head = ['POST /v1/attachments HTTP/1.1', 'host: localhost', `authorization: Bearer ${token}`, `content-length: ${FILE.byteLength}`];
  socket.write([...head, '', ''].join('\r\n'));
  socket.write(FILE.subarray(0, 800_000));
  return socket;
}

async function upload({ url, token }: GatewayProcess, body: Uint8Array | ReadableStream<Uint8Array>): Promise<Kept> {
  const init = { method: 'POST', headers: { authorization: `Bearer ${token}` }, body, duplex: 'half' };
  const answer = await fetch(`${url}/v1/attachments`, init as RequestInit);
  expect(answer.status).toBe(201);
  return (await answer.json()) as Kept;
}

/** In parts, as a client does that reads from a disk. */
function streamed(): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= FILE.byteLength) controller.close();
      else controller.enqueue(new Uint8Array(FILE.subarray(at, (at += 50_000))));
    },
  });
}

for (const redis of [false, true]) {
  sceneTest(`over the ${redis ? 'redis' : 'file'} store`, { redis }, async (scene) => {
    const bytes = (): Promise<string> => (redis ? bytesOfRedis(scene.redis.url) : bytesOfFiles(join(scene.dir, 'memory')));
    const count = async (): Promise<number> => (await bytes()).split(MARK.toString('latin1')).length - 1;
    let gateway = await scene.startGateway();
    // During the upload, and during that of the same file again.
    for (let time = 0; time < 2; time += 1) {
      const socket = await begin(gateway);
      await until('a part of the file', async () => (await count()) === time + 1);
      await gateway.kill();
      socket.destroy();
      gateway = await scene.startGateway({ port: gateway.port });
    }
    const kept = await upload(gateway, streamed());
    expect(kept).toMatchObject({ mediaType: 'image/png', bytes: FILE.byteLength, used: false });
    expect(await upload(gateway, new Uint8Array(FILE))).toMatchObject({ ref: kept.ref });
    await anHourLater(scene, redis);
    // The file itself, and nothing of its beginnings.
    await until('that parts are gone', async () => (await count()) === 1);
    const again = await fetch(`${gateway.url}/v1/attachments/${kept.ref}/content`, {
      headers: { authorization: `Bearer ${gateway.token}` },
    });
    expect(Buffer.from(await again.arrayBuffer()).equals(FILE)).toBe(true);
  });
}

/** What has been silent for so long, by its own times. */
async function anHourLater(scene: Scene, redis: boolean): Promise<void> {
  if (redis) {
    const { Redis } = await import('ioredis');
    const connection = new Redis(scene.redis.url);
    const parts = (await connection.keys('*')).filter((key) => key.includes(':arriving:'));
    expect(parts).toHaveLength(2);
    for (const key of parts) {
      expect(await connection.pttl(key)).toBeGreaterThan(0);
      await connection.pexpire(key, 1);
    }
    connection.disconnect();
    return;
  }
  const folders = (await readdir(join(scene.dir, 'memory'), { recursive: true, withFileTypes: true })).filter(
    (entry) => entry.isFile() && entry.parentPath.endsWith('arriving'),
  );
  expect(folders).toHaveLength(2);
  const before = new Date(Date.now() - 61 * 60_000);
  for (const { parentPath, name } of folders) await utimes(join(parentPath, name), before, before);
  await scene.client.sweepUploads();
}
