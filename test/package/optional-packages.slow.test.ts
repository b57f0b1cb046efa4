/** An empty folder with our tarball and none of the optional packages: what works, what says which package it needs, and what helps. */
import { randomUUID } from 'node:crypto';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startOtlpReceiver } from '../support/otlp-receiver.js';
import { startChatApi } from '../support/provider-apis/chat-api.js';
import { text } from '../support/provider-apis/reply.js';
import { dieWithUs } from '../support/reaper.js';
import { PRODUCT } from '../support/worker-process.js';
import { addPackage, openProject, type Project } from './linked-package.js';

let project: Project;
let env: Record<string, string>;
const children: ChildProcess[] = [];
const LONG = 300_000;

beforeAll(async () => {
  project = await openProject(null);
  agent('default', {});
  agent('gpt', { model: 'openai/gpt-4o' });
  agent('falls', { models: ['offline/scripted', 'gemini/gemini-2.5-flash', 'ollama/llama3'] });
  const everything = join(PRODUCT, 'node_modules', '@modelcontextprotocol', 'server-everything', 'dist', 'index.js');
  agent('served', {}, { mcpServers: { everything: { command: process.execPath, args: [everything, 'stdio'] } } });
});

beforeEach(() => {
  env = {
    PATH: process.env['PATH'] ?? '',
    HOME: project.dir,
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '',
    PERDURA_TRUST: '1',
    PERDURA_TASK_QUEUE: `optional-${randomUUID()}`,
    OPENAI_API_KEY: 'test-key',
  };
});

afterEach(async () => {
  for (const child of children.splice(0)) {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
    child.kill('SIGKILL');
    await ended;
  }
});
afterAll(() => project?.remove());

function agent(name: string, config: object, servers?: object): void {
  const dir = join(project.dir, 'agents', name);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'agent.json'), JSON.stringify(config));
  if (servers) writeFileSync(join(dir, 'mcp.json'), JSON.stringify(servers));
}

function begin(args: readonly string[], program = [join(project.perdura, 'bin', 'perdura')]) {
  const child = spawn(process.execPath, [...program, ...args], { cwd: project.dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  child.once('exit', dieWithUs(child.pid ?? 0));
  let said = '';
  const hear = (piece: string): void => void (said += piece);
  child.stdout.setEncoding('utf8').on('data', hear);
  child.stderr.setEncoding('utf8').on('data', hear);
  return { child, said: () => said };
}

async function perdura(...args: readonly string[]): Promise<{ readonly code: unknown; readonly said: string }> {
  const { child, said } = begin(args);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, said: said() };
}

async function startWorker(): Promise<ChildProcess> {
  const { child, said } = begin(['worker']);
  await new Promise<void>((resolve, reject) => {
    const look = (): void => void (said().includes('takes work from task queue') && resolve());
    for (const stream of [child.stdout, child.stderr]) stream.on('data', look);
    child.once('close', () => reject(new Error(said())));
  });
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

test(
  'without them a chat answers, and doctor names those that agents and settings ask for',
  async () => {
    const { peerDependencies } = JSON.parse(readFileSync(join(project.perdura, 'package.json'), 'utf8')) as { peerDependencies: object };
    const there = Object.keys(peerDependencies).filter((name) => existsSync(join(project.dir, 'node_modules', name)));
    expect([Object.keys(peerDependencies).length, there]).toEqual([15, []]);

    await startWorker();
    expect(await perdura('-p', 'hello')).toMatchObject({ code: 0, said: expect.stringMatching(/\w/) });

    env['OTEL_EXPORTER_OTLP_ENDPOINT'] = 'http://127.0.0.1:9';
    const { code, said } = await perdura('doctor');
    expect(code).toBe(1);
    for (const line of [
      /✘ Agent gpt +openai\/gpt-4o cannot answer: it needs the package openai, which is not installed .*\n +→ npm install openai@6\n/,
      /– Agent gpt +tokens of openai\/gpt-4o are estimated, not counted: .* gpt-tokenizer,/,
      /! Agent falls +gemini\/gemini-2.5-flash cannot answer: .*\n +→ npm install @google\/genai@2\n/,
      /! Agent falls +ollama\/llama3 cannot answer: .*\n +→ npm install ollama@0\.6\n/,
      /✘ Agent served +its MCP servers cannot be asked: .*\n +→ npm install @modelcontextprotocol\/client@2\n/,
      /– Agent default +fetch_url shows pages as HTML, .*\n +→ npm install @mozilla\/readability@0\.6 linkedom@0\.18 turndown@7\n/,
      /✘ OpenTelemetry +no worker starts with these OTEL_\* settings: .*\n +→ npm install @opentelemetry\/sdk-node@0\.223\n/,
    ]) {
      expect(said).toMatch(line);
    }
  },
  LONG,
);

test(
  'a provider without its package fails the turn with the command that installs it, and answers once that has run',
  async () => {
    const api = await startChatApi({ answer: () => text('here I am') });
    env['OPENAI_BASE_URL'] = `${api.url}/v1`;
    const worker = await startWorker();
    const needed = 'it needs the package openai, which is not installed (`npm install openai@6`)';
    const failed = await perdura('-p', 'hello', '--agent', 'gpt');
    expect(failed).toEqual({ code: 1, said: expect.stringContaining(`cannot get an answer from openai/gpt-4o: ${needed}`) });
    await end(worker);

    addPackage(project.dir, 'openai');
    await startWorker();
    const answered = await perdura('-p', 'hello', '--agent', 'gpt');
    expect(answered).toEqual({ code: 0, said: expect.stringContaining('here I am') });
    await api.close();
  },
  LONG,
);

test(
  'MCP, in both directions',
  async () => {
    const needs = (name: string, major: number): string =>
      `it needs the package ${name}, which is not installed (\`npm install ${name}@${major}\`)`;
    const client = needs('@modelcontextprotocol/client', 2);
    const server = needs('@modelcontextprotocol/server', 2);
    expect(await perdura('mcp', 'tools', 'served')).toMatchObject({ said: expect.stringContaining(client) });
    await startWorker();
    expect(await perdura('mcp')).toEqual({ code: 1, said: expect.stringContaining(`cannot serve MCP: ${server}`) });

    for (const name of ['client', 'server']) addPackage(project.dir, `@modelcontextprotocol/${name}`);
    expect(await perdura('mcp', 'tools', 'served')).toMatchObject({ code: 0, said: expect.stringContaining('mcp__everything__echo') });
    expect(await perdura('mcp')).toMatchObject({ code: 0 });
  },
  LONG,
);

test(
  'a worker whose settings ask for OpenTelemetry starts with its package, and names it before',
  async () => {
    const otlp = await startOtlpReceiver();
    Object.assign(env, { OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' });
    const needed = 'it needs the package @opentelemetry/sdk-node, which is not installed (`npm install @opentelemetry/sdk-node@0.223`)';
    expect(await perdura('worker')).toEqual({
      code: 2,
      said: expect.stringContaining(`cannot start OpenTelemetry, which an OTEL_* setting asks for: ${needed}`),
    });
    addPackage(project.dir, '@opentelemetry/sdk-node');
    await startWorker();
    await otlp.close();
  },
  LONG,
);

test(
  'a page comes as Markdown with its packages, and as it is without',
  async () => {
    const program = `const { readablePage } = require(${JSON.stringify(join(project.perdura, 'dist/tools/builtin/web/fetch-url.js'))});
    readablePage({ html: '<h1>Tides</h1>', url: 'https://a.example/' }, new AbortController().signal)
      .then((page) => console.log(page.markdown), (error) => console.log(error.name + ': ' + error.message));`;
    const read = async (): Promise<string> => {
      const { child, said } = begin([], ['-e', program]);
      await once(child, 'close');
      return said().trim();
    };
    addPackage(project.dir, 'linkedom');
    expect(await read()).toBe(
      'MissingPackage: it needs the packages @mozilla/readability, turndown, which are not installed (`npm install @mozilla/readability@0.6 turndown@7`)',
    );
    for (const name of ['@mozilla/readability', 'turndown']) addPackage(project.dir, name);
    expect(await read()).toBe('# Tides');
  },
  LONG,
);
