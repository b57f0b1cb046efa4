/** Part of `npm run check`: no import of src against the table, and no cycle, of types neither. Run with `--require` of register-swc.cjs. */
import { resolve } from 'node:path';
import { checkTree, describeViolation, readTree } from './arrows.js';

const violations = checkTree(readTree(resolve(__dirname, '../../src')));
process.stdout.write(violations.map((violation) => `${describeViolation(violation)}\n`).join(''));
process.exitCode = violations.length === 0 ? 0 : 1;
