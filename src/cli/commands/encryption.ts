/** What an installation needs whose content is encrypted: a new key, Temporal's page that shows words, and MEMORY.md in an editor. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../config.js';
import { atRestKeyId } from '../../platform/at-rest.js';
import { errorMessage } from '../../platform/errors.js';
import { newLines } from '../../records/memory/documents.js';
import { formatQuantity } from '../../records/time-in-words.js';
import type { Store } from '../../stores/store.js';
import { OF_CONVERSATION, openScope, SCOPE, type ScopeWanted } from '../args/find-conversation.js';
import { addValue, readAnyPort } from '../args/values.js';
import type { Answer, CommandFrame, CommandRow } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { onInterrupt, onTermination } from '../terminal/input.js';
import { shortVersion } from '../views/memory.js';

const CODEC_PORT = 7281;
const LOOPBACK = ['127.0.0.1', '::1', 'localhost'];
/** Of a server that `npm start` or `perdura up` has started. */
const PAGES = ['http://127.0.0.1:8233', 'http://localhost:8233'];
/** Of a large store, so that a person sees that it goes on. */
const PLACES_BETWEEN_NOTES = 200;

interface CodecServerWanted {
  readonly host: string;
  readonly port: number;
  readonly origin: readonly string[];
}

export const ENCRYPTION: readonly CommandRow[] = [
  {
    name: 'admin rekey',
    description: 'encrypt anew, with the newest key of PERDURA_ENCRYPTION, what the store has in plain or by an older key',
    help: `Workers may run: they, gateways and commands must have the newest key already. A second run finds nothing. Histories of Temporal are
not rewritten: keep the older key until the retention of its runs has passed.`,
    run: rekey,
  },
  {
    name: 'admin codec-server',
    description: "decrypt for Temporal's page and its `temporal` program until Ctrl+C",
    options: [
      ['--host <address>', 'where to listen; other machines need PERDURA_GATEWAY_TOKEN', String, '127.0.0.1'],
      ['--port <port>', 'a port; 0: any that is free', readAnyPort, CODEC_PORT],
      ['--origin <origin>', "address of Temporal's page, such as https://temporal.example; more than once", addValue, []],
    ],
    help: `In Temporal's page: the glasses at the top right, then the address that is printed.
With its program: temporal workflow show -w ID --codec-endpoint http://127.0.0.1:${CODEC_PORT}`,
    run: serveCodec,
  },
];

export const MEMORY_EDIT: readonly CommandRow[] = [
  {
    name: 'memory edit',
    description: 'edit MEMORY.md of a scope in $EDITOR, wherever it is stored, encrypted too',
    args: [SCOPE],
    options: [OF_CONVERSATION],
    run: editMemory,
  },
];

async function rekey({ config: load, output }: CommandFrame): Promise<Answer> {
  const config = load();
  const [newest, ...older] = readKeys(config);
  const store = await openStore(config);
  let [values, left, places] = [0, 0, 0];
  try {
    for await (const each of store.reseal()) {
      values += each.values;
      left += each.left;
      if (each.values > 0 && (places += 1) % PLACES_BETWEEN_NOTES === 0) output.note(`${formatQuantity(values, 'value')} so far`);
    }
  } finally {
    await store.close();
  }
  const done = values === 0 ? 'nothing was left to do' : `${formatQuantity(values, 'value')} in ${formatQuantity(places, 'place')}`;
  return {
    data: { key: newest, older, values, left, places },
    text: `the store is encrypted with key ${newest}: ${done}`,
    ...(older.length > 0 && {
      notes: [`Temporal's histories still need ${older.join(', ')}: keep it until the retention of runs that began before has passed`],
    }),
    ...(left > 0 && { problems: [`${formatQuantity(left, 'value')} changed meanwhile: run it again`] }),
    exitCode: left > 0 ? EXIT.failed : EXIT.ok,
  };
}

/** Names of the keys, the newest first. */
function readKeys(config: Config): readonly [string, ...string[]] {
  const [newest, ...older] = config.encryptionRoots().map(atRestKeyId);
  if (newest !== undefined) return [newest, ...older];
  throw new CliError(
    'nothing is encrypted: set PERDURA_ENCRYPTION, the same for all processes of the installation (docs/how-to/encrypt.md)',
    EXIT.usage,
  );
}

async function openStore(config: Config): Promise<Store> {
  const stores = await import('../../stores/open.js');
  return stores.openStore(config);
}

async function serveCodec({ config: load, output, surroundings }: CommandFrame, wanted: CodecServerWanted): Promise<Answer> {
  const config = load();
  readKeys(config);
  const { host, port } = wanted;
  const token = LOOPBACK.includes(host) ? undefined : config.gatewayToken;
  if (token === undefined && !LOOPBACK.includes(host))
    throw new CliError(
      `${host} is reached from other machines, which could read everything: set PERDURA_GATEWAY_TOKEN, or leave out --host`,
      EXIT.usage,
    );
  const [{ startCodecServer }, { createEncryptionCodec }] = await Promise.all([
    import('../gateway/codec-server.js'),
    import('../../client/temporal/encryption.js'),
  ]);
  const origins = wanted.origin.length === 0 ? PAGES : wanted.origin;
  const codec = createEncryptionCodec(config.encryptionRoots());
  const server = await startCodecServer({ codec, host, port, origins, token }).catch((error: unknown) => {
    throw new CliError(`cannot listen on ${host}:${port}: ${errorMessage(error)}; --port names another`, EXIT.usage);
  });
  output.note(`decrypting at ${server.url} for pages of ${origins.join(', ')} until Ctrl+C`);
  const { signals } = surroundings;
  let stops: (() => void)[] = [];
  await new Promise<void>((done) => (stops = [onInterrupt(signals, done), onTermination(signals, () => done())]));
  for (const stop of stops) stop();
  await server.close();
  return { data: { url: server.url } };
}

/** What the editor has is written only where no other writer came first. */
async function editMemory(frame: CommandFrame, scope: string | undefined, { of }: ScopeWanted): Promise<Answer> {
  const session = await frame.open();
  const { config } = session;
  const memory = await openScope(session, { scope, of });
  const key = { namespace: session.temporal.namespace, scope: memory.scope };
  const store = await openStore(config);
  const dir = await mkdtemp(join(tmpdir(), 'perdura-memory-'));
  const file = join(dir, 'MEMORY.md');
  try {
    const before = await store.documents.memory(key);
    await writeFile(file, before.text, { mode: 0o600 });
    await runEditor(config, file);
    const text = await readFile(file, 'utf8');
    if (text === before.text) return { data: { scope: key.scope, version: before.version, changed: false }, text: 'nothing was changed' };
    const lines = newLines(before.text, text).map((line) => ({ line, source: { trust: 'person' as const } }));
    const change = { id: `edit/${randomUUID()}`, ts: Date.now() / 1000, cause: 'hand' as const, from: before.version, lines };
    const written = await store.documents.writeMemory(key, { ...change, text });
    if (written.status === 'conflict')
      throw new CliError(
        `the MEMORY.md of ${key.scope} changed meanwhile: run the command again; what you wrote was\n${text}`,
        EXIT.failed,
      );
    const { version } = written;
    return { data: { scope: key.scope, version, changed: true }, text: `written, as version ${shortVersion(version)}` };
  } finally {
    await rm(dir, { recursive: true, force: true });
    await store.close();
  }
}

async function runEditor({ env }: Config, file: string): Promise<void> {
  const [program = 'vi', ...words] = (env['VISUAL'] ?? env['EDITOR'] ?? 'vi').split(/\s+/);
  const child = spawn(program, [...words, file], { stdio: 'inherit' });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  }).catch((error: unknown) => {
    throw new CliError(`cannot start ${program}: ${errorMessage(error)}; set EDITOR`, EXIT.usage);
  });
  if (code !== 0) throw new CliError(`${program} ended with ${code ?? 'a signal'}: nothing was written`, EXIT.failed);
}
