import { spawnSync } from 'node:child_process';
import { Command, Option } from 'commander';
import { completionScript } from '../../src/cli/completion.js';

const program = new Command('perdura');
program
  .command('show')
  .description("print what was said: it's all there")
  .addOption(new Option('-o, --output <format>', 'how').choices(['text', 'json']));
const group = program.command('memory').description('a group');
group.command('list').option('--semantic', 'only facts');
program.command('secret', { hidden: true }).description('not yet');

/** What bash offers for a line. */
function offered(...words: string[]): string[] {
  const line = words.map((word) => `'${word}'`).join(' ');
  const script = `${completionScript(program, 'bash')}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _perdura; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.trim().split('\n');
}

test('bash completes commands, options and their choices', () => {
  expect(offered('perdura', '')).toEqual(['show', 'memory', '--help', '--version']);
  expect(offered('perdura', 'show', '--')).toEqual(['--output', '--help']);
  expect(offered('perdura', 'show', '-o', '')).toEqual(['text', 'json']);
  expect(offered('perdura', 'memory', '')).toEqual(['list', '-h', '--help']);
  expect(offered('perdura', 'memory', 'list', '--')).toEqual(['--semantic', '--help']);
  expect(offered('perdura', 'show', 'memory', '-o', '')).toEqual(['text', 'json']);
});

test.each(['zsh', 'fish'] as const)('%s gets each command with its meaning, and no hidden one', (shell) => {
  const script = completionScript(program, shell);
  expect(script).toContain("it'\\''s all there");
  expect(script).not.toContain('secret');
});
