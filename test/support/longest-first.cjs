/**
 * The order of the files: the long ones first, so that none of them begins when the others have ended. Jest knows how long each took
 * the last time; in a fresh clone it goes by their size, which says little here: then those go first that wait for processes.
 */
const { sep } = require('node:path');
const { default: Sequencer } = require('@jest/test-sequencer');

/** Longest first. */
const FOLDERS = ['page', 'replay', 'cli/commands', 'package', 'readme', 'chaos', 'e2e', 'workflows', 'heal', 'architecture'];

module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const sorted = [...super.sort(tests)];
    return sorted.every(({ duration }) => duration === undefined) ? sorted.sort((a, b) => rankOf(a) - rankOf(b)) : sorted;
  }
};

function rankOf({ path }) {
  const rank = FOLDERS.findIndex((folder) => path.includes(`${sep}test${sep}${folder.replace('/', sep)}${sep}`));
  return rank === -1 ? FOLDERS.length : rank;
}
