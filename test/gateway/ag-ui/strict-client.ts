/** The client's own schemas warn of what they do not know, so a warning is a fault; and the provider must have understood every request. */
import type { World } from '../../support/world.js';

export function expectNoWarnings(world: () => World): void {
  let warned: jest.SpyInstance;
  beforeEach(() => {
    warned = jest.spyOn(console, 'warn').mockImplementation();
    // The test looks at what a run is rejected with.
    jest.spyOn(console, 'error').mockImplementation();
  });
  afterEach(() => {
    expect(warned.mock.calls).toEqual([]);
    expect(world().api.problems).toEqual([]);
    jest.restoreAllMocks();
  });
}
