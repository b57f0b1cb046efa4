/**
 * Bundles the compiled workflows once, at build time, so that a worker starts without webpack: `workflow-bundle.js` beside
 * the compiled sources. Argument: their folder (default `dist`). Does nothing while there are no workflows.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const compiled = resolve(process.argv[2] ?? join(root, 'dist'));

/** The entry of all workflows, and the module that exports `payloadConverter`; the worker is given the same one. */
const workflowsPath = join(compiled, 'workflows', 'index.js');
const payloadConverterPath = join(compiled, 'workflows', 'payload-converter.js');

if (existsSync(workflowsPath)) {
  const { bundleWorkflowCode, DefaultLogger } = createRequire(import.meta.url)('@temporalio/worker');
  const { code } = await bundleWorkflowCode({
    workflowsPath,
    workflowInterceptorModules: [join(compiled, 'workflows', 'early-questions.js')],
    payloadConverterPath: existsSync(payloadConverterPath) ? payloadConverterPath : undefined,
    logger: new DefaultLogger('WARN'),
  });
  writeFileSync(join(compiled, 'workflow-bundle.js'), code);
}
