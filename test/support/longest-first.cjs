/**
 * The order of the files: the long ones first, so that none of them begins when the others have ended. Jest knows how long each took
 * the last time; in a fresh clone it goes by their size, which says little here: then those go first that wait for processes. Where both
 * tiers run together, those of the second are the long ones.
 */
const { sep } = require('node:path');
const { default: Sequencer } = require('@jest/test-sequencer');

/** Longest first: folders, and within them the files that have most to do. */
const SLOW = ['replay', 'page', 'readme', 'package', 'cli/commands', 'workflows', 'chaos', 'e2e', 'gateway', 'heal', 'memory'];
const FIRST = [
  'conversation/lives',
  'replay',
  'chaos',
  'page/tour',
  'package/packed',
  'fuzz',
  'temporal',
  'heal',
  'e2e',
  'cli',
  'gateway',
  'architecture',
  'stores',
];

module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const sorted = [...super.sort(tests)];
    return sorted.every(({ duration }) => duration === undefined) ? sorted.sort((a, b) => rankOf(a) - rankOf(b)) : sorted;
  }
};

function rankOf({ path }) {
  return path.endsWith('.slow.test.ts') ? rankIn(SLOW, path) : SLOW.length + 1 + rankIn(FIRST, path);
}

function rankIn(places, path) {
  const rank = places.findIndex((place) => path.includes(`${sep}test${sep}${place.replace('/', sep)}`));
  return rank === -1 ? places.length : rank;
}
