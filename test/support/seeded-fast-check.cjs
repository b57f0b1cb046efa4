/** What tests get as `fast-check`: the seed of the run is that of every property, so that `npm test` says the same twice. */
const path = require('node:path');
const fc = require(path.join(__dirname, '../../node_modules/fast-check/lib/cjs/fast-check.js'));

const seed = process.env['PERDURA_SEED'];
if (seed) fc.configureGlobal({ seed: Number(seed) });

module.exports = fc;
