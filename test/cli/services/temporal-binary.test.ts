import { chooseTemporalBinary, type BinaryProbes } from '../../../src/cli/services/temporal-binary.js';

/** A machine that has nothing and reaches nothing; the calls made to it are listed. */
function machine(has: Partial<BinaryProbes> = {}): { probes: BinaryProbes; asked: string[] } {
  const asked: string[] = [];
  const nothing: BinaryProbes = {
    onPath: () => undefined,
    inGoBin: async () => undefined,
    cached: () => undefined,
    download: async () => Promise.reject(new Error('getaddrinfo ENOTFOUND temporal.download')),
    hasGo: () => false,
    goInstall: async () => Promise.reject(new Error('no route to the module proxy')),
  };
  const all = { ...nothing, ...has };
  const listed = Object.fromEntries(
    Object.entries(all).map(([name, probe]) => [
      name,
      () => {
        asked.push(name);
        return (probe as () => unknown)();
      },
    ]),
  );
  return { probes: listed as unknown as BinaryProbes, asked };
}

const silent = (): void => {};

test('a program on PATH is used, and nothing else is asked', async () => {
  const { probes, asked } = machine({ onPath: () => '/usr/bin/temporal', cached: () => '/cache/temporal' });
  expect(await chooseTemporalBinary(probes, silent)).toEqual({ path: '/usr/bin/temporal', reason: 'on PATH' });
  expect(asked).toEqual(['onPath']);
});

test('what Go installed is found beside PATH', async () => {
  const { probes } = machine({ inGoBin: async () => '/go/bin/temporal', cached: () => '/cache/temporal' });
  expect(await chooseTemporalBinary(probes, silent)).toEqual({ path: '/go/bin/temporal', reason: 'installed by Go' });
});

test('what was fetched earlier is not fetched again', async () => {
  const { probes, asked } = machine({ cached: () => '/cache/temporal' });
  expect(await chooseTemporalBinary(probes, silent)).toEqual({ path: '/cache/temporal', reason: 'fetched earlier' });
  expect(asked).toEqual(['onPath', 'inGoBin', 'cached']);
});

test('the official download comes before compiling', async () => {
  const { probes, asked } = machine({ download: async () => '/cache/temporal', hasGo: () => true });
  expect(await chooseTemporalBinary(probes, silent)).toMatchObject({
    path: '/cache/temporal',
    reason: 'downloaded from temporal.download',
  });
  expect(asked).not.toContain('goInstall');
});

test('when the download fails and Go is there it is compiled, and each step is said with its reason', async () => {
  const { probes } = machine({ hasGo: () => true, goInstall: async () => '/cache/temporal' });
  const said: string[] = [];
  expect(await chooseTemporalBinary(probes, (text) => said.push(text))).toMatchObject({ path: '/cache/temporal' });
  expect(said).toEqual([
    expect.stringMatching(/^downloading .* since it is neither on PATH nor in the cache/),
    'the download failed: getaddrinfo ENOTFOUND temporal.download',
    expect.stringMatching(/^compiling .* since Go is here: about 3 minutes/),
  ]);
});

test('where nothing works it stops with exit code 3, every reason and the ways to get one', async () => {
  await expect(chooseTemporalBinary(machine().probes, silent)).rejects.toMatchObject({
    exitCode: 3,
    message: expect.stringMatching(
      /ENOTFOUND temporal\.download[^]*Go, which could compile it, is not on PATH[^]*brew install temporal[^]*TEMPORAL_ADDRESS/,
    ),
  });
});

test('a failed compilation is among the reasons', async () => {
  await expect(chooseTemporalBinary(machine({ hasGo: () => true }).probes, silent)).rejects.toMatchObject({
    exitCode: 3,
    message: expect.stringContaining('go install failed: no route to the module proxy.'),
  });
});
