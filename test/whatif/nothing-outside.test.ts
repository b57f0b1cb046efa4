/** While conversations are played nothing outside is touched: no socket but the model's provider's, no file but in the folder for it. */
import * as fs from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { callTool, text } from '../support/provider-apis/reply.js';
import { createModels } from '../../src/models/providers.js';
import { changeProject } from '../../src/whatif/project.js';
import { whatIf } from '../../src/whatif/whatif.js';
import type { ReportedConversation } from '../../src/whatif/report.js';
import { startRecorder } from './recorder.js';
import { createModel, createTools, type Counts } from './scripted.js';
import { startMessagesApi } from '../support/provider-apis/messages-api.js';

/** What writes, by where its path stands. */
const WRITING = [
  'writeFile',
  'appendFile',
  'mkdir',
  'mkdtemp',
  'rename',
  'unlink',
  'rm',
  'rmdir',
  'link',
  'symlink',
  'truncate',
  'copyFile',
  'chmod',
  'utimes',
];

interface Touched {
  readonly sockets: string[];
  readonly files: string[];
  stop(): void;
}

/** Notes each socket and each file that is written, from now on. */
function watch(): Touched {
  const sockets: string[] = [];
  const files: string[] = [];
  Socket.prototype.connect = function (this: Socket, ...given: unknown[]) {
    const [first] = given.flat() as ({ readonly host?: string; readonly port?: number; readonly path?: string } | undefined)[];
    sockets.push(first?.path ?? `${first?.host}:${first?.port}`);
    return (connect as (...all: unknown[]) => Socket).apply(this, given);
  };
  const patched: [Record<string, unknown>, string, unknown][] = [];
  const patch = (of: Record<string, unknown>, name: string, isWrite: (flags: unknown) => boolean): void => {
    const before = of[name];
    if (typeof before !== 'function') return;
    patched.push([of, name, before]);
    of[name] = (...given: unknown[]): unknown => {
      if (isWrite(given[1])) files.push(String(given[0]));
      return (before as (...all: unknown[]) => unknown).apply(of, given);
    };
  };
  const real = jest.requireActual<typeof fs>('node:fs');
  for (const module of [real, real.promises] as unknown as Record<string, unknown>[]) {
    for (const name of WRITING) for (const form of [name, `${name}Sync`]) patch(module, form, () => true);
    for (const name of ['open', 'openSync', 'createWriteStream'])
      patch(module, name, (flags) => name === 'createWriteStream' || isWriteFlag(flags));
  }
  return {
    sockets,
    files,
    stop() {
      Socket.prototype.connect = connect;
      for (const [of, name, before] of patched) of[name] = before;
    },
  };
}

const { connect } = Socket.prototype;

function isWriteFlag(flags: unknown): boolean {
  if (typeof flags === 'string') return flags !== 'r';
  return typeof flags === 'number' && (flags & (fs.constants.O_WRONLY | fs.constants.O_RDWR | fs.constants.O_CREAT)) !== 0;
}

test('only the provider is called, and only the folder that goes with it is written', async () => {
  const counts: Counts = { ran: 0, held: 0 };
  const recorder = await startRecorder(createModel(counts), { tools: createTools(counts) });
  const api = await startMessagesApi({
    answer: ({ messages }) =>
      messages.at(-1)?.role === 'user' && JSON.stringify(messages.at(-1)).includes('tool_result')
        ? text('Booked.')
        : callTool('book', { what: 'tea' }),
  });
  try {
    const { world, project, recordings } = recorder;
    const id = world.id();
    for (const message of ['hello', '#book tea', '#keep the key']) await world.client.send(id, message, { start: {} });
    const models = createModels({ anthropic: { apiKey: 'test-key', baseURL: api.url } });
    const candidate = changeProject({ ...project, models }, {});
    const ran = counts.ran;
    // What is being recorded may not have let go of its feed yet: the player never takes that lock.
    await world.advance(0);
    const feedLock = new RegExp(`/${id}/[^/]+/feed\\.lock$`);
    const touched = watch();
    const lines: ReportedConversation[] = [];
    try {
      for await (const line of whatIf([id], {
        ...{ recordings, project, candidate, changes: [], hasBaseline: false, policy: 'stub', memory: 'recorded', gaps: 'play', atOnce: 1 },
        signal: new AbortController().signal,
      })) {
        if (line.kind === 'conversation') lines.push(line);
      }
    } finally {
      touched.stop();
    }
    expect(lines[0]?.lanes.candidate?.sum.modelCalls).toBe(6);
    expect(counts.ran).toBe(ran);
    const { host } = new URL(api.url);
    expect(touched.sockets.length).toBeGreaterThan(0);
    expect(new Set(touched.sockets.map((address) => address.replace(/^(localhost|undefined):/, '127.0.0.1:')))).toEqual(new Set([host]));
    // The spies see writes at all.
    expect(touched.files.length).toBeGreaterThan(10);
    const written = touched.files.filter((path) => !path.startsWith(world.dir) || !feedLock.test(path));
    expect(written.filter((path) => !path.startsWith(fs.realpathSync(tmpdir())) || !path.includes('perdura-what-if-'))).toEqual([]);
    expect(written.filter((path) => fs.existsSync(path))).toEqual([]);
  } finally {
    await api.close();
    await recorder.close();
  }
});
