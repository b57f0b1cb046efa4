/** The way out of a sandbox: real programs, by the proxy, to the hosts that the agent names. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEgress, type EgressRules } from '../../../src/tools/builtin/command/egress.js';
import { createRunCommand } from '../../../src/tools/builtin/command/run-command.js';
import type { ToolContext } from '../../../src/tools/tool.js';
import { connect } from 'node:net';

const dir = realpathSync(mkdtempSync(join(tmpdir(), 'perdura-egress-test-')));
let web: Server;
let port = 0;
const asked: string[] = [];

beforeAll(async () => {
  web = createServer((request, response) => {
    asked.push(`${request.method} ${request.headers.host} ${request.url}`);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => response.end(`said ${Buffer.concat(chunks).toString()}`));
  });
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
  port = (web.address() as { port: number }).port;
});
beforeEach(() => void (asked.length = 0));
afterAll(() => {
  web.close();
  rmSync(dir, { recursive: true, force: true });
});

/** What the proxy answers to one line. */
async function say(line: string, rules: EgressRules): Promise<string> {
  const egress = await openEgress(rules);
  try {
    return await new Promise((resolve, reject) => {
      const client = connect(egress.socket);
      let told = '';
      client.on('data', (chunk: Buffer) => {
        told += chunk.toString();
        if (told.includes('200 Connection established')) client.end();
      });
      client.on('error', reject);
      client.on('close', () => resolve(told));
      client.write(`${line}\r\nhost: x\r\nconnection: close\r\n\r\n`);
    });
  } finally {
    await egress.close();
  }
}

const HERE = async (): Promise<{ address: string; family: number }[]> => [{ address: '127.0.0.1', family: 4 }];

describe('which hosts are reached', () => {
  const named = (hosts: string[]): EgressRules => ({ hosts, lookup: HERE, allow: [`docs.example.org:${port}`, `example.org:${port}`] });

  test.each([
    ['a host with its port', () => [`example.org:${port}`], () => `example.org:${port}`, true],
    ['in other letters, and with its dot', () => [`Example.ORG:${port}`], () => `EXAMPLE.org:${port}`, true],
    ['another port', () => ['example.org'], () => `example.org:${port}`, false],
    ['below a named one', () => [`*.example.org:${port}`], () => `docs.example.org:${port}`, true],
    ['the named one itself is not below it', () => [`*.example.org:${port}`], () => `example.org:${port}`, false],
    ['one whose name only ends alike', () => [`*.example.org:${port}`], () => `badexample.org:${port}`, false],
    ['one that begins alike', () => [`example.org:${port}`], () => `example.org.evil.test:${port}`, false],
    ['a user name before it', () => [`example.org:${port}`], () => `example.org@evil.test:${port}`, false],
    ['this machine, named', () => [`localhost:${port}`], () => `localhost:${port}`, false],
    ['an address of this machine, named', () => [`127.0.0.1:${port}`], () => `127.0.0.1:${port}`, false],
    ['the same as a number', () => [`127.0.0.1:${port}`], () => `2130706433:${port}`, false],
  ] as const)('%s', async (_, hosts, to, isReached) => {
    const told = await say(`CONNECT ${to()} HTTP/1.1`, named([...hosts()]));
    expect(told.startsWith('HTTP/1.1 200')).toBe(isReached);
  });

  test('a refusal says what is named', async () => {
    expect(await say('CONNECT evil.test:443 HTTP/1.1', named(['example.org']))).toMatch(
      /403 Forbidden[^]*commandHosts[^]*Named: example\.org/,
    );
  });

  test('plain HTTP goes the same way, without what is meant for the proxy', async () => {
    const told = await say(`GET http://example.org:${port}/a?b=1 HTTP/1.1\r\nproxy-authorization: Basic x`, named([`example.org:${port}`]));
    expect(told).toMatch(/200 OK[^]*said/);
    expect(asked).toEqual([`GET x /a?b=1`]);
    expect(await say('GET http://evil.test/ HTTP/1.1', named(['example.org']))).toContain('403');
    expect(await say('GET /not-absolute HTTP/1.1', named(['example.org']))).toContain('403');
  });
});

const inSandbox = spawnSync('bwrap', ['--unshare-all', '--ro-bind', '/', '/', 'true']).status === 0 ? test : test.skip;

inSandbox('a program in the sandbox reaches what is named, by the variables that it knows, and nothing else', async () => {
  const silent = createTcpServer((socket) => {
    asked.push('directly');
    socket.destroy();
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port: direct } = silent.address() as { port: number };
  const tool = createRunCommand({ allow: [`localhost:${port}`] });
  const run = async (script: string): Promise<string> => {
    const context = { workspace: dir, signal: new AbortController().signal, sandbox: 'bwrap', commandHosts: [`localhost:${port}`] };
    const result = await tool.run({ command: 'bash', args: ['-c', script], timeoutMs: 120_000 }, context as unknown as ToolContext);
    return result.ok ? result.content : result.error;
  };
  try {
    // Its own network has a `localhost` too: the proxy decides which one is meant.
    expect(await run(`NO_PROXY= no_proxy= curl -sS -d hello http://localhost:${port}/by-curl`)).toContain('said hello');
    expect(await run(`curl -sS --proxy "$HTTP_PROXY" --noproxy "" http://localhost:${direct}/`)).toContain('do not name it');
    expect(await run(`curl -sS --noproxy "*" http://127.0.0.1:${port}/ http://127.0.0.1:${direct}/`)).toMatch(/refused|Failed to connect/i);
    expect(asked).toEqual([`POST localhost:${port} /by-curl`]);
  } finally {
    silent.close();
  }
});
