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

const CONFORMANCE = '@modelcontextprotocol/conformance@0.2.0-alpha.12';
const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0';

const REVISIONS = ['2025-11-25', '2026-07-28'] as const;
type Revision = (typeof REVISIONS)[number];

export const MCP_SUITES: readonly Suite[] = [
  ...REVISIONS.map((revision) => ({
    name: `MCP ${revision}, conformance suite`,
    client: named(CONFORMANCE),
    run: (place: ClientPlace) => conformance(place, revision),
  })),
  { name: 'MCP, inspector', client: `${named(INSPECTOR)} --cli`, run: inspector },
];

const EXAMPLE_TOOLS = "they call tools that the suite's own example server has";
const NO_PROMPTS = 'there are no prompts, and so no completions';
const NO_LOG = 'no log is sent to clients';

type Reasons = Readonly<Record<string, readonly string[]>>;

/**
 * What asks for what is not there by design, by the reason: scenarios, and checks of others as SCENARIO/CHECK. Those of which nothing is
 * known here must pass.
 */
const APART_IN_BOTH: Reasons = {
  [EXAMPLE_TOOLS]: [
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
  [NO_PROMPTS]: [
    'prompts-list',
    'prompts-get-simple',
    'prompts-get-with-args',
    'prompts-get-embedded-resource',
    'prompts-get-with-image',
    'completion-complete',
  ],
};
const APART: Readonly<Record<Revision, Reasons>> = {
  '2025-11-25': {
    [NO_LOG]: ['logging-set-level', 'tools-call-with-logging'],
    'over HTTP the client is asked for nothing in this revision': [
      'tools-call-sampling',
      'tools-call-elicitation',
      'elicitation-sep1034-defaults',
      'elicitation-sep1330-enums',
    ],
    'there are no subscriptions': ['resources-subscribe', 'resources-unsubscribe'],
    'there are no sessions, and so no broken streams to resume': [
      'server-sse-polling',
      'server-sse-multiple-streams',
      'server-session-lifecycle',
    ],
  },
  '2026-07-28': {
    [EXAMPLE_TOOLS]: [
      'input-required-result-basic-elicitation',
      'input-required-result-basic-sampling',
      'input-required-result-basic-list-roots',
      'input-required-result-request-state',
      'input-required-result-multiple-input-requests',
      'input-required-result-multi-round',
      'input-required-result-missing-input-response',
      'input-required-result-result-type',
      'input-required-result-tampered-state',
      'input-required-result-capability-check',
      'input-required-result-ignore-extra-params',
      'input-required-result-validate-input',
      'server-stateless/sep-2575-server-rejects-undeclared-capability',
      'server-stateless/sep-2575-missing-capability-http-400',
      'server-stateless/sep-2575-http-server-no-independent-requests-on-stream',
      'server-stateless/sep-2575-server-no-log-without-loglevel',
    ],
    [NO_PROMPTS]: ['input-required-result-non-tool-request', 'caching/sep-2549-prompts-list-caching-hints'],
    'no tool has arguments in headers': ['http-custom-header-server-validation'],
    'the extension io.modelcontextprotocol/tasks is not there': [
      'tasks-lifecycle',
      'tasks-capability-negotiation',
      'tasks-wire-fields',
      'tasks-request-state-removal',
      'tasks-mrtr-input',
      'tasks-request-headers',
      'tasks-dispatch-and-envelope',
      'tasks-status-notifications',
      'tasks-required-task-error',
      'tasks-mrtr-composition',
    ],
  },
};

function reasonFor(revision: Revision, name: string): string | undefined {
  const all = [...Object.entries(APART_IN_BOTH), ...Object.entries(APART[revision])];
  return all.find(([, names]) => names.includes(name))?.[0];
}

async function conformance(place: ClientPlace, revision: Revision): Promise<readonly Outcome[]> {
  const tools = await installed(place.cacheDir);
  const out = await mkdtemp(join(tmpdir(), 'perdura-conformance-'));
  const proxy = await withToken(place);
  try {
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`;
    // Some of it is skipped where there is nothing to read.
    await startConversation(place);
    const ended = await tools.run('conformance', ['server', '--url', url, '--requirements', revision, '-o', out]);
    const folders = await readdir(out);
    if (folders.length === 0) throw new Error(`the suite wrote no results: ${ended.stdout}${ended.stderr}`.slice(0, 500));
    const outcomes = (await Promise.all(folders.sort().map((folder) => readOutcomes(out, folder, revision)))).flat();
    return [...outcomes, ...neverRun(outcomes, revision)];
  } finally {
    proxy.close();
    await rm(out, { recursive: true, force: true });
  }
}

async function startConversation({ url, token }: ClientPlace): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const { status } = await fetch(`${url}/v1/conversations`, { method: 'POST', headers, body: '{}' });
  if (status !== 201) throw new Error(`a conversation was not begun: ${status}`);
}

interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

/** It holds of every message, also of one that says that there is no such tool. */
const ANY_MESSAGE = 'wire-schema-valid';

/** `server-NAME-TIME` has what it found in `checks.json`. */
async function readOutcomes(out: string, folder: string, revision: Revision): Promise<readonly Outcome[]> {
  const check = folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
  const why = reasonFor(revision, check);
  if (why !== undefined) return [{ check, result: 'apart', why }];
  const checks = await readChecks(out, folder);
  const apart = new Map<string, Outcome>();
  for (const { id } of checks) {
    const reason = reasonFor(revision, `${check}/${id}`);
    if (reason !== undefined) apart.set(id, { check: `${check}/${id}`, result: 'apart', why: reason });
  }
  const asked = checks.filter(({ id }) => !apart.has(id));
  return [toOutcome(check, asked), ...apart.values()];
}

/** Of a folder with the results of one scenario. */
export async function outcomeIn(out: string, check: string): Promise<Outcome> {
  const [folder = ''] = await readdir(out);
  return toOutcome(check, await readChecks(out, folder));
}

async function readChecks(out: string, folder: string): Promise<readonly Check[]> {
  return JSON.parse(await readFile(join(out, folder, 'checks.json'), 'utf8')) as readonly Check[];
}

function toOutcome(check: string, asked: readonly Check[]): Outcome {
  const failed = asked.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
  const words = failed.map(({ id, errorMessage }) => `${id}: ${errorMessage ?? 'without a word'}`);
  const isPassed = failed.length === 0 && asked.some(({ id, status }) => status === 'SUCCESS' && id !== ANY_MESSAGE);
  return isPassed ? { check, result: 'passed' } : { check, result: 'failed', why: words.join('; ') || 'nothing was checked' };
}

/** A name that the suite no longer has would set nothing apart, unnoticed. */
function neverRun(outcomes: readonly Outcome[], revision: Revision): readonly Outcome[] {
  return [APART_IN_BOTH, APART[revision]]
    .flatMap((reasons) => Object.values(reasons).flat())
    .filter((name) => !outcomes.some(({ check }) => check === name))
    .map((check): Outcome => ({ check, result: 'failed', why: 'the suite has no such scenario or check' }));
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
