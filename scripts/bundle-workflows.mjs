/**
 * Bundles the compiled workflows once, at build time, so that a worker starts without webpack: `workflow-bundle.js` beside
 * the compiled sources. Argument: their folder (default `dist`). Its source map, by which stack traces name lines, goes without the sources:
 * they are two thirds of the file, and no worker of ours shows them.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const compiled = resolve(process.argv[2] ?? join(root, 'dist'));

const require = createRequire(import.meta.url);
const { bundleWorkflowCode, DefaultLogger } = require('@temporalio/worker');
const { bundleOptions } = require(join(compiled, 'extensions', 'custom-workflows.js'));
const { code } = await bundleWorkflowCode({ ...bundleOptions(), logger: new DefaultLogger('WARN') });
writeFileSync(join(compiled, 'workflow-bundle.js'), withoutSources(code));

function withoutSources(code) {
  const [begin, json] = code.split(/(?<=\/\/# sourceMappingURL=data:[^,\n]*;base64,)/);
  const { sourcesContent, ...map } = JSON.parse(Buffer.from(json, 'base64').toString());
  if (sourcesContent === undefined) throw new Error('cannot take the sources out of the map of the workflow bundle: there are none');
  return `${begin}${Buffer.from(JSON.stringify(map)).toString('base64')}`;
}
