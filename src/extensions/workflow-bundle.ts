/** What a bundle of workflows is made with, wherever it is made: by the build, by a worker that starts, by tests and the bench. */
import { join } from 'node:path';
import type { BundleOptions } from '@temporalio/worker';

type Made = Required<Pick<BundleOptions, 'workflowsPath' | 'payloadConverterPath' | 'workflowInterceptorModules' | 'preloadModules'>>;

/** `sources`: where `workflows/` is, compiled or not. */
export function bundleOptions(sources = join(__dirname, '..')): Made {
  const at = (name: string): string => require.resolve(join(sources, 'workflows', name));
  return {
    workflowsPath: at('index'),
    payloadConverterPath: at('payload-converter'),
    // The first is the outermost: it counts what the second has added.
    workflowInterceptorModules: [at('measured-history'), at('early-questions'), at('reserved-names')],
    // Pure, so that one copy does for all conversations of a worker: it is neither run nor kept for each of them.
    preloadModules: [
      at('call-stacks'),
      ...['apply', 'next-step', 'opening', 'protocol/input', 'protocol/memory-contract'].map((name) => at(`../conversation/${name}`)),
    ],
  };
}
