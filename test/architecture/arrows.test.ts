import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, resolve, sep } from 'node:path';
import { ARROWS, checkTree, describeViolation, readTree } from './arrows.js';
import { readModule } from './read-module.js';

const src = resolve(__dirname, '../../src');

test('src keeps to the table of imports, reads its environment in one place, and is pure where it must be', () => {
  const tree = readTree(src);
  expect(tree.size).toBeGreaterThan(80);
  expect(checkTree(tree).map(describeViolation)).toEqual([]);
});

test('in the table values and types come only from places above, so the picture has no cycle', () => {
  const places = ARROWS.map(({ place }) => place);
  for (const [index, { place, may, mayTypes = [] }] of ARROWS.entries()) {
    for (const allowed of [...may, ...mayTypes]) {
      const at = places.findIndex((other) => allowed.startsWith(other));
      expect({ place, allowed, named: at >= 0 && at < index }).toEqual({ place, allowed, named: true });
    }
  }
});

describe('every rule can fail', () => {
  const sound = {
    'conversation/state.ts':
      "import { add } from './effect.js';\nexport const VERSION = 1;\nexport const when = (at: number) => new Date(add(at));",
    'records/slots.ts': 'export const one = 1;',
    'records/memory/items.ts': "import { z } from 'zod';\nimport { one } from '../slots.js';",
    'conversation/effect.ts': 'export const add = (n: number) => n + 1;\nconst WORDS: ReadonlySet<string> = new Set(["a"]);',
    'conversation/turn/turn.ts': "import { VERSION } from '../state.js';",
    'config.ts': "import { join } from 'node:path';\nexport const level = process.env['LEVEL'];",
    'stores/store.ts': "import type { one } from '../records/slots.js';",
    'stores/redis/index.ts': "import { Redis } from 'ioredis';\nimport type { S } from '../store.js';",
    'models/model.ts': "import { one } from '../records/slots.js';",
    'models/providers.ts': "import { ask } from './anthropic/client.js';",
    'models/offline.ts': "import type { M } from './model.js';",
    'models/anthropic/client.ts': "import type { M } from '../model.js';\nexport const ask = 1;",
    'memory/bodies.ts': "import type { S } from '../stores/store.js';",
    'memory/recall/recall.ts': "import { line } from '../documents/lines.js';\nexport const recall = line;",
    'memory/documents/lines.ts': 'export const line = 1;',
    'tools/tool.ts': "import type { M } from '../models/model.js';",
    'tools/builtin/index.ts': "import { z } from 'zod';",
    'agents/load.ts': "import { t } from '../tools/tool.js';",
    'activities/index.ts': "import { Context } from '@temporalio/activity';\nimport { S } from '../stores/store.js';",
    'workflows/messages.ts': "import { defineSignal } from '@temporalio/workflow';",
    'workflows/temporal-host.ts': "import { condition } from '@temporalio/workflow';\nexport const now = () => Date.now();",
    'workflows/loop.ts': "import type { A } from '../activities/index.js';\nimport { add } from '../conversation/effect.js';",
    'client/errors.ts': "import { ApplicationFailure } from '@temporalio/common';",
    'client.ts': "import { e } from './client/errors.js';\nimport { m } from './workflows/messages.js';",
    'telemetry/observability.ts': "import type { L } from '../config.js';",
    'worker.ts': "import { m } from './models/offline.js';\nconst path = require.resolve('./workflows/index');",
    'cli/main.ts': "import { c } from '../config.js';\nasync () => { const { w } = await import('../worker.js'); };",
  };

  const found = (changes: Record<string, string>): string[] =>
    checkTree(new Map(Object.entries({ ...sound, ...changes }))).map(describeViolation);

  test('a sound tree passes', () => {
    expect(found({})).toEqual([]);
  });

  test.each<[rule: string, file: string, text: string, complaint: string]>([
    [
      'the core takes no library',
      'conversation/effect.ts',
      "import { z } from 'zod';",
      ':1: imports "zod": conversation/ imports of packages only valibot',
    ],
    [
      'nor a host module',
      'conversation/effect.ts',
      "import 'node:fs';",
      ':1: imports "node:fs": conversation/ imports of packages only valibot',
    ],
    [
      'nor a type of one',
      'conversation/effect.ts',
      "import type { z } from 'zod';",
      ':1: imports a type from "zod": conversation/ imports of packages only valibot',
    ],
    [
      'the core leaves its folder',
      'conversation/effect.ts',
      "\nimport type { S } from '../stores/store.js';",
      ':2: imports a type from "../stores/store.js": conversation/ imports of ours only records/',
    ],
    ['records know the conversation', 'records/slots.ts', "import type { V } from '../conversation/state.js';", 'records/ imports nothing'],
    ['the core takes a schema', 'conversation/effect.ts', "import { i } from '../records/memory/items.js';", 'conversation/ never imports'],
    ['a model knows a store', 'models/model.ts', "import type { S } from '../stores/store.js';", 'models/ imports of ours only records/'],
    [
      'a model knows Temporal',
      'models/model.ts',
      "import { log } from '@temporalio/activity';",
      'models/ never imports @temporalio/, ioredis',
    ],
    ['a store knows memory', 'stores/store.ts', "import { b } from '../memory/bodies.js';", 'stores/ imports of ours only records/'],
    [
      'memory names an implementation',
      'memory/bodies.ts',
      "import { r } from '../stores/redis/index.js';",
      'memory/ imports of ours only records/, conversation/, platform/, search/, stores/store.ts, models/model.ts',
    ],
    ['tools know agents', 'tools/tool.ts', "import type { A } from '../agents/load.js';", 'tools/ imports of ours only'],
    ['agents choose tools', 'agents/load.ts', "import { all } from '../tools/builtin/index.js';", 'agents/ never imports'],
    [
      'activities choose a store',
      'activities/index.ts',
      "import { r } from '../stores/redis/index.js';",
      'activities/ imports of ours only',
    ],
    [
      'activities choose a provider',
      'activities/index.ts',
      "import { ask } from '../models/anthropic/client.js';",
      'activities/ never imports',
    ],
    [
      'activities know workflows',
      'activities/index.ts',
      "import type { L } from '../workflows/loop.js';",
      'activities/ imports of ours only',
    ],
    [
      'workflows run activities themselves',
      'workflows/loop.ts',
      "import { a } from '../activities/index.js';",
      'workflows/ imports only types from activities/',
    ],
    [
      'workflows re-export them',
      'workflows/loop.ts',
      "export * from '../activities/index.js';",
      'workflows/ imports only types from activities/',
    ],
    [
      'workflows load them lazily',
      'workflows/loop.ts',
      "void import('../activities/index.js');",
      'workflows/ imports only types from activities/',
    ],
    [
      'workflows require them',
      'workflows/loop.ts',
      "const a = require('../activities/index.js');",
      'workflows/ imports only types from activities/',
    ],
    [
      'one value among types',
      'workflows/loop.ts',
      "import { type A, b } from '../activities/index.js';",
      'workflows/ imports only types from activities/',
    ],
    [
      'zod in the sandbox',
      'workflows/loop.ts',
      "import { z } from 'zod';",
      ':1: imports "zod": workflows/ imports of packages only @temporalio/common',
    ],
    ['a host module in the sandbox', 'workflows/loop.ts', "import { readFileSync } from 'node:fs';", ':1: imports "node:fs"'],
    ['a host module without its prefix', 'workflows/loop.ts', "import { readFileSync } from 'fs';", ':1: imports "fs"'],
    ['the client knows the loop', 'client.ts', "import type { L } from './workflows/loop.js';", 'client.ts imports of ours only'],
    ['and its folder does', 'client/errors.ts', "import type { L } from '../workflows/loop.js';", 'client/ imports of ours only'],
    ['the CLI knows the loop', 'cli/main.ts', "import { L } from '../workflows/loop.js';", 'cli/ imports of ours only'],
    ['the loop knows Temporal', 'workflows/loop.ts', "import { condition } from '@temporalio/workflow';", 'imports of packages only'],
    ['and its host', 'workflows/loop.ts', "import { t } from './temporal-host.js';", 'workflows/ never imports'],
    ['the worker imports workflows', 'worker.ts', "import { l } from './workflows/loop.js';", 'worker.ts imports of ours only'],
    ['a place without a row', 'porch/http.ts', '', 'src/porch/http.ts:1: a file in a new place: every place in src has a row'],
    ['a file that is not there', 'config.ts', "import './nowhere.js';", ':1: imports "./nowhere.js": no such file'],
    ['an import that leaves src', 'cli/main.ts', "import '../../package.json';", 'an import stays inside src'],
    ['a computed import', 'workflows/loop.ts', 'void import(name);', ':1: imports "name": workflows/ imports of packages only'],
    ['the environment', 'cli/main.ts', 'const home = process.env.HOME;', ':1: process.env: only config.ts reads the environment'],
    ['the environment in brackets', 'cli/main.ts', "const e = globalThis.process['env'];", 'only config.ts reads the environment'],
    ['the environment taken apart', 'cli/main.ts', 'const { env: e } = process;', 'only config.ts reads the environment'],
    ['the environment imported', 'cli/main.ts', "import { env } from 'node:process';", 'only config.ts reads the environment'],
    [
      'a changing module variable',
      'conversation/effect.ts',
      'export let n = 0;\nexport const add = 1;',
      ':1: export let n = 0;: no module-level state here',
    ],
    ['an old-fashioned one', 'workflows/loop.ts', 'var n = 0;', 'no module-level state here'],
    [
      'a collection of the module',
      'workflows/loop.ts',
      'const seen = new Map<string, number>();',
      ':1: seen = new Map<string, number>(): no module-level state here',
    ],
    ['the clock', 'workflows/loop.ts', 'const f = () => Date.now();', ':1: Date.now: time and chance arrive in events'],
    ['the clock by another name', 'conversation/effect.ts', 'const f = () => +new Date;', ':1: new Date: time and chance arrive in events'],
    ['and another', 'conversation/effect.ts', 'const f = () => Date();', 'time and chance arrive in events'],
    ['chance', 'conversation/effect.ts', 'const f = () => Math.random();', ':1: Math.random: time and chance arrive in events'],
    ['chance as an id', 'workflows/loop.ts', 'const f = () => crypto.randomUUID();', 'time and chance arrive in events'],
    [
      'a cycle',
      'conversation/effect.ts',
      "import { VERSION } from './state.js';",
      'src/conversation/effect.ts:1: imports "./state.js": no cycles: conversation/state.ts -> conversation/effect.ts -> conversation/state.ts',
    ],
    [
      'a cycle of types',
      'conversation/effect.ts',
      "import type { VERSION } from './state.js';",
      'no cycles: conversation/state.ts -> conversation/effect.ts -> conversation/state.ts',
    ],
    [
      'a cycle that is loaded late',
      'conversation/effect.ts',
      "export const later = () => import('./state.js');",
      'no cycles: conversation/state.ts',
    ],
    [
      'a room of the core takes from one that comes after it',
      'conversation/effect.ts',
      "import { turn } from './turn/turn.js';",
      ':1: imports "./turn/turn.js": conversation/effect.ts comes before conversation/turn/',
    ],
    [
      'a room of the CLI takes from one that comes after it',
      'cli/terminal/output.ts',
      "export const later = () => import('../main.js');",
      ':1: imports "../main.js": cli/terminal/ comes before cli/main.ts',
    ],
    [
      'two rooms of memory stand on each other',
      'memory/documents/lines.ts',
      "import { recall } from '../recall/recall.js';\nexport const line = recall;",
      'rooms of memory/ take values from each other one way',
    ],
    ['a room of the core without a place', 'conversation/porch/door.ts', '', 'every room of conversation/ has a place in ORDERS'],
    ['a module that imports itself', 'config.ts', "import { level } from './config.js';", 'no cycles: config.ts -> config.ts'],
  ])('%s', (_rule, file, text, complaint) => {
    const complaints = found({ [file]: text });
    expect(complaints.join('\n')).toContain(complaint);
    expect(complaints.join('\n')).toContain(`src/${file}:`);
  });

  test('what is allowed is not reported: types, texts and comments that look like code', () => {
    expect(
      found({
        'workflows/loop.ts': [
          "import { type A, type B } from '../activities/index.js';",
          "export type { C } from '../activities/index.js';",
          "type D = import('../activities/index.js').D;",
          '// Date.now() and process.env',
          'const shown = "Date.now() process.env";',
          'const f = () => { let n = 0; const seen = new Map(); return new Date(0); };',
        ].join('\n'),
      }),
    ).toEqual([]);
  });
});

test('every way to import is seen, with its line', () => {
  const text = [
    "import a from './a.js';",
    "import * as b from './b.js';",
    "import './c.js';",
    "export { d } from './d.js';",
    "import e = require('./e.js');",
    "const f = () => import('./f.js');",
    "import type { G } from './g.js';",
    "import {} from './h.js';",
  ].join('\n');
  expect(readModule('x.ts', text).imports).toEqual([
    { specifier: './a.js', kind: 'runtime', line: 1 },
    { specifier: './b.js', kind: 'runtime', line: 2 },
    { specifier: './c.js', kind: 'runtime', line: 3 },
    { specifier: './d.js', kind: 'runtime', line: 4 },
    { specifier: './e.js', kind: 'runtime', line: 5 },
    { specifier: './f.js', kind: 'lazy', line: 6 },
    { specifier: './g.js', kind: 'type', line: 7 },
    { specifier: './h.js', kind: 'runtime', line: 8 },
  ]);
});

describe('the page', () => {
  const web = resolve(__dirname, '../../web/src');
  /** What it is made of; anything else would be one more thing to load. */
  const PACKAGES = ['preact', 'preact/hooks', '@preact/signals', 'marked', 'dompurify', 'highlight.js', 'highlight.js/lib/common'];

  /** Plain data, the client for browsers, and how a report is read (pure by their rows in the table). */
  const SHARED =
    /^\.\.\/\.\.\/(?:src\/records\/[^/]+|packages\/perdura-client\/src\/[^/]+|src\/whatif\/(?:report|differences|totals|summary|read-report))\.js$/;

  const strangersIn = (tree: ReadonlyMap<string, string>): string[] =>
    [...tree].flatMap(([file, text]) =>
      readModule(file, text).imports.flatMap(({ specifier }) => {
        if (!specifier.startsWith('.')) return PACKAGES.includes(specifier) ? [] : [`${file} imports ${specifier}`];
        const target = posix.join(posix.dirname(file), specifier);
        const isOutside = target.startsWith('..') && !SHARED.test(target);
        return isOutside ? [`${file} imports ${specifier}, outside web/src and src/records`] : [];
      }),
    );

  test('knows the gateway by HTTP alone: of src the plain data of records, the reading of reports, the client for browsers, and few packages', () => {
    const paths = readdirSync(web, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path));
    expect(paths.length).toBeGreaterThan(30);
    expect(strangersIn(new Map(paths.map((path) => [path.split(sep).join('/'), readFileSync(join(web, path), 'utf8')])))).toEqual([]);
  });

  test('and the rule can fail', () => {
    const tree = new Map([
      [
        'views/chat/index.tsx',
        "import type { Usage } from '../../../../src/records/message.js';\nimport type { Item } from '../../../../src/records/memory/items.js';\nimport { open } from '../../../../src/client.js';\nimport { play } from '../../../../src/whatif/player.js';\nimport { useEffect } from 'preact/hooks';",
      ],
      ['main.tsx', "import { z } from 'zod';\nimport './styles/base.css';"],
    ]);
    expect(strangersIn(tree)).toEqual([
      'views/chat/index.tsx imports ../../../../src/records/memory/items.js, outside web/src and src/records',
      'views/chat/index.tsx imports ../../../../src/client.js, outside web/src and src/records',
      'views/chat/index.tsx imports ../../../../src/whatif/player.js, outside web/src and src/records',
      'main.tsx imports zod',
    ]);
  });
});
