/** Uploads that go wrong, over real sockets: each is refused in words, and leaves nothing. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createHash } from 'node:crypto';
import { picture, startTwoGateways, TOKEN, type Kept, type TwoGateways } from './two-gateways.js';
import { waitFor } from '../../support/wait-for.js';

const MAX_BYTES = 3_000_000;

describe.each(['file', 'redis'] as const)('over the %s store', (kind) => {
  let two: TwoGateways;
  const sockets: Socket[] = [];

  beforeAll(async () => {
    two = await startTwoGateways(kind);
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await two.close();
  });
  // Whatever was refused, of the file there is not a byte.
  const MARK = Buffer.from('not-to-be-kept-anywhere');
  const marked = (bytes = 0): Buffer => Buffer.concat([picture(0), MARK, Buffer.alloc(bytes, 7)]);
  afterEach(async () => {
    const left = async (): Promise<string[]> => {
      const bytes = await two.bytes();
      return [MARK.toString('latin1'), MARK.toString('base64').slice(2, -4), 'arriving/', ':arriving:'].filter((one) =>
        bytes.includes(one),
      );
    };
    expect(await waitFor(left, (found) => found.length === 0)).toEqual([]);
  });

  const problem = async (answer: Response): Promise<unknown> => {
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    return answer.json();
  };

  async function open(headers: readonly string[], url = two.one.url): Promise<Socket> {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(['POST /v1/attachments HTTP/1.1', 'host: localhost', `authorization: Bearer ${TOKEN}`, ...headers, '', ''].join('\r\n'));
    return socket;
  }
  async function closedWith(socket: Socket): Promise<string> {
    let answered = '';
    socket.setEncoding('latin1').on('data', (text: string) => (answered += text));
    if (!socket.closed) await once(socket, 'close');
    return answered;
  }

  test('too large, said so beforehand or not', async () => {
    const announced = await two.upload(marked(MAX_BYTES));
    expect([announced.status, await problem(announced)]).toMatchObject([
      413,
      { type: 'urn:perdura:too-large', detail: expect.stringContaining('--max-attachment') },
    ]);
    const parts = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(marked())),
      pull: (controller) => controller.enqueue(new Uint8Array(100_000)),
    });
    const init = { method: 'POST', headers: { authorization: `Bearer ${TOKEN}` }, body: parts, duplex: 'half' };
    const streamed = await fetch(`${two.one.url}/v1/attachments`, init as RequestInit);
    expect([streamed.status, await problem(streamed)]).toMatchObject([
      413,
      { type: 'urn:perdura:too-large', detail: expect.stringContaining(String(MAX_BYTES)) },
    ]);
  });

  test('of a type that is not taken, whatever its header says, and at once', async () => {
    for (const start of ['ID3\x03\x00', 'PK\x03\x04 a zip', 'text and then\x00', 'text, and half of a letter \xff']) {
      const answer = await two.upload(Buffer.concat([Buffer.from(start, 'latin1'), MARK]), { 'content-type': 'image/png' });
      expect([start, answer.status, await problem(answer)]).toMatchObject([
        start,
        415,
        { type: 'urn:perdura:media-type', detail: expect.stringContaining('no PNG') },
      ]);
    }
    const socket = await open(['content-length: 1000000']);
    socket.write(`PK\x03\x04 ${MARK.toString()}`);
    expect(await closedWith(socket)).toMatch(/^HTTP\/1\.1 415 /);
  });

  test('empty, with a body of no bytes and without one', async () => {
    for (const body of [new Uint8Array(), undefined]) {
      const answer = await fetch(`${two.one.url}/v1/attachments`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}` },
        ...(body && { body }),
      });
      expect([answer.status, await problem(answer)]).toMatchObject([
        400,
        { type: 'urn:perdura:invalid', detail: expect.stringContaining('empty') },
      ]);
    }
  });

  test('broken in the middle, as its length says or with chunks that never end', async () => {
    for (const head of ['content-length: 2000000', 'transfer-encoding: chunked']) {
      const socket = await open([head]);
      const part = marked(700_000);
      socket.write(
        head.startsWith('transfer') ? Buffer.concat([Buffer.from(`${part.byteLength.toString(16)}\r\n`), part, Buffer.from('\r\n')]) : part,
      );
      await waitFor(
        () => two.bytes(),
        (bytes) => bytes.includes(MARK.toString('latin1')),
      );
      socket.destroy();
    }
  });

  test('silent for too long, or slower than a request may be', async () => {
    const silent = await open(['content-length: 2000000']);
    silent.write(marked(700_000));
    expect(await closedWith(silent)).toMatch(/^HTTP\/1\.1 408 [\s\S]*nothing of the file came for 3 seconds, after 70\d{4} bytes/);
    const slow = await open(['content-length: 2000000'], two.hasty.url);
    const part = marked(300_000);
    const dripping = setInterval(() => slow.write(part.subarray(0, 300)), 100);
    slow.write(part);
    expect(await closedWith(slow)).toMatch(/^HTTP\/1\.1 408 [\s\S]*urn:perdura:timeout/);
    clearInterval(dripping);
  });

  test('longer than its Content-Length: what is more is no request; shorter: it is waited for in vain', async () => {
    const file = marked();
    const longer = await open([
      `content-length: ${file.byteLength - 30}`,
      `content-digest: sha-256=:${createHash('sha256').update(file).digest('base64')}:`,
    ]);
    longer.write(file);
    expect(await closedWith(longer)).toMatch(/^HTTP\/1\.1 400 [\s\S]*urn:perdura:invalid/);
    const shorter = await open([`content-length: ${file.byteLength + 30}`]);
    shorter.write(file);
    shorter.end();
    // A closed half of a connection is an end in the middle.
    expect(await closedWith(shorter)).not.toMatch(/ 201 /);
    expect(await (await two.upload(marked(), { 'content-digest': 'sha-256=:bm90IHRoaXM=:' })).text()).toContain('its SHA-256 is another');
  });

  test('as it was sent, it is kept, in parts of one byte too', async () => {
    const file = picture(5, 3_000);
    const digest = { 'content-digest': `sha-512=:eA==:, sha-256=:${createHash('sha256').update(file).digest('base64')}:` };
    const whole = (await (await two.upload(file, digest)).json()) as Kept;
    async function* bytes(): AsyncGenerator<Uint8Array> {
      for (const byte of file) yield Uint8Array.of(byte);
    }
    expect(await two.client.upload(bytes())).toMatchObject({ ref: whole.ref, sha256: whole.sha256, bytes: file.byteLength });
  });

  test('more than may wait: what waits stays, and another tenant is not held up', async () => {
    async function* once(n: number): AsyncGenerator<Uint8Array> {
      yield picture(n);
    }
    const tenant = 'crowded';
    const owner = { namespace: 'default', tenant };
    for (let n = 0; n < 1_000; n += 1) {
      const draft = await two.world.store.uploads.begin(owner);
      await draft.append(Buffer.of(1));
      await draft.keep({ id: `att_${n}`, mediaType: 'image/png', size: 1, sha256: '', at: Date.now(), expiresAt: Date.now() + 3_600_000 });
    }
    await expect(two.client.upload(once(1), { tenant })).rejects.toMatchObject({
      kind: 'queue-full',
      message: expect.stringContaining('1000 wait'),
    });
    expect(await two.client.upload(once(1), { tenant: 'quiet' })).toMatchObject({ used: false });
  });
});
