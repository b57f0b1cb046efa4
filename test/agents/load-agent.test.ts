import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgentConfigError, createAgentLoader, loadAgent } from '../../src/agents/load-agent.js';
import { mcpConfigSchema, toServers } from '../../src/tools/mcp/server-config.js';

let agents: string;

beforeEach(() => {
  agents = join(realpathSync(mkdtempSync(join(tmpdir(), 'perdura-'))), 'agents');
  mkdirSync(agents);
});

afterEach(() => {
  rmSync(join(agents, '..'), { recursive: true, force: true });
});

function write(id: string, config: unknown, soul?: string): void {
  mkdirSync(join(agents, id), { recursive: true });
  writeFileSync(join(agents, id, 'agent.json'), typeof config === 'string' ? config : JSON.stringify(config));
  if (soul !== undefined) writeFileSync(join(agents, id, 'SOUL.md'), soul);
}

async function failure(id: string): Promise<{ kind: string; message: string }> {
  const error: unknown = await loadAgent(agents, id).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AgentConfigError)) throw new Error('expected an AgentConfigError', { cause: error });
  return { kind: error.kind, message: error.message };
}

/** Seed 000, section 19, and seed 004. */
const CONTEXT = {
  clock: false,
  keepTurns: 4,
  maxEpisodic: 3,
  maxSemantic: 20,
  autoCompactEnabled: true,
  advanced: {},
};

/** Seed 001, Configuration; and `keepCount` and `trim`, of which it names no default. */
const MEMORY = {
  maxMemorySize: 8192,
  consolidationTimeout: 30_000,
  memoryWindow: 50,
  keepCount: 10,
  trim: 'when-needed',
  reviewWhenToolsSpoke: true,
  trustedTools: [],
  enabled: true,
  shareWithSubAgents: true,
  compactWithModel: false,
  inlineLimit: 4_096,
};

describe('an agent', () => {
  it('of {} has defaults and a one-line system prompt', async () => {
    write('plain', {});

    expect(await loadAgent(agents, 'plain')).toEqual({
      id: 'plain',
      config: {
        titles: 'first-words',
        maxTokens: 8192,
        approvals: [],
        approvalExpiryMs: 604_800_000,
        sandbox: 'bwrap',
        commandHosts: [],
        delegation: { agents: [], maxDepth: 2, maxChildren: 16, maxTotal: 64 },
        limits: { maxToolRounds: 50, handOver: {}, modelTries: 2 },
        context: CONTEXT,
        memory: MEMORY,
      },
      files: { soul: null, identity: null, user: null, memory: null, agents: null, tools: null },
      servers: [],
      unread: [],
      system: expect.stringMatching(/^You are a helpful assistant\..*$/),
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  it('keeps what its files say', async () => {
    const config = {
      name: 'Ada',
      description: 'Counts.',
      model: 'anthropic/claude-sonnet-5-5',
      maxTokens: 1000,
      tools: ['get_time'],
      limits: { maxToolRounds: 10_000, toolTimeoutMs: 5_000, modelTimeoutMs: 60_000, handOver: { events: 20, updates: 1_500 } },
    };
    write('ada', `\ufeff${JSON.stringify(config)}`, '\ufeff\nYou are Ada.\n');

    expect(await loadAgent(agents, 'ada')).toMatchObject({ config, system: 'You are Ada.' });
  });

  it('reads what Windows’ editors and shells write: a mark, and UTF-16', async () => {
    // A UTF-16 AGENTS.md ended every run of another agent (mpfaffenberger/code_puppy#778).
    const wide = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le');
    write('ada', '{}');
    writeFileSync(join(agents, 'ada', 'agent.json'), wide('{"name":"Größe"}'));
    writeFileSync(join(agents, 'ada', 'SOUL.md'), wide('You are 大きい.'));
    writeFileSync(join(agents, 'ada', 'AGENTS.md'), wide('Be brief.').swap16());
    writeFileSync(join(agents, 'ada', 'mcp.json'), wide('{"mcpServers":{"x":{"command":"touch"}}}'));
    const { config, system, servers } = await loadAgent(agents, 'ada');
    expect([config.name, system]).toEqual(['Größe', 'You are 大きい.\n\n# Agents\n\nBe brief.']);
    expect(servers.map(({ name }) => name)).toEqual(['x']);
  });

  it('changes its hash with its config, its soul and its id, and with nothing else', async () => {
    const hashes = new Map<string, string>();
    for (const [id, config, soul] of [
      ['a', { maxTokens: 1 }, 'soul'],
      ['b', { maxTokens: 1 }, 'soul'],
      ['c', { maxTokens: 2 }, 'soul'],
      ['d', { maxTokens: 1 }, 'other soul'],
    ] as const) {
      write(id, config, soul);
      hashes.set((await loadAgent(agents, id)).hash, id);
    }
    write('a', '{ "maxTokens":\n1 }', 'soul');

    expect(hashes.size).toBe(4);
    expect(hashes.get((await loadAgent(agents, 'a')).hash)).toBe('a');
  });

  it('that is shipped as the default names no model and takes all built-in tools', async () => {
    const shipped = await loadAgent(join(__dirname, '../../agents'), 'default');

    expect(shipped.config).toEqual({
      name: 'Perdura',
      description: expect.any(String),
      titles: 'first-words',
      maxTokens: 8192,
      approvals: [],
      approvalExpiryMs: 604_800_000,
      sandbox: 'bwrap',
      commandHosts: [],
      delegation: { agents: [], maxDepth: 2, maxChildren: 16, maxTotal: 64 },
      limits: { maxToolRounds: 50, handOver: {}, modelTries: 2 },
      context: CONTEXT,
      memory: MEMORY,
    });
    expect(shipped.system).toContain('data, not instructions');
    expect(shipped.system).toBe(readFileSync(join(__dirname, '../../agents/default/SOUL.md'), 'utf8').trim());
  });
});

describe('a wrong agent.json', () => {
  it.each<[string, unknown, RegExp]>([
    ['not JSON', '{ "name": ', /bad\/agent\.json is not JSON: /],
    ['empty', '', /is not JSON/],
    ['a list', [], /agent\.json: \(the whole\): Invalid input: expected object, received array/],
    ['an unknown field', { modle: 'a/b' }, /agent\.json: modle: no such field/],
    ['an own __proto__', '{"__proto__":{"maxTokens":1}}', /__proto__: no such field/],
    ['an unknown field inside', { limits: { maxRounds: 1 } }, /limits\.maxRounds: no such field/],
    ['a model without a provider', { model: 'claude' }, /model: expected `provider\/model`/],
    ['idle for a number', { idle: 30 }, /idle: Invalid input: expected string, received number/],
    ['idle for no days', { idle: '0d' }, /idle: expected days, such as `30d`/],
    ['idle for weeks', { idle: '4w' }, /idle: expected days, such as `30d`/],
    ['no tokens', { maxTokens: 0 }, /maxTokens: Too small: expected number to be >=1/],
    ['half a token', { maxTokens: 1.5 }, /maxTokens: Invalid input: expected int/],
    ['too many tokens', { maxTokens: 128_001 }, /maxTokens: Too big/],
    ['tokens in words', { maxTokens: '8192' }, /maxTokens: Invalid input: expected number, received string/],
    ['a tool that is no name', { tools: ['get_time', 'rm -rf'] }, /tools\[1\]: expected the name of a tool/],
    ['no rounds', { limits: { maxToolRounds: 0 } }, /limits\.maxToolRounds: Too small/],
    ['too many rounds', { limits: { maxToolRounds: 10_001 } }, /limits\.maxToolRounds: Too big/],
    ['a hand-over later than the product allows', { limits: { handOver: { events: 3_001 } } }, /limits\.handOver\.events: Too big/],
    ['fewer turns kept than none', { context: { keepTurns: -1 } }, /context\.keepTurns: Too small/],
    ['more turns kept than a context has room for', { context: { keepTurns: 51 } }, /context\.keepTurns: Too big/],
    ['no summary at all', { context: { maxEpisodic: 0 } }, /context\.maxEpisodic: Too small/],
    ['too many summaries', { context: { maxEpisodic: 11 } }, /context\.maxEpisodic: Too big/],
    ['too many facts', { context: { maxSemantic: 101 } }, /context\.maxSemantic: Too big/],
    ['null for absent', { name: null }, /name: Invalid input: expected string, received null/],
    ['two faults', { maxTokens: 0, tools: 'all' }, /maxTokens: .*; tools: Invalid input: expected array, received string/],
    ['over 64 KiB', { description: 'd'.repeat(65_536) }, /has \d+ bytes; at most 65536 are read/],
  ])('is told with file, path and reason: %s', async (_, config, reason) => {
    write('bad', config);

    const { kind, message } = await failure('bad');

    expect(kind).toBe('bad-config');
    expect(message).toContain(join(agents, 'bad', 'agent.json'));
    expect(message).toMatch(reason);
  });

  it.each<[string, (file: string) => void, RegExp]>([
    ['a link that leads out', (file) => symlinkSync('/etc/passwd', file), /a link that leads out/],
    ['a folder', (file) => mkdirSync(file), /not a regular file/],
    ['a FIFO', (file) => execFileSync('mkfifo', [file]), /not a regular file/],
  ])('or SOUL.md is not read where it is %s', async (_, make, reason) => {
    mkdirSync(join(agents, 'one'));
    make(join(agents, 'one', 'agent.json'));
    write('two', {});
    make(join(agents, 'two', 'SOUL.md'));

    expect(await failure('one')).toEqual({ kind: 'bad-config', message: expect.stringMatching(reason) });
    expect(await failure('two')).toEqual({ kind: 'bad-config', message: expect.stringMatching(reason) });
  });

  it('may lie behind a link inside the agents folder, as a mounted config map does', async () => {
    write('..data', {}, 'Mounted.');
    mkdirSync(join(agents, 'mounted'));
    for (const name of ['agent.json', 'SOUL.md']) symlinkSync(join('..', '..data', name), join(agents, 'mounted', name));

    expect(await loadAgent(agents, 'mounted')).toMatchObject({ id: 'mounted', system: 'Mounted.' });
  });

  it('is no worse than a SOUL.md over 256 KiB', async () => {
    write('bad', {}, 's'.repeat(256 * 1024 + 1));

    expect(await failure('bad')).toEqual({ kind: 'bad-config', message: expect.stringContaining('SOUL.md has 262145 bytes') });
  });
});

describe('an agent that is not there', () => {
  it('is reported with those that are', async () => {
    write('default', {});
    write('ada', {});
    mkdirSync(join(agents, 'unfinished'));

    expect(await failure('defualt')).toEqual({
      kind: 'unknown-agent',
      message: `there is no agent defualt: ${join(agents, 'defualt', 'agent.json')} does not exist. There are: ada, default.`,
    });
    expect((await failure('unfinished')).kind).toBe('unknown-agent');
  });

  it('is reported where there is none at all, or not even the folder', async () => {
    expect(await failure('ada')).toEqual({
      kind: 'unknown-agent',
      message: expect.stringContaining('has none; an agent.json of {} makes one'),
    });
    rmSync(agents, { recursive: true });
    expect(await failure('ada')).toEqual({ kind: 'unknown-agent', message: expect.stringContaining('set PERDURA_AGENTS_DIR') });
  });

  it.each(['', '..', '../agents', 'a/b', '/etc', '.hidden', '-rf', 'a\0', 'a\n', 'ü', 'a'.repeat(65), '__proto__'])(
    'is refused by its id before any file is looked for: %j',
    async (id) => {
      expect((await failure(id)).kind).toBe('bad-id');
      await expect(createAgentLoader(agents)(id)).rejects.toMatchObject({ kind: 'bad-id' });
    },
  );
});

describe('a loader', () => {
  const later = (): number => Date.now() + 60_000;

  it('reads an unchanged agent once', async () => {
    write('ada', {}, 'soul');
    const load = createAgentLoader(agents, later);

    expect(await load('ada')).toBe(await load('ada'));
  });

  it('sees every change: of the soul, of the config, a new soul, one taken away', async () => {
    write('ada', {});
    const load = createAgentLoader(agents, later);
    const systems = [(await load('ada')).system];

    write('ada', {}, 'one');
    systems.push((await load('ada')).system);
    write('ada', {}, 'other');
    systems.push((await load('ada')).system);
    write('ada', { maxTokens: 5 });
    expect((await load('ada')).config.maxTokens).toBe(5);
    rmSync(join(agents, 'ada', 'SOUL.md'));
    systems.push((await load('ada')).system);

    expect(systems).toEqual([expect.stringContaining('helpful'), 'one', 'other', expect.stringContaining('helpful')]);
  });

  it('gives a turn the agent that it began with, though another turn has seen a later one since', async () => {
    write('ada', {}, 'one');
    const load = createAgentLoader(agents, later);
    const began = await load('ada');
    write('ada', { maxTokens: 5 }, 'other');
    expect((await load('ada')).system).toBe('other');

    expect(await load('ada', 'ada', began.hash.slice(0, 16))).toBe(began);
    expect((await load('ada', 'ada', 'never seen')).system).toBe('other');
  });

  it('sees a change of the same size in the same instant', async () => {
    write('ada', {}, 'aaa');
    const load = createAgentLoader(agents);

    for (const soul of ['bbb', 'ccc', 'ddd', 'eee']) {
      writeFileSync(join(agents, 'ada', 'SOUL.md'), soul);
      expect((await load('ada')).system).toBe(soul);
    }
  });

  it('does not yet trust the time stamp of a file that was changed just now', async () => {
    write('ada', {});
    const load = createAgentLoader(agents);

    expect(await load('ada')).not.toBe(await load('ada'));
  });

  it('is not fooled by a time stamp that was set back', async () => {
    write('ada', {}, 'aaa');
    const load = createAgentLoader(agents, later);
    const soul = join(agents, 'ada', 'SOUL.md');
    utimesSync(soul, 1_000, 1_000);
    expect((await load('ada')).system).toBe('aaa');

    writeFileSync(soul, 'bbb');
    utimesSync(soul, 1_000, 1_000);

    expect((await load('ada')).system).toBe('bbb');
  });

  it('reports an agent that became wrong or went away, and takes it back when it is mended', async () => {
    write('ada', {});
    const load = createAgentLoader(agents, later);
    await load('ada');

    write('ada', '{');
    await expect(load('ada')).rejects.toMatchObject({ kind: 'bad-config' });
    rmSync(join(agents, 'ada'), { recursive: true });
    await expect(load('ada')).rejects.toMatchObject({ kind: 'unknown-agent' });
    write('ada', {});
    expect((await load('ada')).id).toBe('ada');
  });
});

describe('mcp.json', () => {
  const servers = (text: unknown) => writeFileSync(join(agents, 'ada', 'mcp.json'), typeof text === 'string' ? text : JSON.stringify(text));

  it('is read as others write it, sorted, without what is disabled, and is part of the hash', async () => {
    write('ada', {});
    const before = (await loadAgent(agents, 'ada')).hash;
    servers({
      mcpServers: {
        web: { type: 'streamable-http', url: 'https://mcp.example/${PATH_OF_IT}', headers: { authorization: 'Bearer ${TOKEN}' } },
        files: { command: 'npx', args: ['-y', 'some-server'], env: { KEY: '${KEY:-none}' }, timeout: 5_000 },
        off: { command: 'x', disabled: true },
      },
      globalShortcut: 'of another program',
    });
    const { servers: read, hash } = await loadAgent(agents, 'ada');
    const common = { disabled: false, trustAnnotations: false, folder: join(agents, 'ada') };
    expect(read).toEqual([
      {
        ...common,
        name: 'files',
        type: 'stdio',
        command: 'npx',
        args: ['-y', 'some-server'],
        env: { KEY: '${KEY:-none}' },
        timeout: 5_000,
      },
      {
        ...common,
        name: 'web',
        type: 'http',
        url: 'https://mcp.example/${PATH_OF_IT}',
        headers: { authorization: 'Bearer ${TOKEN}' },
        timeout: 60_000,
      },
    ]);
    expect(hash).not.toBe(before);
  });

  it('of an agent counts before those of all agents', async () => {
    write('ada', {});
    const shared = toServers(mcpConfigSchema.parse({ mcpServers: { a: { command: 'a' }, b: { command: 'b' } } }), '/work');
    servers({ mcpServers: { b: { command: 'own' } } });
    const { servers: read } = await createAgentLoader(agents, Date.now, shared)('ada');
    expect(read.map((server) => [server.name, server.type === 'stdio' && server.command, server.folder])).toEqual([
      ['a', 'a', '/work'],
      ['b', 'own', join(agents, 'ada')],
    ]);
  });

  it('is noticed when it changes', async () => {
    write('ada', {});
    const load = createAgentLoader(agents, () => Date.now() + 60_000);
    expect((await load('ada')).servers).toEqual([]);
    servers({ mcpServers: { a: { command: 'a' } } });
    expect((await load('ada')).servers).toHaveLength(1);
  });

  it('grants nothing while its agent.json is refused, and all else in that counts', async () => {
    const allow = { tool: 'run_command', policy: 'allow' };
    const deny = { tool: 'fetch_url', policy: 'deny' };
    const loose = { sandbox: 'none', commandHosts: ['example.org'] };
    write('ada', {
      ...loose,
      name: 'Ada',
      approvals: [allow, deny],
      memory: { trustedTools: ['x'], reviewWhenToolsSpoke: false, keepCount: 3 },
    });
    let isTrusted = false;
    const load = createAgentLoader(
      agents,
      () => Date.now() + 60_000,
      [],
      async (file) => isTrusted || !file.endsWith('agent.json'),
    );
    expect((await load('ada')).config).toMatchObject({
      name: 'Ada',
      approvals: [deny],
      sandbox: 'bwrap',
      commandHosts: [],
      memory: { trustedTools: [], reviewWhenToolsSpoke: true, keepCount: 3 },
    });
    isTrusted = true;
    expect((await load('ada')).config).toMatchObject({
      approvals: [allow, deny],
      ...loose,
      memory: { trustedTools: ['x'], reviewWhenToolsSpoke: false },
    });
  });

  it('is not used while it is refused: what was there before stays, and a yes that comes later is heard', async () => {
    write('ada', {});
    servers({ mcpServers: { a: { command: 'a' } } });
    const trusted = new Set(['"a"']);
    const asked: string[] = [];
    const load = createAgentLoader(
      agents,
      () => Date.now() + 60_000,
      [],
      async (file, text) => {
        if (file.endsWith('agent.json')) return true;
        asked.push(file);
        return [...trusted].some((command) => text.includes(`"command":${command}`));
      },
    );
    const commands = async (): Promise<unknown[]> => (await load('ada')).servers.map((server) => server.type === 'stdio' && server.command);
    expect(await commands()).toEqual(['a']);
    servers({ mcpServers: { a: { command: 'evil' } } });
    const { hash } = await load('ada');
    expect(await commands()).toEqual(['a']);
    expect((await load('ada', 'ada', hash)).servers).toMatchObject([{ command: 'a' }]);
    trusted.add('"evil"');
    expect(await commands()).toEqual(['evil']);
    const { length } = asked;
    expect(await commands()).toEqual(['evil']);
    expect(asked).toHaveLength(length);
    expect(new Set(asked)).toEqual(new Set([join(agents, 'ada', 'mcp.json')]));
    expect((await createAgentLoader(agents, Date.now, [], async () => false)('ada')).servers).toEqual([]);
  });

  it('has a warning for each field that only other programs know', async () => {
    write('ada', {});
    servers({ mcpServers: { a: { url: 'http://x', autoApprove: ['b'] } } });
    const { servers: read, unread } = await loadAgent(agents, 'ada');
    expect(read).toMatchObject([{ name: 'a', url: 'http://x' }]);
    expect(unread).toEqual(['mcp.json: mcpServers.a: autoApprove is not used: "approvals" in agent.json says which calls ask']);
  });

  it.each<[text: unknown, complaint: string]>([
    ['{', 'mcp.json is not JSON'],
    [{ mcpServers: { a: { type: 'ws', url: 'http://x' } } }, 'mcp.json: mcpServers.a.type: expected "stdio" (with "command") or "http"'],
    [{ mcpServers: { a: {} } }, 'mcp.json: mcpServers.a.command:'],
    [{ mcpServers: { a: { command: 'x', args: 'y' } } }, 'mcp.json: mcpServers.a.args:'],
    [{ mcpServers: { 'a\nb': { command: 'x' } } }, 'mcp.json: mcpServers.a\nb: '],
    [{ mcpServers: [] }, 'mcp.json: mcpServers:'],
  ])('that cannot be used is refused by file and field: %j', async (text, complaint) => {
    write('ada', {});
    servers(text);
    const { kind, message } = await failure('ada');
    expect(kind).toBe('bad-config');
    expect(message).toContain(complaint);
  });
});
