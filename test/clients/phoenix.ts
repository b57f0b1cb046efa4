/** Traces in a real Phoenix (PyPI): one conversation is sent to it by OTLP, and read back with its client. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../src/testing/temporal-server.js';
import { latestResults, saidIn } from '../support/echo-model.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { callTool, text, type Reply } from '../support/provider-apis/reply.js';
import { dieWithUs } from '../support/reaper.js';
import { waitFor } from '../support/wait-for.js';
import { openPlace } from './place.js';
import { environment, onPypi, outcomesIn, PROGRAMS } from './python.js';
import { runProgram } from './run-program.js';
import type { ClientPlace, Outcome, Suite } from './suite.js';

const PHOENIX = 'arize-phoenix==20.26.1';
/** It migrates its database first. */
const STARTS_MS = 180_000;
const CONVERSATION = 'a-traced-talk';

export const phoenixSuite: Suite = { name: 'Phoenix', client: onPypi(PHOENIX), run: tracedTalk };

async function tracedTalk({ cacheDir }: ClientPlace): Promise<readonly Outcome[]> {
  const python = await environment(cacheDir, [PHOENIX]);
  const phoenix = await startPhoenix(python);
  try {
    const place = await openPlace(cacheDir, {
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: phoenix.url,
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true',
        OTEL_BSP_SCHEDULE_DELAY: '200',
        PERDURA_MODEL: 'anthropic/claude-sonnet-4-5',
      },
      agents: {
        default: {
          tools: ['get_time', 'write_file', 'delegate'],
          approvals: [{ tool: 'write_file', policy: 'ask' }],
          delegation: { agents: ['clerk'] },
        },
        clerk: { tools: [] },
      },
      answer,
    });
    try {
      await talk(place);
      const env = {
        PHOENIX_URL: phoenix.url,
        CONVERSATION,
        PERDURA_URL: place.url,
        PERDURA_TOKEN: place.token,
        PYTHONDONTWRITEBYTECODE: '1',
      };
      return [...outcomesIn(await runProgram(python, [join(PROGRAMS, 'traces.py')], { env })), ...place.problems.map(toFailure)];
    } finally {
      await place.close();
    }
  } finally {
    await phoenix.stop();
  }
}

function toFailure(why: string): Outcome {
  return { check: "what the model's API is asked", result: 'failed', why };
}

/** A turn with a quick tool, one with an approval, one with a sub-agent; then older turns become memory, and it goes on. */
async function talk({ url, token }: ClientPlace): Promise<void> {
  const ask = async (path: string, body?: object): Promise<Readonly<Record<string, unknown>>> => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    };
    const response = await fetch(`${url}/v1/conversations/${CONVERSATION}${path}`, {
      headers,
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    const answered = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${answered}`);
    return JSON.parse(answered) as Readonly<Record<string, unknown>>;
  };
  await ask('/messages', { text: 'What time is it?', start: {} });
  const paid = ask('/messages', { text: 'Write it down.' });
  await waitFor(
    () => ask('/approvals'),
    (waiting) => JSON.stringify(waiting).includes('turn_0002/c1'),
  );
  await ask('/decide', { callId: 'turn_0002/c1', decision: 'approve', note: 'as you like' });
  await paid;
  await ask('/messages', { text: 'Let the clerk look it up.' });
  for (const n of [4, 5, 6, 7]) await ask('/messages', { text: `And ${n}?` });
  await ask('/compact', {});
  await ask('/messages', { text: 'And now?' });
}

function answer(request: ApiRequest): Reply {
  const usage = { input_tokens: 100, cache_read_input_tokens: 50, cache_creation_input_tokens: 30, output_tokens: 20 };
  const said = saidIn(request).at(-1) ?? '';
  if (latestResults(request).length > 0) return { ...text('That is done.'), usage };
  if (said.includes('What time')) return { ...callTool('get_time'), usage };
  if (said.includes('Write it')) return { ...callTool('write_file', { path: 'note.txt', content: 'noon' }), usage };
  if (said.includes('Let the clerk')) return { ...callTool('delegate', { agent: 'clerk', task: 'Find the opening hours.' }), usage };
  if (said.includes('opening hours')) return { ...text('From nine to five.'), usage };
  return { ...text('All is well.'), usage };
}

async function startPhoenix(python: string): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-phoenix-'));
  const [port, grpc] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(join(python, '..', 'phoenix'), ['serve'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: dir,
      PHOENIX_HOST: '127.0.0.1',
      PHOENIX_PORT: String(port),
      PHOENIX_GRPC_PORT: String(grpc),
      PHOENIX_WORKING_DIR: dir,
      PHOENIX_TELEMETRY_ENABLED: 'false',
      PHOENIX_ALLOW_EXTERNAL_RESOURCES: 'false',
    },
    stdio: 'ignore',
  });
  const ended = once(child, 'close').then(dieWithUs(child.pid ?? 0));
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  };
  const isUp = (): Promise<boolean> =>
    fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  try {
    await waitFor(isUp, Boolean, STARTS_MS);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop };
}
