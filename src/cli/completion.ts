/**
 * Scripts that complete commands, options and values in a shell, generated from the program itself. Which conversations, agents and models
 * there are, they ask the program when Tab is pressed (`perdura complete`).
 */
import type { Argument, Command, Option } from 'commander';
import type { Config } from '../config.js';
import { CONVERSATION_PATTERN } from '../conversation/protocol/contract.js';
import type { CommandFrame } from './session/command.js';
import { EXIT } from './terminal/exit.js';

export type Completable = 'conversations' | 'agents' | 'models';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

interface Completed {
  readonly name: string;
  readonly meaning: string;
  /** Names of its commands, where it is a group. */
  readonly words: readonly string[];
  readonly commands: readonly Completed[];
  /** Of a group: those of all its commands. */
  readonly options: readonly CompletedOption[];
  /** What its arguments are, in their order; undefined: nothing that there is a list of. */
  readonly values: readonly (Completable | undefined)[];
}

interface CompletedOption {
  /** `-o`, `--output`. */
  readonly flags: readonly string[];
  readonly meaning: string;
  readonly takesValue: boolean;
  /** The only ones it may have. */
  readonly choices: readonly string[];
  readonly values?: Completable;
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
  const commands = [command, ...command.commands, ...command.commands.flatMap((one) => one.commands)];
  const visible = commands.flatMap(({ options }) => options.filter((option) => !option.hidden));
  const options = new Map(visible.map((option) => [option.flags, toOption(option)]));
  return {
    name: command.name(),
    meaning: command.description(),
    words: command.commands.map((one) => one.name()),
    commands: command.commands.map(toCompleted),
    options: [...options.values(), help],
    values: command.registeredArguments.map(argumentValues),
  };
}

/** By the names that arguments and options of all commands have. */
const ARGUMENT_VALUES: Readonly<Record<string, Completable>> = { id: 'conversations', agent: 'agents', model: 'models' };
const OPTION_VALUES: Readonly<Record<string, Completable>> = {
  '--resume': 'conversations',
  '--of': 'conversations',
  '--agent': 'agents',
  '--model': 'models',
};

function argumentValues(argument: Argument): Completable | undefined {
  return ARGUMENT_VALUES[argument.name()];
}

function toOption({ short, long, description, required, optional, argChoices }: Option): CompletedOption {
  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    meaning: description,
    takesValue: required || optional,
    choices: argChoices ?? [],
    values: OPTION_VALUES[long ?? ''],
  };
}

/** Commander keeps it to itself. */
function isHidden(command: Command): boolean {
  return (command as unknown as { readonly _hidden?: boolean })._hidden === true;
}

function bash(program: string, commands: readonly Completed[]): string {
  // `memory show`, and `memory` itself, which offers its commands.
  const cases = commands.flatMap((command) => [
    // Two words of the line are looked at: of a command in a group its first argument is all that can be known.
    ...command.commands.flatMap((one) => bashCase(program, `"${command.name} ${one.name}"`, { ...one, values: one.values.slice(0, 1) })),
    ...bashCase(program, `"${command.name}"|"${command.name} "*`, command.words.length > 0 ? toGroup(command) : command),
  ]);
  return `# ${program} completion bash: eval "$(${program} completion bash)"
_${program}_values() {
  COMPREPLY=($(compgen -W "$("\${COMP_WORDS[0]}" complete "$1" 2>/dev/null </dev/null)" -- "$word"))
}
_${program}() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command="" each
  for each in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$each" in -*) ;; *) command="\${command:+$command }$each"; case "$command" in *" "*) break ;; esac ;; esac
  done
  case "$command" in
    "") COMPREPLY=($(compgen -W ${shellQuote([...commands.map(({ name }) => name), '--help', '--version'].join(' '))} -- "$word")) ;;
${cases.join('\n')}
  esac
}
complete -o default -F _${program} ${program}`;
}

/** A group offers its commands first, and its options where it is a command too. */
function toGroup(group: Completed): Completed {
  const isCommand = group.values.length > 0;
  const words = isCommand ? group.words : [...group.words, '-h', '--help'];
  return { ...group, words, values: [], options: isCommand ? group.options : [] };
}

function bashCase(program: string, pattern: string, { words, options, values }: Completed): string[] {
  const takes = options
    .filter(({ takesValue }) => takesValue)
    .map(({ flags, choices, values: kind }) => {
      const offers = kind
        ? `_${program}_values ${kind}`
        : `COMPREPLY=($(compgen ${choices.length > 0 ? `-W ${shellQuote(choices.join(' '))}` : '-f'} -- "$word"))`;
      return `        ${flags.join('|')}) ${offers}; return ;;`;
    });
  const [first, second] = values;
  const named = `COMPREPLY=($(compgen -W ${shellQuote([...words, ...options.flatMap(({ flags }) => flags)].join(' '))} -- "$word"))`;
  const offered = (kind: Completable | undefined): string => (kind ? `_${program}_values ${kind}` : named);
  // Before an argument is written, what has been typed is the command alone.
  const isFirst = pattern.includes('*')
    ? `"$command" in *" "*) ${offered(second)} ;; *) ${offered(first)} ;;`
    : `"" in *) ${offered(first)} ;;`;
  return [
    `    ${pattern})`,
    `      case "$before" in`,
    ...takes,
    '      esac',
    first || second ? `      case "$word" in -*) ${named} ;; *) case ${isFirst} esac ;; esac ;;` : `      ${named} ;;`,
  ];
}

function zsh(program: string, commands: readonly Completed[]): string {
  const described = commands.map(({ name, meaning }) => `    ${shellQuote(`${name}:${meaning.replaceAll(':', '\\:')}`)}`);
  const cases = commands.flatMap(({ name, words, options, values }) => [
    `      ${name})`,
    '        _arguments \\',
    ...(words.length === 0 ? [] : [`          '1:command:(${words.join(' ')})' \\`]),
    ...values.flatMap((kind, at) => (kind ? [`          '${at + 1}:${kind}:{_${program}_values ${kind}}' \\`] : [])),
    ...options.map((option) => `          ${zshOption(program, option)} \\`),
    "          '*:file:_files' ;;",
  ]);
  return `#compdef ${program}
# ${program} completion zsh: eval "$(${program} completion zsh)"
_${program}_values() {
  local -a found
  found=(\${(f)"$(${program} complete $1 2>/dev/null </dev/null)"})
  compadd -a found
}
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

function zshOption(program: string, { flags, meaning, takesValue, choices, values }: CompletedOption): string {
  const text = meaning.replace(/[[\]:\\]/g, '\\$&');
  const offers = values ? `{_${program}_values ${values}}` : choices.length > 0 ? `(${choices.join(' ')})` : '_files';
  const value = takesValue ? `:value:${offers}` : '';
  const spec = shellQuote(`[${text}]${value}`);
  return flags.length > 1 ? `${shellQuote(`(${flags.join(' ')})`)}{${flags.join(',')}}${spec}` : `${flags[0] ?? ''}${spec}`;
}

function fish(program: string, commands: readonly Completed[]): string {
  return [
    `# ${program} completion fish | source`,
    `complete -c ${program} -n __fish_use_subcommand -l help -s h`,
    `complete -c ${program} -n __fish_use_subcommand -l version -s V`,
    ...commands.flatMap(({ name, meaning, words, options, values }) => [
      `complete -c ${program} -f -n __fish_use_subcommand -a ${name} -d ${shellQuote(meaning)}`,
      ...words.map((word) => `complete -c ${program} -f -n '__fish_seen_subcommand_from ${name}' -a ${word}`),
      ...values.flatMap((kind) =>
        kind ? [`complete -c ${program} -f -n '__fish_seen_subcommand_from ${name}' -a ${fishValues(program, kind)}`] : [],
      ),
      ...options.map((option) => `complete -c ${program} -n '__fish_seen_subcommand_from ${name}' ${fishOption(program, option)}`),
    ]),
  ].join('\n');
}

function fishValues(program: string, kind: Completable): string {
  return shellQuote(`(${program} complete ${kind} 2>/dev/null </dev/null)`);
}

function fishOption(program: string, { flags, meaning, takesValue, choices, values }: CompletedOption): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  const offers = values ? fishValues(program, values) : choices.length > 0 ? shellQuote(choices.join(' ')) : undefined;
  const value = !takesValue ? [] : offers ? ['-x', `-a ${offers}`] : ['-r'];
  return [...names, ...value, `-d ${shellQuote(meaning)}`].join(' ');
}

function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Newest first; who wants an older one types its beginning and looks with `perdura list`. */
const MAX_CONVERSATIONS = 100;

/** Shells read words as code: bash runs `$(…)` in a list of words, and names of folders and models come from anywhere. */
const HARMLESS = /^[A-Za-z0-9][\w./:@-]{0,199}$/;

/** What a shell offers on Tab, a line for each. It prints nothing else, and what it cannot know it leaves out. */
export async function complete(frame: CommandFrame, kind: Completable): Promise<number> {
  const offer = (words: readonly string[]): number => {
    for (const word of new Set(words)) if (HARMLESS.test(word)) frame.output.line(word);
    return EXIT.ok;
  };
  switch (kind) {
    case 'conversations': {
      const { client } = await frame.open();
      const listed = await client.list({ limit: MAX_CONVERSATIONS });
      // A sub-agent's has a colon, at which bash splits words.
      return offer(listed.map(({ id }) => id).filter((id) => CONVERSATION_PATTERN.test(id)));
    }
    case 'agents':
      return offer(await (await import('../agents/load-agent.js')).agentNames(frame.config()));
    case 'models': {
      const { knownModels } = await import('../models/known-models.js');
      return offer(['default', ...(await usedModels(frame.config())), ...knownModels()]);
    }
  }
}

/** What this folder uses. */
async function usedModels(config: Config): Promise<readonly string[]> {
  const { agentNames, agentsFolder, loadAgent } = await import('../agents/load-agent.js');
  const agents = await agentNames(config);
  const named = await Promise.all(
    agents.map((agent) =>
      loadAgent(agentsFolder(config), agent).then(
        ({ config: { model, models = [] } }) => [...(model ? [model] : []), ...models],
        () => [],
      ),
    ),
  );
  return [config.model, ...named.flat()];
}
