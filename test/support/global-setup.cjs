/** Jest loads its setup without its module mapper, and names of our files end in `.js`. */
require('../stores/register-swc.cjs');
module.exports = require('./global-setup.ts').default;
