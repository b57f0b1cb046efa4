/** Options that every command has, with the names and the meanings that they have in the `temporal` program. */
import { Option, type Command } from 'commander';

export type OutputFormat = 'text' | 'json';
export type ColorWish = 'auto' | 'always' | 'never';
export type TimeFormat = 'relative' | 'iso' | 'raw';

export interface GlobalOptions {
  /** `TEMPORAL_*` as the flags say, to stand before those of the environment. */
  readonly temporal: Readonly<Record<string, string>>;
  readonly output: OutputFormat;
  readonly color: ColorWish;
  readonly quiet: boolean;
  readonly timeFormat: TimeFormat;
  /** Print the command of the `temporal` program that shows or does the same. */
  readonly explain: boolean;
  /** Trust this folder without asking. */
  readonly trust: boolean;
}

/** A function, since an option object belongs to one command. */
function globalOptions(): Option[] {
  return [
    new Option('--address <host:port>', 'Temporal server (TEMPORAL_ADDRESS)'),
    new Option('-n, --namespace <name>', 'Temporal namespace (TEMPORAL_NAMESPACE)'),
    new Option('--profile <name>', "profile of Temporal's configuration file (TEMPORAL_PROFILE)"),
    new Option('--config-file <path>', "Temporal's configuration file (TEMPORAL_CONFIG_FILE)"),
    new Option('--api-key <key>', 'API key (TEMPORAL_API_KEY)'),
    new Option('--tls', 'use TLS (TEMPORAL_TLS)'),
    new Option('--tls-cert-path <path>', 'certificate of this client (TEMPORAL_TLS_CLIENT_CERT_PATH)'),
    new Option('--tls-key-path <path>', 'its key (TEMPORAL_TLS_CLIENT_KEY_PATH)'),
    new Option('--tls-ca-path <path>', "certificate of the server's authority (TEMPORAL_TLS_SERVER_CA_CERT_PATH)"),
    new Option('--tls-server-name <name>', 'name in its certificate (TEMPORAL_TLS_SERVER_NAME)'),
    new Option('-o, --output <format>', 'how data is printed').choices(['text', 'json']).default('text'),
    new Option('--color <when>', 'colours; NO_COLOR and FORCE_COLOR are honoured').choices(['auto', 'always', 'never']).default('auto'),
    new Option('-q, --quiet', 'data and errors only'),
    new Option('--time-format <format>', 'of times in text').choices(['relative', 'iso', 'raw']).default('relative'),
    new Option('--explain', 'print what of the `temporal` program shows or does the same'),
    new Option('--trust', 'run what this folder brings without asking, this once (PERDURA_TRUST=1)'),
  ];
}

const VARIABLES: Readonly<Record<string, string>> = {
  address: 'TEMPORAL_ADDRESS',
  namespace: 'TEMPORAL_NAMESPACE',
  profile: 'TEMPORAL_PROFILE',
  configFile: 'TEMPORAL_CONFIG_FILE',
  apiKey: 'TEMPORAL_API_KEY',
  tls: 'TEMPORAL_TLS',
  tlsCertPath: 'TEMPORAL_TLS_CLIENT_CERT_PATH',
  tlsKeyPath: 'TEMPORAL_TLS_CLIENT_KEY_PATH',
  tlsCaPath: 'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
  tlsServerName: 'TEMPORAL_TLS_SERVER_NAME',
};

/** Where a command uses a letter or a name itself, that comes first: `list -q` is a query, as in `temporal`. `help all` alone shows these. */
export function addGlobalOptions(command: Command): void {
  for (const option of globalOptions()) {
    if (command.options.some(({ long }) => long === option.long)) continue;
    const isShortTaken = option.short !== undefined && command.options.some(({ short }) => short === option.short);
    if (isShortTaken) option.short = undefined;
    if (isShortTaken) option.flags = option.flags.replace(/^-\w, /, '');
    command.addOption(option.hideHelp());
  }
}

export function describeGlobalOptions(): string {
  return globalOptions()
    .map(({ flags, description }) => `  ${flags.padEnd(26)} ${description}`)
    .join('\n');
}

/** Options after the command's name win over options before it. */
export function readGlobalOptions(program: Command, command: Command): GlobalOptions {
  const read = (name: string): unknown => {
    const given = [command, program].find((one) => one.getOptionValueSource(name) === 'cli');
    return (given ?? command).getOptionValue(name) as unknown;
  };
  const temporal = Object.entries(VARIABLES).flatMap(([name, variable]) => {
    const value = read(name);
    return value === undefined ? [] : [[variable, String(value)] as const];
  });
  return {
    temporal: Object.fromEntries(temporal),
    output: read('output') as OutputFormat,
    color: read('color') as ColorWish,
    quiet: read('quiet') === true,
    timeFormat: read('timeFormat') as TimeFormat,
    explain: read('explain') === true,
    trust: read('trust') === true,
  };
}
