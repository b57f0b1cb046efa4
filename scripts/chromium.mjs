import { existsSync } from 'node:fs';
import { findOnPath, runProgram } from './programs.mjs';
import { report } from './report.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];
const PLACES = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
];
const WAYS =
  'Debian: sudo apt-get install chromium; macOS: brew install --cask chromium; elsewhere a Chrome, or PERDURA_TEST_CHROMIUM=/its/path';

/** A browser for the tests of the page: named, on PATH, else from Debian's packages where we may install. Undefined: there is none, and why is said. */
export async function findChromium(named = process.env.PERDURA_TEST_CHROMIUM) {
  if (named !== undefined && !existsSync(named)) {
    throw new Error(`PERDURA_TEST_CHROMIUM names ${named}, which is not there. ${WAYS}`);
  }
  const found = named ?? onThisMachine();
  if (found !== undefined) return { path: found, reason: named === undefined ? 'on this machine' : 'PERDURA_TEST_CHROMIUM' };
  const mayInstall = process.getuid?.() === 0 && existsSync('/etc/debian_version') && findOnPath('apt-get') !== undefined;
  if (mayInstall) {
    report('Browser', 'installing chromium with apt-get, since there is none …');
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const install = () => runProgram('apt-get', ['install', '-y', '--no-install-recommends', 'chromium'], { env });
    if ((await install()).code !== 0) {
      await runProgram('apt-get', ['update']);
      await install();
    }
    const installed = onThisMachine();
    if (installed !== undefined) return { path: installed, reason: 'installed by apt-get' };
  }
  report('Browser', `none: tests of the page are skipped. ${WAYS}`);
  return undefined;
}

function onThisMachine() {
  for (const name of NAMES) {
    const found = findOnPath(name, `${process.env.PATH ?? ''}:/usr/bin`);
    if (found !== undefined) return found;
  }
  return PLACES.find((place) => existsSync(place));
}
