/**
 * `node --require perdura/register`: runs `.ts` files as `perdura.config.ts` is run, so that a project's tests need no transpiler beside
 * that of Perdura. For folders whose package.json does not say `"type": "module"`.
 */
import { transformSync } from '@swc/core';
import { installTypeScript } from './extensions/typescript.js';

installTypeScript(transformSync);
process.setSourceMapsEnabled(true);
