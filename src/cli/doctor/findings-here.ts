/** What the doctor finds, for a page that is looked at again and again: without what asks a model, or measures the server. */
import { agentsFolder } from '../../agents/agents-folder.js';
import { loadMachine, variablesOf, secretsOf, type Config } from '../../config.js';
import { checkAgents, checkCircuits, checkDisk, checkFolder, checkNode, checkStore } from './checks.js';
import { pasteable, type Finding } from './finding.js';
import { checkSettingPackages } from './packages.js';
import { checkServer } from './temporal.js';

/** Milliseconds for which an answer stands: however many look, it is asked once. */
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
  const [server, store, agents, workspace, disk] = await Promise.all([
    checkServer(config, { measures: false }),
    checkStore(config),
    checkAgents(agentsFolder(config), variablesOf(config), config),
    checkFolder('Workspace', config.workspace, 'PERDURA_WORKSPACE'),
    checkDisk(config),
  ]);
  const all = [
    checkNode(process.versions.node),
    ...server,
    ...store,
    ...checkSettingPackages(config),
    ...checkCircuits(config.cwd, Date.now()),
    ...agents,
    workspace,
    disk,
  ];
  const shown = (text: string): string => pasteable(text, secretsOf(config), loadMachine(config.env).home);
  return all.map(({ mend, ...one }) => ({ ...one, found: shown(one.found), ...(mend !== undefined && { mend: shown(mend) }) }));
}
