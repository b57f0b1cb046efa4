/** Scripts that complete commands and options in a shell, generated from the program itself. */
import type { Command, Option } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

interface Completed {
  readonly name: string;
  readonly meaning: string;
  /** Names of its own commands, where it is a group. */
  readonly words: readonly string[];
  readonly commands: readonly Completed[];
  /** Of a group: those of all its commands. */
  readonly options: readonly CompletedOption[];
}

interface CompletedOption {
  /** `-o`, `--output`. */
  readonly flags: readonly string[];
  readonly meaning: string;
  readonly takesValue: boolean;
  /** The only ones it may have. */
  readonly choices: readonly string[];
}

export function completionScript(program: Command, shell: Shell): string {
  const commands = program.commands.filter((command) => !isHidden(command)).map(toCompleted);
  switch (shell) {
    case 'bash':
      return bash(program.name(), commands);
    case 'zsh':
      return zsh(program.name(), commands);
    case 'fish':
      return fish(program.name(), commands);
  }
}

function toCompleted(command: Command): Completed {
  const help = { flags: ['-h', '--help'], meaning: 'display help for command', takesValue: false, choices: [] };
  const visible = [command, ...command.commands].flatMap(({ options }) => options.filter((option) => !option.hidden));
  const options = new Map(visible.map((option) => [option.flags, toOption(option)]));
  return {
    name: command.name(),
    meaning: command.description(),
    words: command.commands.map((own) => own.name()),
    commands: command.commands.map(toCompleted),
    options: [...options.values(), help],
  };
}

function toOption({ short, long, description, required, optional, argChoices }: Option): CompletedOption {
  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    meaning: description,
    takesValue: required || optional,
    choices: argChoices ?? [],
  };
}

/** Commander keeps it to itself. */
function isHidden(command: Command): boolean {
  return (command as unknown as { readonly _hidden?: boolean })._hidden === true;
}

function bash(program: string, commands: readonly Completed[]): string {
  // `memory show`, and `memory` itself, which offers its commands.
  const cases = commands.flatMap((command) => [
    ...command.commands.flatMap((own) => bashCase(`"${command.name} ${own.name}"`, [], own.options)),
    ...(command.words.length > 0
      ? bashCase(`"${command.name}"|"${command.name} "*`, [...command.words, '-h', '--help'], [])
      : bashCase(`"${command.name}"|"${command.name} "*`, [], command.options)),
  ]);
  return `# ${program} completion bash: eval "$(${program} completion bash)"
_${program}() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command="" each
  for each in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$each" in -*) ;; *) command="\${command:+$command }$each"; case "$command" in *" "*) break ;; esac ;; esac
  done
  case "$command" in
    "") COMPREPLY=($(compgen -W ${quoted([...commands.map(({ name }) => name), '--help', '--version'].join(' '))} -- "$word")) ;;
${cases.join('\n')}
  esac
}
complete -o default -F _${program} ${program}`;
}

function bashCase(pattern: string, words: readonly string[], options: readonly CompletedOption[]): string[] {
  const values = options
    .filter(({ takesValue }) => takesValue)
    .map(
      ({ flags, choices }) =>
        `        ${flags.join('|')}) COMPREPLY=($(compgen ${choices.length > 0 ? `-W ${quoted(choices.join(' '))}` : '-f'} -- "$word")); return ;;`,
    );
  return [
    `    ${pattern})`,
    `      case "$before" in`,
    ...values,
    '      esac',
    `      COMPREPLY=($(compgen -W ${quoted([...words, ...options.flatMap(({ flags }) => flags)].join(' '))} -- "$word")) ;;`,
  ];
}

function zsh(program: string, commands: readonly Completed[]): string {
  const described = commands.map(({ name, meaning }) => `    ${quoted(`${name}:${meaning.replaceAll(':', '\\:')}`)}`);
  const cases = commands.flatMap(({ name, words, options }) => [
    `      ${name})`,
    '        _arguments \\',
    ...(words.length === 0 ? [] : [`          '1:command:(${words.join(' ')})' \\`]),
    ...options.map((option) => `          ${zshOption(option)} \\`),
    "          '*:file:_files' ;;",
  ]);
  return `#compdef ${program}
# ${program} completion zsh: eval "$(${program} completion zsh)"
_${program}() {
  local -a commands
  commands=(
${described.join('\n')}
  )
  _arguments -C '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $words[1] in
${cases.join('\n')}
      esac ;;
  esac
}
compdef _${program} ${program}`;
}

function zshOption({ flags, meaning, takesValue, choices }: CompletedOption): string {
  const text = meaning.replace(/[[\]:\\]/g, '\\$&');
  const value = !takesValue ? '' : choices.length > 0 ? `:value:(${choices.join(' ')})` : ':value:_files';
  const spec = quoted(`[${text}]${value}`);
  return flags.length > 1 ? `${quoted(`(${flags.join(' ')})`)}{${flags.join(',')}}${spec}` : `${flags[0] ?? ''}${spec}`;
}

function fish(program: string, commands: readonly Completed[]): string {
  return [
    `# ${program} completion fish | source`,
    `complete -c ${program} -n __fish_use_subcommand -l help -s h`,
    `complete -c ${program} -n __fish_use_subcommand -l version -s V`,
    ...commands.flatMap(({ name, meaning, words, options }) => [
      `complete -c ${program} -f -n __fish_use_subcommand -a ${name} -d ${quoted(meaning)}`,
      ...words.map((word) => `complete -c ${program} -f -n '__fish_seen_subcommand_from ${name}' -a ${word}`),
      ...options.map((option) => `complete -c ${program} -n '__fish_seen_subcommand_from ${name}' ${fishOption(option)}`),
    ]),
  ].join('\n');
}

function fishOption({ flags, meaning, takesValue, choices }: CompletedOption): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  const value = !takesValue ? [] : choices.length > 0 ? ['-x', `-a ${quoted(choices.join(' '))}`] : ['-r'];
  return [...names, ...value, `-d ${quoted(meaning)}`].join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
