/** `perdura doctor`: whether everything that is needed is there, and what mends what is not. Changes nothing that stays. */
import { describeSettings, loadMachine, variablesOf, secretsOf, type Config } from '../../config.js';
import { isBroken, pasteable, renderReport, type Report, broken, ok, warning, type Finding } from './finding.js';
import { checkCircuits, checkDisk, checkFolder, checkNode, checkAgents, checkStore, checkProvider } from './checks.js';
import { agentsFolder } from '../../agents/agents-folder.js';
import { checkSettingPackages } from './packages.js';
import { checkServer } from './temporal.js';
import { EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { isExpired, readAuthFile } from '../../gateway/access/auth-file.js';
import { installCommand, isInstalled, describeNeeds, OIDC_PACKAGES } from '../../platform/optional-package.js';
import { errorMessage } from '../../platform/errors.js';

export interface DoctorOptions {
  readonly format: 'text' | 'json' | 'jsonl';
  /** To be shown to others. */
  readonly report?: boolean;
}

export async function doctor(config: Config, options: DoctorOptions, output: Output): Promise<number> {
  // Alone, since it measures time.
  const server = await checkServer(config);
  const [store, provider, auth, agents, workspace, disk] = await Promise.all([
    checkStore(config),
    checkProvider(config),
    checkAuth(config),
    checkAgents(agentsFolder(config), variablesOf(config), config),
    checkFolder('Workspace', config.workspace, 'PERDURA_WORKSPACE'),
    checkDisk(config),
  ]);
  const found: Report = {
    findings: [
      checkNode(process.versions.node),
      ...server,
      ...store,
      provider,
      ...checkSettingPackages(config),
      ...auth,
      ...checkCircuits(config.cwd, Date.now()),
      ...agents,
      workspace,
      disk,
    ],
    settings: describeSettings(config.env, config.cwd),
  };
  // No form of the output shows a secret; a report that is shown to others does not name the home either.
  const shown = (text: string): string => pasteable(text, secretsOf(config), options.report === true ? loadMachine(config.env).home : '');
  if (options.format === 'text') {
    if (options.report === true) output.line(`perdura doctor, ${process.platform} ${process.arch}`);
    for (const line of renderReport(found)) output.line(shown(line));
  } else {
    output.line(shown(toTerminalJson(found, options.format === 'json' ? 2 : undefined)));
  }
  return isBroken(found) ? EXIT.failed : EXIT.ok;
}

/** Who may open the gateway, where PERDURA_AUTH says it; nothing where it does not. */

export async function checkAuth(
  { authFile }: Pick<Config, 'authFile'>,
  isThere: (name: string) => boolean = isInstalled,
): Promise<Finding[]> {
  if (authFile === undefined) return [];
  try {
    const { tokens, jwt } = await readAuthFile(authFile);
    const expired = tokens.filter((token) => isExpired(token)).map(({ name }) => name);
    const missing = jwt === undefined ? [] : OIDC_PACKAGES.filter((name) => !isThere(name));
    const users = jwt === undefined ? '' : `, users of ${new URL(jwt.issuer).host}`;
    return [
      ok('Gateway', `${tokens.length} tokens${users}`),
      ...(expired.length === 0
        ? []
        : [
            warning(
              'Gateway',
              `${expired.slice(0, 5).join(', ')} opens nothing any more: its time is over`,
              `perdura token revoke ${expired[0]}`,
            ),
          ]),
      ...(missing.length === 0
        ? []
        : [broken('Gateway', `tokens of its identity provider cannot be checked: ${describeNeeds(missing)}`, installCommand(missing))]),
    ];
  } catch (error) {
    return [broken('Gateway', errorMessage(error), 'correct that file, or unset PERDURA_AUTH')];
  }
}
