import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { complete, completionScript } from '../../src/cli/completion.js';
import type { CommandFrame } from '../../src/cli/session/command.js';
import { loadConfig } from '../../src/config.js';

const program = new Command('perdura');
program
  .command('show')
  .description("print what was said: it's all there")
  .argument('<id>')
  .addOption(new Option('-o, --output <format>', 'how').choices(['text', 'json']));
program.command('model').argument('<id>').argument('[model]');
program.command('new').option('--agent <name>', 'who').option('--model <provider/name>', 'which');
const group = program.command('memory').description('a group');
group.command('list').argument('<id>').option('--semantic', 'only facts').option('--of <conversation>', 'whose');
program.command('secret', { hidden: true }).description('not yet');

/** What bash offers for a line. */
function offered(...words: string[]): string[] {
  const line = words.map((word) => `'${word}'`).join(' ');
  const script = `${completionScript(program, 'bash')}\nperdura() { [ "$1" = complete ] && printf '%s\\n' "one-of-$2" "two-of-$2" 'other'; }\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _perdura; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.trim().split('\n');
}

test('bash completes commands, options and their choices', () => {
  expect(offered('perdura', '')).toEqual(['show', 'model', 'new', 'memory', '--help', '--version']);
  expect(offered('perdura', 'show', '--')).toEqual(['--output', '--help']);
  expect(offered('perdura', 'show', '-o', '')).toEqual(['text', 'json']);
  expect(offered('perdura', 'memory', '')).toEqual(['list', '-h', '--help']);
  expect(offered('perdura', 'memory', 'list', '--')).toEqual(['--semantic', '--of', '--help']);
  expect(offered('perdura', 'show', 'memory', '-o', '')).toEqual(['text', 'json']);
});

test('bash asks the program which conversations, agents and models there are', () => {
  expect(offered('perdura', 'show', 'o')).toEqual(['one-of-conversations', 'other']);
  expect(offered('perdura', 'show', 'conv-1', '--')).toEqual(['--output', '--help']);
  expect(offered('perdura', 'model', 't')).toEqual(['two-of-conversations']);
  expect(offered('perdura', 'model', 'conv-1', 't')).toEqual(['two-of-models']);
  expect(offered('perdura', 'new', '--agent', 't')).toEqual(['two-of-agents']);
  expect(offered('perdura', 'new', '--model', '')).toEqual(['one-of-models', 'two-of-models', 'other']);
  expect(offered('perdura', 'memory', 'list', 't')).toEqual(['two-of-conversations']);
  expect(offered('perdura', 'memory', 'list', '--of', 't')).toEqual(['two-of-conversations']);
});

test.each([
  ['zsh', "'1:conversations:{_perdura_values conversations}'", ':value:{_perdura_values agents}'],
  [
    'fish',
    "-a '(perdura complete conversations 2>/dev/null </dev/null)'",
    "-l agent -x -a '(perdura complete agents 2>/dev/null </dev/null)'",
  ],
] as const)('%s asks it too', (shell, argument, option) => {
  const script = completionScript(program, shell);
  expect(script).toContain(argument);
  expect(script).toContain(option);
});

test.each(['zsh', 'fish'] as const)('%s gets each command with its meaning, and no hidden one', (shell) => {
  const script = completionScript(program, shell);
  expect(script).toContain("it'\\''s all there");
  expect(script).not.toContain('secret');
});

test('what a shell would run is not offered: names of folders and models may be anybody’s', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'perdura-complete-'));
  try {
    const agent = (name: string, model: string): void => {
      mkdirSync(join(dir, 'agents', name), { recursive: true });
      writeFileSync(join(dir, 'agents', name, 'agent.json'), JSON.stringify({ model }));
    };
    agent('desk', 'parrot/grey');
    agent('evil', 'parrot/$(touch${IFS}owned)');
    agent('$(touch owned)', 'parrot/green');
    const lines: string[] = [];
    const context = { config: () => loadConfig({}, dir), output: { line: (line: string) => lines.push(line) } } as unknown as CommandFrame;
    await complete(context, 'agents');
    expect(lines.sort()).toEqual(['desk', 'evil']);
    lines.length = 0;
    await complete(context, 'models');
    expect(lines).toEqual(expect.arrayContaining(['default', 'parrot/grey', 'anthropic/claude-sonnet-5-5']));
    expect(lines.filter((line) => /[^\w./:@-]/.test(line))).toEqual([]);
    expect(new Set(lines).size).toBe(lines.length);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
