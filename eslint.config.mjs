import js from '@eslint/js';
import stylistic from '@stylistic/eslint-plugin';
import jest from 'eslint-plugin-jest';
import tseslint from 'typescript-eslint';
import { plainComment } from './scripts/lint/plain-comment.mjs';

const NODE_GLOBALS = [
  'process',
  'console',
  'module',
  'require',
  '__dirname',
  'Buffer',
  'URL',
  'fetch',
  'performance',
].concat(['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'AbortController', 'AbortSignal', 'WebSocket']);

const LINES = {
  code: 120,
  ignoreUrls: true,
  ignoreStrings: true,
  ignoreTemplateLiterals: true,
  ignoreRegExpLiterals: true,
  // Rows of a table.
  ignorePattern: '^\\s*\\*? \\|',
};

const EXPECTING = ['expect', 'expect*', 'check*', 'verify*', 'assert*', 'refuse*', 'fc.assert', 'given.**'].concat([
  // Conditions with a deadline: a test may end with one.
  'until',
  'eventually',
]);

export default tseslint.config(
  { ignores: ['dist/', 'coverage/', 'node_modules/', 'bench/node_modules/', '.lumio/'] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-explicit-any': ['error', { ignoreRestArgs: false }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      eqeqeq: 'error',
    },
  },
  // An operation declares its refusals, so that OpenAPI documents them.
  {
    files: ['commands/**/*.ts', 'read-api/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: ['**/kernel/errors'],
              importNames: ['ApiError'],
              message: 'declare it in `errors` and throw `refuse(reason)`',
            },
          ],
        },
      ],
    },
  },
  // Rows and answers of a server are read member by member.
  { files: ['engines/postgres/port.ts', 'test/**'], rules: { '@typescript-eslint/no-explicit-any': 'off' } },
  // A vendor's data may hold any JSON: `String` throws for an object whose toString is not a function.
  {
    files: ['ingest/**/*.ts', 'vendors/**/*.ts'],
    rules: { '@typescript-eslint/no-base-to-string': ['error', { checkUnknown: true }] },
  },
  // Short lines read at a glance. Exact texts (strings, patterns, addresses) stay whole, because they are searched for.
  {
    files: ['**/*.ts', '**/*.mjs', '**/*.cjs'],
    plugins: { stylistic },
    rules: { 'stylistic/max-len': ['error', LINES] },
  },
  // Comments in plain words; eslint-suppressions.json has the findings left, whose number per file may only fall.
  {
    files: ['**/*.ts', '**/*.mjs', '**/*.cjs'],
    ignores: ['clients/js/channels.ts'],
    plugins: { local: { rules: { 'plain-comment': plainComment } } },
    rules: { 'local/plain-comment': 'error' },
  },
  // An expectation that may not be reached proves nothing.
  {
    files: ['test/**/*.ts'],
    plugins: { jest },
    rules: {
      'jest/no-conditional-expect': 'error',
      // Helpers that expect, or wait for an expected state and fail at a deadline.
      'jest/expect-expect': ['error', { assertFunctionNames: EXPECTING }],
      'jest/no-disabled-tests': 'error',
      'jest/no-focused-tests': 'error',
      'jest/no-standalone-expect': 'off',
      'jest/no-identical-title': 'error',
      'jest/valid-expect': 'error',
      'jest/valid-expect-in-promise': 'error',
      'jest/no-commented-out-tests': 'error',
    },
  },
  {
    files: ['**/*.mjs', '**/*.cjs'],
    languageOptions: { globals: Object.fromEntries(NODE_GLOBALS.map((name) => [name, 'readonly'])) },
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
);
