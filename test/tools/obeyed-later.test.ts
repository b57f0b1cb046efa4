/**
 * What file tools write does not become what another program obeys: nothing forms a repository, and what is obeyed elsewhere is asked for.
 * With the rules that docs/ shows, and a real git.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { agentConfigSchema } from '../../src/agents/agent-config.js';
import type { JsonObject } from '../../src/records/message.js';
import { approvalFor, type Approval, type ApprovalRule } from '../../src/tools/approval-rules.js';
import { reasonToAskBeforeWriting } from '../../src/tools/approval-paths.js';
import { createRunCommand } from '../../src/tools/builtin/command/run-command.js';
import { editFile } from '../../src/tools/builtin/files/edit-file.js';
import { writeFile } from '../../src/tools/builtin/files/write-file.js';
import type { Tool, ToolResult } from '../../src/tools/tool.js';
import { fencedBlocks, ROOT } from '../readme/commands.js';
import { createPlace, toolContext, type Place } from './tool-context.js';

let place: Place;
beforeEach(() => (place = createPlace()));
afterEach(() => place.remove());

const run = (tool: Tool, input: JsonObject): Promise<ToolResult> => tool.run(input, toolContext({ workspace: place.workspace }));
const text = (result: ToolResult): string => (result.ok ? result.content : result.error);
const write = async (path: string, content = 'x'): Promise<string> => text(await run(writeFile, { path, content }));
const decided = async (tool: Tool, input: JsonObject, rules: readonly ApprovalRule[] = []): Promise<Approval> =>
  approvalFor(rules, tool, input, 'default', await tool.examine?.(input, { workspace: place.workspace }));

/** Every set of rules that docs/ shows for commands. */
const shownRules = ['docs/reference/agent-json.md', 'docs/how-to/approvals.md'].flatMap((page) =>
  fencedBlocks(readFileSync(join(ROOT, page), 'utf8')).flatMap(({ language, text: shown }) =>
    language === 'json' && shown.includes('"run_command"') ? [[page, agentConfigSchema.parse(JSON.parse(shown)).approvals] as const] : [],
  ),
);

describe('a folder that is obeyed as a repository', () => {
  const runCommand = createRunCommand({ environment: { PATH: process.env['PATH'] ?? '', HOME: '/nowhere' } });
  const CONFIG = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch ran; false"\n';
  /** As `write_file` would, if it did. */
  const plant = (folder: string): void => {
    place.write(`${folder}/HEAD`, 'ref: refs/heads/x\n');
    place.write(`${folder}/objects/x`, '');
    place.write(`${folder}/refs/heads/x`, '');
    place.write(`${folder}/config`, CONFIG);
  };
  const asked = async (cwd: string, rules: readonly ApprovalRule[], args: readonly string[] = ['status']): Promise<string> => {
    const input = { command: 'git', args, cwd };
    const { policy } = await decided(runCommand, input, rules);
    if (policy === 'allow') await run(runCommand, input);
    return policy;
  };

  test.each(shownRules)('is neither made nor asked about nor obeyed under the rules of %s', async (_page, rules) => {
    for (const [path, content] of [
      ['sub/HEAD', 'ref: refs/heads/x\n'],
      ['sub/objects/x', ''],
      ['sub/refs/heads/x', ''],
      ['sub/config', CONFIG],
    ] as const) {
      await write(path, content);
    }
    expect(existsSync(join(place.workspace, 'sub/HEAD')) && existsSync(join(place.workspace, 'sub/refs'))).toBe(false);
    // Were it there all the same, as a clone can bring it:
    plant('planted');
    const allowed = rules.flatMap(({ where, policy }) => (policy === 'allow' && Array.isArray(where?.['args']) ? [where['args']] : []));
    expect(allowed.length).toBeGreaterThan(0);
    for (const args of allowed.map((list) => list.filter((word) => word !== '**'))) {
      expect(await asked('planted', rules, args)).toBe('ask');
      expect(await asked('./planted/', rules, args)).toBe('ask');
      expect(await asked(join(place.workspace, 'planted'), rules, args)).toBe('ask');
      expect(await asked('.', rules, args)).toBe('allow');
    }
    expect([existsSync(join(place.workspace, 'ran')), existsSync(join(place.workspace, 'planted/ran'))]).toEqual([false, false]);
  });

  test('is not obeyed by a command that a person allows there, nor are the hooks and the watcher of a real one', async () => {
    plant('planted');
    // The attack works where nobody closes it: otherwise this test would show nothing.
    execFileSync('git', ['status'], { cwd: join(place.workspace, 'planted'), stdio: 'ignore', env: { PATH: process.env['PATH'] } });
    expect(existsSync(join(place.workspace, 'planted/ran'))).toBe(true);
    execFileSync('rm', [join(place.workspace, 'planted/ran')]);
    await run(runCommand, { command: 'git', args: ['status'], cwd: 'planted' });
    expect(existsSync(join(place.workspace, 'planted/ran'))).toBe(false);

    const git = (...args: string[]): unknown => execFileSync('git', args, { cwd: place.workspace, stdio: 'ignore' });
    git('init');
    git('config', 'core.fsmonitor', 'touch ran; false');
    place.write('.git/hooks/post-commit', '#!/bin/sh\ntouch ran\n');
    execFileSync('chmod', ['+x', join(place.workspace, '.git/hooks/post-commit')]);
    const who = ['-c', 'user.name=a', '-c', 'user.email=a@b'];
    expect(await run(runCommand, { command: 'git', args: [...who, 'commit', '--allow-empty', '-m', 'x'] })).toMatchObject({ ok: true });
    expect(await run(runCommand, { command: 'git', args: ['status'] })).toMatchObject({ ok: true });
    expect(existsSync(join(place.workspace, 'ran'))).toBe(false);
  });

  test.each<[string, readonly string[], string]>([
    ['HEAD last', ['d/objects/a', 'd/refs/a'], 'd/HEAD'],
    ['objects after HEAD', ['d/HEAD'], 'd/objects/pack/a'],
    ['refs after HEAD', ['d/HEAD'], 'd/refs/heads/main'],
    ['commondir after HEAD', ['d/HEAD'], 'd/commondir'],
    ['HEAD beside commondir', ['d/commondir'], 'd/HEAD'],
    ['in the workspace itself', ['HEAD'], 'refs/a'],
    ['in another case', ['d/refs/a'], 'd/head'],
    ['by a compatible letter', ['d/refs/a'], 'd/\uff28EAD'],
    ['by a character that nobody sees', ['d/HEAD'], 'd/ob\u200cjects/a'],
    ['by a trailing dot', ['d/HEAD'], 'd/refs./a'],
    ['by a stream', ['d/refs/a'], 'd/HEAD::$DATA'],
    ['by a short name', ['d/HEAD'], 'd/COMMON~1'],
    ['by a backslash', [], 'd\\.git\\config'],
    ['settings of one that is there', ['d/HEAD', 'd/objects/a', 'd/refs/a'], 'd/config'],
    ['a hook of one that is there', ['d/HEAD', 'd/objects/a', 'd/refs/a'], 'd/hooks/pre-commit'],
    ['.git by its short name', [], 'd/GIT~1/config'],
    ['.git as a file', [], 'd/.git'],
    ['another system of that kind', [], '.hg/hgrc'],
  ])('is not made: %s', async (_name, there, path) => {
    for (const one of there) place.write(one, 'x');
    expect(await write(path, 'x')).toMatch(/git repository|run or obeyed later/);
    expect(existsSync(join(place.workspace, path))).toBe(false);
  });

  test('is not made by a link that is called .git, nor by a file that leads to one', async () => {
    mkdirSync(join(place.workspace, 'real'));
    symlinkSync('real', join(place.workspace, '.git'));
    expect(await write('.git/config')).toMatch(/run or obeyed later/);
    expect(await write('lead', 'gitdir: ../elsewhere\n')).toMatch(/git repository/);
    place.write('d/lead', 'dir: x\n');
    expect(text(await run(editFile, { path: 'd/lead', oldText: 'dir:', newText: 'gitdir:' }))).toMatch(/git repository/);
  });

  test.each([['objects/a'], ['refs/a'], ['d/HEAD'], ['HEAD.md'], ['d/config'], ['objects/refs/HEAD.txt']])(
    'is not %s alone',
    async (path) => {
      expect(await write(path)).toMatch(/^wrote/);
    },
  );
});

describe('what is obeyed elsewhere', () => {
  const ASKED = (
    'node_modules/a/index.js .github/workflows/ci.yml .gitattributes .gitconfig Makefile GNUmakefile AGENTS.md CLAUDE.md .zshenv ' +
    'jest.config.js vite.config.ts .eslintrc.json eslint.config.mjs pyproject.toml conftest.py sitecustomize.py a/b.pth ' +
    '.pre-commit-config.yaml Dockerfile docker-compose.override.yml .devcontainer/devcontainer.json .cargo/config.toml build.rs Rakefile ' +
    'Gemfile setup.py .bazelrc justfile lefthook.yml .gitlab-ci.yml Jenkinsfile .tool-versions mise.toml .direnv/x .inputrc .vimrc .exrc ' +
    '.gdbinit .pythonrc .lldbinit .mocharc.cjs .babelrc vitest.workspace.ts CMakeLists.txt pom.xml build.gradle.kts x.code-workspace ' +
    '.venv/bin/activate .githooks/pre-commit flake.nix noxfile.py gulpfile.js .config/git/config deep/in/Makefile makefile MAKEFILE ' +
    'Make\u200cfile JEST.CONFIG.TS .devcontainer.json .helix/languages.toml nodemon.json webpack.config.dev.js karma.conf.js .eleventy.js ' +
    'gatsby-node.js .storybook/main.ts babel.config.json pylintrc .flake8 .rubocop.yml .ghci mix.exs build.sbt Directory.Build.props a.csproj ' +
    '.gitpod.yml opencode.json .roo/rules.md QWEN.md'
  ).split(' ');

  test.each(ASKED.map((path) => [path]))('%s is asked for', async (path) => {
    expect(await decided(writeFile, { path, content: 'x' })).toMatchObject({ policy: 'ask', why: expect.stringMatching(/run or obeyed/) });
    expect(await decided(editFile, { path, oldText: 'a', newText: 'b' })).toMatchObject({ policy: 'ask' });
    expect(await decided(writeFile, { path: `./x/../${path}`, content: 'x' })).toMatchObject({ policy: 'ask' });
  });

  test('by whatever link it is reached, and a rule of the agent goes first', async () => {
    place.write('.github/workflows/ci.yml', 'x');
    symlinkSync('.github/workflows', join(place.workspace, 'notes'));
    const input = { path: 'notes/new.yml', content: 'x' };
    expect(await decided(writeFile, input)).toMatchObject({ policy: 'ask' });
    // A rule that allows must fit where the path leads.
    expect(await decided(writeFile, input, [{ tool: 'write_file', where: { path: 'notes/*' }, policy: 'allow' }])).toMatchObject({
      policy: 'ask',
    });
    expect(await decided(writeFile, input, [{ tool: 'write_file', where: { path: '.github/*' }, policy: 'allow' }])).toEqual({
      policy: 'allow',
    });
    expect((await decided(writeFile, input, [{ tool: 'write_file', where: { path: '.github/*' }, policy: 'deny' }])).policy).toBe('deny');
  });

  test.each(
    [
      'src/index.ts',
      'README.md',
      'tsconfig.json',
      'package.json',
      '.gitignore',
      'docs/makefile.md',
      'config.ts',
      'app.config.json',
      'src/conf.ts',
      'src/build.ts',
      'notes/agents.txt',
    ].map((path) => [path]),
  )('%s is not', async (path) => {
    expect(reasonToAskBeforeWriting(path)).toBeUndefined();
    expect((await decided(writeFile, { path, content: '{}' })).policy).toBe('allow');
  });
});
