/** What runs the conversations of a test file: Temporal, or the engine of src/testing, which runs the same loop and handlers in memory. */
export type EngineName = 'memory' | 'temporal';

/** Tests of decisions (test/workflows) run on the engine of their tier (jest.config.cjs), all others on Temporal, and so programs beside jest. */
export function engineOfThisFile(): EngineName {
  const path = typeof expect === 'undefined' ? undefined : expect.getState().testPath;
  const isOfDecisions = /[\\/]test[\\/]workflows[\\/]/.test(path ?? '');
  return isOfDecisions && process.env['PERDURA_TEST_ENGINE'] === 'memory' ? 'memory' : 'temporal';
}
