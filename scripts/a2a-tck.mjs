/**
 * `node scripts/a2a-tck.mjs --tck DIR [--level must|should|may]`: the A2A TCK (github.com/a2aproject/a2a-tck, branch 1.0-dev, checked out in
 * DIR) against a gateway on the real stack. `--url` and `--token` name another gateway, whose agent must do what the scenarios of the TCK
 * ask for. Its packages of Python lie in `.perdura/a2a-tck`; results there too. Exit code 1 where something fails that should not.
 *
 * Between the two stands a proxy, because the TCK sends no token, uses the id of a message more than once (the same id is one message
 * here), and names what the agent shall do in that id, which no model reads: the proxy adds the token, makes the ids different, and puts
 * the scenario beside the words of a message that begins a task.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { findOnPath, runProgram } from './programs.mjs';
import { Missing, report, run } from './report.mjs';
import { temporalProgram } from './temporal-program.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const own = join(root, '.perdura', 'a2a-tck');
const PACKAGES = [
  'pytest',
  'pytest-asyncio',
  'httpx',
  'grpcio',
  'protobuf',
  'googleapis-common-protos',
  'jsonschema',
  'pytest-html',
  'gherkin-official',
  'Jinja2',
];

/** Tests that do not apply, and why. */
const NOT_APPLICABLE = [
  [/TestFileArtifact|TestFileUrlArtifact/, 'an agent answers with text or data; files that it makes stay in its workspace'],
  [/CORE-SEND-003/, 'it gets the error that its text wants (-32005), and its runner wants a success'],
  [/TestMessageResponse/, 'every message is a task, since it must outlive its connection; only /new is answered with a message'],
];

/** Resolves with `{ passed, failed, notApplicable, skipped }`, lists of `{ name, why }`; `level`: `must` unless it says otherwise. */
export async function runA2aTck({ folder, url, token, level = 'must' }) {
  if (!existsSync(join(folder, 'tests', 'compatibility')))
    throw new Missing(`${folder} has no A2A TCK: check out branch 1.0-dev of github.com/a2aproject/a2a-tck there`);
  const python = await pythonWith(PACKAGES);
  const gateway = url === undefined ? await startGateway() : { url, token, close: () => undefined };
  const proxy = await startProxy(gateway);
  try {
    const junit = join(own, 'junit.xml');
    const selected = ['--transport=jsonrpc', '-m', level, '-q', '--tb=short', '-p', 'no:cacheprovider', `--junitxml=${junit}`];
    const tested = await runProgram(python, ['-m', 'pytest', 'tests/compatibility/', `--sut-host=${proxy.url}`, ...selected], {
      cwd: folder,
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    });
    if (tested.code > 1) throw new Error(`the TCK did not run:\n${tested.output}`);
    return resultsIn(readFileSync(junit, 'utf8'));
  } finally {
    proxy.close();
    await gateway.close();
  }
}

/** A virtual environment that has them, made where there is none. */
async function pythonWith(packages) {
  const venv = join(own, `venv-${createHash('sha256').update(packages.join()).digest('hex').slice(0, 8)}`);
  const python = join(venv, 'bin', 'python');
  if (existsSync(join(venv, 'complete'))) return python;
  const system = findOnPath('python3');
  if (system === undefined) throw new Missing('the A2A TCK needs python3 (3.11 or newer)');
  mkdirSync(own, { recursive: true });
  for (const [program, args] of [
    [system, ['-m', 'venv', '--clear', venv]],
    [python, ['-m', 'pip', 'install', '-q', ...packages]],
    [python, ['-c', `open(${JSON.stringify(join(venv, 'complete'))}, 'w')`]],
  ]) {
    const { code, output } = await runProgram(program, args);
    if (code !== 0) throw new Missing(`cannot make ${venv}: ${output}`);
  }
  return python;
}

async function startGateway() {
  const inTest = (...path) => join(root, 'test', ...path);
  const args = ['--require', inTest('stores', 'register-swc.cjs'), inTest('gateway', 'a2a', 'tck-gateway.ts')];
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...(await temporalProgram()) },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((done) => child.once('close', done));
  const [line] = await Promise.race([
    new Promise((done) => createInterface({ input: child.stdout }).once('line', (first) => done([first]))),
    ended.then((code) => Promise.reject(new Error(`the gateway ended with ${code}`))),
  ]);
  return {
    ...JSON.parse(line),
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}

async function startProxy({ url, token }) {
  let number = 0;
  const server = createServer((request, response) => {
    void (async () => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = adapted(Buffer.concat(chunks), (number += 1));
      // The card names the address that it was asked at: `host` stays.
      const headers = { ...request.headers, authorization: `Bearer ${token}`, 'content-length': Buffer.byteLength(body) };
      const passedOn = ask(url + request.url, { method: request.method, headers }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      passedOn.on('error', (error) => response.destroy(error));
      response.on('close', () => passedOn.destroy());
      passedOn.end(body);
    })().catch((error) => response.destroy(error));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function adapted(body, number) {
  let request;
  try {
    request = JSON.parse(body);
  } catch {
    return body;
  }
  const message = request?.params?.message;
  if (!Array.isArray(message?.parts) || typeof message.messageId !== 'string') return body;
  const scenario = message.messageId;
  message.messageId = `${scenario}-${number}`;
  if (message.taskId === undefined) message.parts.push({ data: { scenario } });
  // Data is what an agent here answers with where a schema asks for it.
  if (scenario.startsWith('tck-artifact-data')) message.metadata = { output: { type: 'object' } };
  return JSON.stringify(request);
}

function resultsIn(xml) {
  const results = { passed: [], failed: [], notApplicable: [], skipped: [] };
  for (const [, head, , inside = ''] of xml.matchAll(/<testcase ([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const attribute = (name) => unescaped(new RegExp(`(?:^| )${name}="([^"]*)"`).exec(head)?.[1] ?? '');
    const name = `${attribute('classname').split('.').slice(-2).join('.')}.${attribute('name')}`;
    if (/\[(grpc|http_json)\]|\[[^\]]*-(grpc|http_json)\]|\.grpc\.|\.http_json\.|_rest$|TestRest|TestGrpc|TestHttpJson/.test(name))
      continue;
    const [, what, more = ''] = /<(failure|error|skipped)([^>]*)>/.exec(inside) ?? [];
    const why = unescaped(/message="([^"]*)"/.exec(more)?.[1] ?? '').split('\n')[0];
    if (/^Transport '(grpc|http_json)' not configured/.test(why)) continue;
    const [, reason] = NOT_APPLICABLE.find(([pattern]) => pattern.test(name)) ?? [];
    if (what === undefined) results.passed.push({ name, why: '' });
    else if (reason !== undefined) results.notApplicable.push({ name, why: reason });
    else if (what === 'skipped') results.skipped.push({ name, why });
    else results.failed.push({ name, why });
  }
  return results;
}

function unescaped(text) {
  const entities = { amp: '&', lt: '<', gt: '>', quot: '"', '#10': '\n' };
  return text.replace(/&(amp|lt|gt|quot|#10);/g, (_, entity) => entities[entity]);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await run(async () => {
    const { values } = parseArgs({
      options: {
        tck: { type: 'string' },
        url: { type: 'string' },
        token: { type: 'string' },
        level: { type: 'string' },
        help: { type: 'boolean' },
      },
    });
    if (values.help === true || values.tck === undefined) {
      process.stdout.write('node scripts/a2a-tck.mjs --tck DIR [--level must|should|may] [--url URL --token TOKEN]\n');
      return values.help === true ? 0 : 2;
    }
    const { tck, ...rest } = values;
    const results = await runA2aTck({ folder: resolve(tck), ...rest });
    for (const [kind, list] of Object.entries(results)) {
      for (const { name, why } of kind === 'passed' ? [] : list) process.stdout.write(`${kind}  ${name}${why === '' ? '' : `: ${why}`}\n`);
    }
    const count = (kind) => `${results[kind].length} ${kind}`;
    report('A2A TCK', ['passed', 'failed', 'notApplicable', 'skipped'].map(count).join(', '));
    return results.failed.length > 0 ? 1 : 0;
  });
}
