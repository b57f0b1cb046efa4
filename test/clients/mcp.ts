/** MCP's own conformance suite and inspector. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPackages, named } from './npm-packages.js';
import type { Finished } from './run-program.js';
import type { ClientPlace, Outcome, Suite } from './suite.js';

const CONFORMANCE = '@modelcontextprotocol/conformance@0.1.16';
const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0';

export const MCP_SUITES: readonly Suite[] = [
  { name: 'MCP, conformance suite', client: named(CONFORMANCE), run: conformance },
  { name: 'MCP, inspector', client: `${named(INSPECTOR)} --cli`, run: inspector },
];

/** Scenarios that ask for what is not there by design, by the reason. Those of which nothing is known here must pass. */
const APART: Readonly<Record<string, readonly string[]>> = {
  "they call tools that the suite's own example server has": [
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-error',
    'tools-call-with-progress',
    'json-schema-2020-12',
  ],
  'they read resources of that example server': ['resources-read-text', 'resources-read-binary', 'resources-templates-read'],
  'there are no prompts, and so no completions': [
    'prompts-list',
    'prompts-get-simple',
    'prompts-get-with-args',
    'prompts-get-embedded-resource',
    'prompts-get-with-image',
    'completion-complete',
  ],
  'no log is sent to clients': ['logging-set-level', 'tools-call-with-logging'],
  'the client is asked for nothing: no sampling, no elicitation': [
    'tools-call-sampling',
    'tools-call-elicitation',
    'elicitation-sep1034-defaults',
    'elicitation-sep1330-enums',
  ],
  'there are no subscriptions': ['resources-subscribe', 'resources-unsubscribe'],
  'there are no sessions, and so no broken streams to resume': ['server-sse-polling', 'server-sse-multiple-streams'],
};

async function conformance(place: ClientPlace): Promise<readonly Outcome[]> {
  const tools = await installed(place.cacheDir);
  const out = await mkdtemp(join(tmpdir(), 'perdura-conformance-'));
  const proxy = await withToken(place);
  try {
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`;
    const ended = await tools.run('conformance', ['server', '--url', url, '--suite', 'all', '-o', out]);
    const folders = await readdir(out);
    if (folders.length === 0) throw new Error(`the suite wrote no results: ${ended.stdout}${ended.stderr}`.slice(0, 500));
    const outcomes = await Promise.all(folders.sort().map((folder) => outcomeOf(out, folder)));
    return [...outcomes, ...neverRun(outcomes)];
  } finally {
    proxy.close();
    await rm(out, { recursive: true, force: true });
  }
}

interface Check {
  readonly status: string;
  readonly errorMessage?: string;
}

/** `server-NAME-TIME` has what it found in `checks.json`. */
async function outcomeOf(out: string, folder: string): Promise<Outcome> {
  const check = folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
  const [why] = Object.entries(APART).find(([, names]) => names.includes(check)) ?? [];
  if (why !== undefined) return { check, result: 'apart', why };
  return judged(join(out, folder), check);
}

/** Of a folder with the results of one scenario. */
export async function outcomeIn(out: string, check: string): Promise<Outcome> {
  const [folder = ''] = await readdir(out);
  return judged(join(out, folder), check);
}

async function judged(folder: string, check: string): Promise<Outcome> {
  const checks = JSON.parse(await readFile(join(folder, 'checks.json'), 'utf8')) as readonly Check[];
  const failed = checks.filter(({ status }) => status === 'FAILURE').map(({ errorMessage }) => errorMessage ?? 'without a word');
  const isPassed = failed.length === 0 && checks.some(({ status }) => status === 'SUCCESS');
  return isPassed ? { check, result: 'passed' } : { check, result: 'failed', why: failed.join('; ') || 'nothing was checked' };
}

/** A name that the suite no longer has would set nothing apart, unnoticed. */
function neverRun(outcomes: readonly Outcome[]): readonly Outcome[] {
  return Object.values(APART)
    .flat()
    .filter((name) => !outcomes.some(({ check }) => check === name))
    .map((check): Outcome => ({ check, result: 'failed', why: 'the suite has no such scenario' }));
}

/** The suite cannot send a token: what stands between adds it, and changes nothing else, least of all Host and Origin. */
async function withToken({ url, token }: ClientPlace): Promise<Server> {
  const { hostname, port } = new URL(url);
  const server = createServer((incoming, answer) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    const outgoing = request({ hostname, port, path: incoming.url, method: incoming.method, headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
    });
    outgoing.once('error', () => answer.destroy());
    incoming.pipe(outgoing);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function inspector(place: ClientPlace): Promise<readonly Outcome[]> {
  const tools = await installed(place.cacheDir);
  const ask = (token: string, ...args: string[]): Promise<Finished> =>
    tools.run('mcp-inspector', ['--cli', `${place.url}/mcp`, '--transport', 'http', '--header', `Authorization: Bearer ${token}`, ...args]);
  const outcomes: Outcome[] = [];
  let conversation = '';
  const check = async (name: string, args: readonly string[], isRight: (stdout: string) => boolean): Promise<void> => {
    const { code, stdout, stderr } = await ask(place.token, ...args);
    const why = `ended with ${code}: ${stdout}${stderr}`.slice(0, 400);
    outcomes.push(code === 0 && isRight(stdout) ? { check: name, result: 'passed' } : { check: name, result: 'failed', why });
  };
  await check('tools/list', ['--method', 'tools/list'], (text) => text.includes('"send_message"'));
  const start = ['--method', 'tools/call', '--tool-name', 'start_conversation', '--tool-arg', 'message=hello'];
  await check('start_conversation', start, (text) => {
    conversation = /conversation\\": \\"([\w-]+)/.exec(text)?.[1] ?? '';
    return text.includes('You said: hello') && conversation !== '';
  });
  const send = ['--method', 'tools/call', '--tool-name', 'send_message', '--tool-arg', `conversation=${conversation}`, 'text=again'];
  await check('send_message', send, (text) => text.includes('You said: again'));
  await check('resources/list', ['--method', 'resources/list'], (text) => text.includes(`conversation://${conversation}`));
  const read = ['--method', 'resources/read', '--uri', `conversation://${conversation}`];
  await check('resources/read', read, (text) => text.includes('You said: hello') && text.includes('You said: again'));
  await check('resources/templates/list', ['--method', 'resources/templates/list'], (text) => text.includes('conversation://{id}'));
  const { code, stdout, stderr } = await ask('wrong', '--method', 'tools/list');
  // After a 401 it would have a person sign in.
  const isRefused = code !== 0 && /auth_required|opens nothing/.test(`${stdout}${stderr}`);
  outcomes.push({
    check: 'a wrong token',
    result: isRefused ? 'passed' : 'failed',
    ...(!isRefused && { why: `${stdout}${stderr}`.slice(0, 400) }),
  });
  return outcomes;
}

interface Tools {
  run(bin: 'conformance' | 'mcp-inspector', args: readonly string[]): Promise<Finished>;
}

async function installed(cacheDir: string): Promise<Tools> {
  const { dir, run } = await installPackages(cacheDir, [CONFORMANCE, INSPECTOR]);
  // What it keeps of servers that were asked is no business of a person's inspector.
  const env = { HOME: dir, MCP_CATALOG_PATH: join(dir, 'catalog.json') };
  return { run: (bin, args) => run({ bin }, args, env) };
}
