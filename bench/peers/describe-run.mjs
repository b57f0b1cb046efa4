import { readFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { PEERS } from './peers/index.mjs';

/** When and on what a run was made, and which versions took part. */
export async function describeRun(names) {
  const root = process.env.PERDURA_ROOT ?? '../..';
  const versions = { perdura: versionIn(new URL(`${root.startsWith('/') ? `file://${root}` : root}/package.json`, import.meta.url)) };
  for (const name of names.flatMap((one) => PEERS[one].packages)) {
    versions[name] = versionIn(new URL(`./node_modules/${name}/package.json`, import.meta.url));
  }
  return {
    date: new Date().toISOString().slice(0, 10),
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    load: loadavg().map((one) => Number(one.toFixed(1))),
    node: process.version,
    versions,
  };
}

function versionIn(url) {
  return JSON.parse(readFileSync(url, 'utf8')).version;
}
