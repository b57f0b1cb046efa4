/** Which optional packages the agents and the settings ask for, and which of them are not installed. */
import type { Config } from '../../config.js';
import type { LoadedAgent } from '../../agents/load-agent.js';
import { splitModel } from '../../models/known-models.js';
import { findTokenizer } from '../../models/token-counter.js';
import {
  installCommand,
  isInstalled,
  MCP_PACKAGE,
  describeNeeds,
  OTEL_PACKAGE,
  PAGE_PACKAGES,
  PROVIDER_PACKAGES,
  TOKENIZER_PACKAGE,
} from '../../platform/optional-package.js';
import { fetchUrl } from '../../tools/builtin/web/fetch-url.js';
import { broken, skipped, warning, type Finding } from './finding.js';

type Asking = Pick<LoadedAgent, 'id' | 'config' | 'servers'>;
type IsInstalled = (name: string) => boolean;

/** Of one agent; its first model is what it cannot do without. */
export function checkAgentPackages({ id, config, servers }: Asking, isThere: IsInstalled = isInstalled): Finding[] {
  const { model, models = [], context, memory } = config;
  const others = [...models, context.summaryModel, memory.consolidationModel].filter((name) => name !== undefined && name !== model);
  const cannot = (what: string, names: readonly string[], finding: typeof warning): Finding[] => {
    const missing = names.filter((name) => !isThere(name));
    return missing.length === 0 ? [] : [finding(`Agent ${id}`, `${what}: ${describeNeeds(missing)}`, installCommand(missing))];
  };
  const hasPages = config.tools === undefined || config.tools.includes(fetchUrl.name);
  return [
    ...(model === undefined ? [] : cannot(`${model} cannot answer`, packagesOf(model), broken)),
    ...others.flatMap((name) => cannot(`${name} cannot answer`, packagesOf(name ?? ''), warning)),
    ...(servers.length === 0 ? [] : cannot('its MCP servers cannot be asked', [MCP_PACKAGE], broken)),
    ...(hasPages ? cannot('fetch_url shows pages as HTML, not as Markdown', PAGE_PACKAGES, hint) : []),
    ...(model !== undefined && findTokenizer(model)
      ? cannot(`tokens of ${model} are estimated, not counted`, [TOKENIZER_PACKAGE], hint)
      : []),
  ];
}

/** It works without: nothing to mend, only something to know. */
function hint(what: string, found: string, mend: string): Finding {
  return { ...skipped(what, found), mend };
}

function packagesOf(model: string): readonly string[] {
  const needed = PROVIDER_PACKAGES[splitModel(model).provider];
  return needed === undefined ? [] : [needed];
}

/** Of what the settings ask for beside models, which are asked themselves. */
export function checkSettingPackages({ otel }: Pick<Config, 'otel'>, isThere: IsInstalled = isInstalled): Finding[] {
  if (otel === undefined || isThere(OTEL_PACKAGE)) return [];
  return [
    broken(
      'OpenTelemetry',
      `no worker starts with these OTEL_* settings: ${describeNeeds([OTEL_PACKAGE])}`,
      installCommand([OTEL_PACKAGE]),
    ),
  ];
}
