import js from '@eslint/js';
import stylistic from '@stylistic/eslint-plugin';
import jest from 'eslint-plugin-jest';
import tseslint from 'typescript-eslint';

const NODE_GLOBALS = ['process', 'console', 'module', 'require', 'Buffer', 'URL', 'fetch', 'performance'].concat([
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'AbortController',
  'AbortSignal',
  'WebSocket',
]);

const LINES = {
  code: 120,
  ignoreUrls: true,
  ignoreStrings: true,
  ignoreTemplateLiterals: true,
  ignoreRegExpLiterals: true,
  // The rows of a table.
  ignorePattern: '^\\s*\\*? \\|',
};

const EXPECTING = [
  'expect',
  'expect*',
  'check*',
  'verify*',
  'until',
  '**.until',
  '**.next',
  'eventually',
  'fc.assert',
].concat(['through', 'settled', 'given.**', 'works', 'serves', 'refuses', 'holds', 'assert*', 'refused*', 'flat']);

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
  // What an operation refuses stands in its declaration, or OpenAPI does not know of it.
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
  // Rows and answers of a server are looked into member by member.
  { files: ['engines/postgres/port.ts', 'test/**'], rules: { '@typescript-eslint/no-explicit-any': 'off' } },
  // What a vendor says may hold any JSON: `String` throws at an object whose toString is no function.
  {
    files: ['ingest/**/*.ts', 'vendors/**/*.ts'],
    rules: { '@typescript-eslint/no-base-to-string': ['error', { checkUnknown: true }] },
  },
  // A line is read at one glance. Exact texts (strings, patterns, addresses) stay whole: they are searched for.
  {
    files: ['**/*.ts', '**/*.mjs', '**/*.cjs'],
    plugins: { stylistic },
    rules: { 'stylistic/max-len': ['error', LINES] },
  },
  // An expectation that may not be reached is none.
  {
    files: ['test/**/*.ts'],
    plugins: { jest },
    rules: {
      'jest/no-conditional-expect': 'error',
      // Helpers that expect, or wait for what is expected and fail at a deadline.
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
