/** `perdura doctor`: whether everything that is needed is there, and how to fix what is not. Changes nothing that stays. */
import { agentNames, agentsFolder } from '../../agents/load-agent.js';
import {
  checkAgents,
  checkCircuits,
  checkDisk,
  checkDotEnv,
  checkFolder,
  checkNode,
  checkProvider,
  checkSandbox,
  checkSettingPackages,
  checkStore,
  broken,
  isBroken,
  ok,
  pasteable,
  renderReport,
  warning,
  type Finding,
  type Report,
} from './checks.js';
import { checkServer } from './temporal.js';
import type { Answer, CommandFrame } from '../session/command.js';
import { EXIT } from '../terminal/exit.js';
import { describeSettings, loadMachine, secretsOf, temporalConnection, variablesOf, type Config } from '../../config.js';
import { isExpired, readAuthFile } from '../../gateway/access/auth-file.js';
import { errorMessage } from '../../platform/errors.js';
import { installCommand, isInstalled, describeNeeds, OIDC_PACKAGES } from '../../platform/optional-package.js';
import { openStore } from '../../stores/open.js';
import type { Store } from '../../stores/store.js';
import { toolName } from '../../tools/mcp/server-tool.js';

/** `report`: to be shown to others. */
export async function doctor({ config: load }: CommandFrame, { report = false }: { readonly report?: boolean }): Promise<Answer> {
  const config = load();
  // Alone, since it measures time.
  const server = await checkServer(config);
  const [store, provider, auth, agents, waiting, workspace, disk, dotEnv, sandbox] = await Promise.all([
    checkStore(config),
    checkProvider(config),
    checkAuth(config),
    checkAgents(agentsFolder(config), variablesOf(config), config),
    checkWaitingTools(config),
    checkFolder('Workspace', config.workspace, 'PERDURA_WORKSPACE'),
    checkDisk(config),
    checkDotEnv(config.cwd),
    checkSandbox(),
  ]);
  const found: Report = {
    findings: [
      checkNode(process.versions.node),
      ...server,
      ...store,
      provider,
      ...checkSettingPackages(config),
      ...dotEnv,
      ...auth,
      ...checkCircuits(config.cwd, Date.now()),
      ...agents,
      ...waiting,
      workspace,
      sandbox,
      disk,
    ],
    settings: describeSettings(config.env, config.cwd),
  };
  // No form of the output shows a secret; a report that is shown to others does not name the home either.
  const shown = (text: string): string => pasteable(text, secretsOf(config), report ? loadMachine(config.env).home : '');
  const head = report ? [`perdura doctor, ${process.platform} ${process.arch}`] : [];
  return {
    data: JSON.parse(shown(JSON.stringify(found))) as unknown,
    text: [...head, ...renderReport(found)].map(shown).join('\n'),
    exitCode: isBroken(found) ? EXIT.failed : EXIT.ok,
  };
}

// Who may open the gateway, where PERDURA_AUTH says it; nothing where it does not.

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
              `perdura admin token revoke ${expired[0]}`,
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

/** Tools of MCP servers that wait for a person, as workers saw them last. Nothing where the store does not tell: that is a finding itself. */
async function checkWaitingTools(config: Config): Promise<Finding[]> {
  let store: Store | undefined;
  try {
    const { namespace } = await temporalConnection(config);
    store = openStore(config, { log: () => undefined });
    const found: Finding[] = [];
    for (const agent of await agentNames(config)) {
      const { waiting } = await store.pins.list({ namespace, agent });
      const tools = waiting.map(({ server, tool }) => toolName(server, tool));
      if (tools.length === 0) continue;
      const shown = `${tools.slice(0, 5).join(', ')}${tools.length > 5 ? ` and ${tools.length - 5} more` : ''}`;
      const what = `added or changed since its servers were accepted, and not offered: ${shown}`;
      found.push(warning(`MCP of ${agent}`, what, `perdura mcp tools ${agent}, then perdura mcp accept ${agent}`));
    }
    return found;
  } catch {
    return [];
  } finally {
    await store?.close();
  }
}

/** Milliseconds for which an answer stands: however many look, it is found once. */
const FRESH_MS = 30_000;

const known = new WeakMap<Config, { readonly at: number; readonly findings: Promise<readonly Finding[]> }>();

/** Without secrets, and without the name of a person's folder. */
export function findingsHere(config: Config): Promise<readonly Finding[]> {
  const before = known.get(config);
  if (before !== undefined && Date.now() - before.at < FRESH_MS) return before.findings;
  const findings = look(config);
  known.set(config, { at: Date.now(), findings });
  findings.catch(() => known.delete(config));
  return findings;
}

async function look(config: Config): Promise<readonly Finding[]> {
  const [server, store, agents, waiting, workspace, disk, dotEnv, sandbox] = await Promise.all([
    checkServer(config, { measures: false }),
    checkStore(config),
    checkAgents(agentsFolder(config), variablesOf(config), config),
    checkWaitingTools(config),
    checkFolder('Workspace', config.workspace, 'PERDURA_WORKSPACE'),
    checkDisk(config),
    checkDotEnv(config.cwd),
    checkSandbox(),
  ]);
  const all = [
    checkNode(process.versions.node),
    ...server,
    ...store,
    ...checkSettingPackages(config),
    ...dotEnv,
    ...checkCircuits(config.cwd, Date.now()),
    ...agents,
    ...waiting,
    workspace,
    sandbox,
    disk,
  ];
  const shown = (text: string): string => pasteable(text, secretsOf(config), loadMachine(config.env).home);
  return all.map(({ mend, ...one }) => ({ ...one, found: shown(one.found), ...(mend !== undefined && { mend: shown(mend) }) }));
}
