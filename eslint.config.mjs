import { builtinModules } from 'node:module';
import tseslint from 'typescript-eslint';
import noWallClock from './scripts/eslint/no-wall-clock.cjs';

const rules = {
  '@typescript-eslint/no-floating-promises': 'error',
  '@typescript-eslint/no-misused-promises': 'error',
  '@typescript-eslint/await-thenable': 'error',
  '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
  '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'separate-type-imports' }],
  '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_' }],
  '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
  '@typescript-eslint/only-throw-error': 'error',
  '@typescript-eslint/prefer-promise-reject-errors': 'error',
  '@typescript-eslint/no-explicit-any': 'error',
  eqeqeq: 'error',
  'no-constant-condition': ['error', { checkLoops: false }],
  'no-var': 'error',
  'prefer-const': ['error', { destructuring: 'all' }],
};

const readsEnvironment = {
  object: 'process',
  property: 'env',
  message: 'Only src/config.ts reads the environment: add a setting there and take a Config.',
};

const forgetsTime = {
  object: 'AbortSignal',
  property: 'timeout',
  message: 'Node 20 collects it inside AbortSignal.any, and its time never ends: take timeoutSignal.',
};

/** What a command is given instead, so that it can run inside another program. */
const touchesProcess = ['stdin', 'stdout', 'stderr', 'argv', 'exit', 'exitCode', 'cwd', 'chdir', 'on'].map((property) => ({
  object: 'process',
  property,
  message: 'A command has surroundings: only src/cli/session/context.ts makes them of the process.',
}));

const noModuleState = [
  {
    selector: ':matches(Program, Program > ExportNamedDeclaration) > VariableDeclaration[kind=/let|var/]',
    message: 'No module-level variables that change: state arrives as an argument.',
  },
];

/** What a pure function must be given instead of asking the machine. */
const impure = ['process', 'Buffer', 'fetch', 'setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'performance', 'crypto'];

const CORE = 'src/conversation imports of ours only src/records and src/platform/json.ts, and no library but valibot.';

function pure(files, regex, message) {
  return {
    files: [files],
    rules: {
      '@typescript-eslint/no-restricted-imports': ['error', { patterns: [{ regex, message }] }],
      'no-restricted-globals': ['error', ...impure],
      'no-restricted-properties': [
        'error',
        readsEnvironment,
        { object: 'Date', property: 'now', message: 'Time arrives in an event.' },
        { object: 'Math', property: 'random', message: 'Chance arrives in an event.' },
      ],
      'no-restricted-syntax': [
        'error',
        ...noModuleState,
        { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: 'Time arrives in an event.' },
      ],
    },
  };
}

export default tseslint.config(
  {
    ignores: [
      'dist/',
      'packages/*/dist/',
      'dist.new/',
      'node_modules/',
      'coverage/',
      '.perdura/',
      'memory/',
      'workspace/',
      'test/replay/histories/',
      'examples/**/*.ts',
      'packages/perdura-client/src/schema.ts',
    ],
  },
  {
    files: ['**/*.{ts,tsx}'],
    plugins: { '@typescript-eslint': tseslint.plugin },
    languageOptions: { parser: tseslint.parser, parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules,
  },
  {
    files: ['**/*.{mjs,cjs}'],
    languageOptions: { ecmaVersion: 2023 },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: { eqeqeq: 'error', 'no-var': 'error', 'prefer-const': 'error', 'no-unused-vars': ['error', { argsIgnorePattern: '^_' }] },
  },
  {
    // Written as people write them: `node:test` waits for what it is given by itself.
    files: ['templates/**/*.test.ts'],
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', name: 'test', package: 'node:test' }] },
      ],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/config.ts'],
    rules: { 'no-restricted-properties': ['error', readsEnvironment, forgetsTime] },
  },
  {
    files: ['src/cli/**/*.ts'],
    // The worker is a process of its own.
    ignores: ['src/cli/session/context.ts', 'src/cli/worker.ts'],
    rules: { 'no-restricted-properties': ['error', readsEnvironment, forgetsTime, ...touchesProcess] },
  },
  { files: ['src/config.ts', 'bench/**/*.ts', 'test/**/*.ts'], rules: { 'no-restricted-properties': ['error', forgetsTime] } },
  {
    files: ['test/**/*.{ts,tsx}'],
    plugins: { perdura: { rules: { 'no-wall-clock': noWallClock } } },
    rules: { 'perdura/no-wall-clock': 'error' },
  },
  // Pure: no import but its own neighbours and what is below, no clock, no chance, no machine.
  pure('src/records/*.ts', '^(?!valibot$|\\./)', 'src/records imports nothing from outside but valibot.'),
  pure('src/platform/{errors,json}.ts', '', 'The sandbox takes this file, so it imports nothing, not even a type.'),
  pure('src/conversation/*.ts', '^(?!valibot$|\\./|\\.\\./(records/[^/]+|platform/json\\.js)$)', CORE),
  pure('src/conversation/*/*.ts', '^(?!valibot$|\\./|\\.\\./[^.]|\\.\\./\\.\\./(records/[^/]+|platform/json\\.js)$)', CORE),
  {
    // The sandbox: Date and Math.random are Temporal's there and may be used; the host is out of reach.
    files: ['src/workflows/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: `^(node:.*|(${builtinModules.filter((name) => !name.startsWith('_')).join('|')})(/.*)?)$`,
              message: 'No host modules in workflows.',
              allowTypeImports: true,
            },
            { regex: '^zod(/.*)?$', message: 'zod stays out of the sandbox: what comes in is checked by hand.', allowTypeImports: true },
            {
              regex:
                '^(\\.\\./)+(activities|stores|models|memory|tools|agents|cli|testing|telemetry|heal|extensions|client|worker|config)(/|\\.js$|$)',
              message: 'Across the border of the sandbox: `import type` only.',
              allowTypeImports: true,
            },
          ],
        },
      ],
      'no-restricted-globals': ['error', 'process', 'Buffer', 'fetch', 'setInterval', 'setImmediate', 'performance', 'crypto'],
      'no-restricted-syntax': ['error', ...noModuleState],
    },
  },
);
