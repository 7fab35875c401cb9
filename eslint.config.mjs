import js from '@eslint/js';
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
  // Rows and answers of a server are looked into member by member.
  { files: ['engines/postgres/port.ts', 'test/**'], rules: { '@typescript-eslint/no-explicit-any': 'off' } },
  {
    files: ['**/*.mjs', '**/*.cjs'],
    languageOptions: { globals: Object.fromEntries(NODE_GLOBALS.map((name) => [name, 'readonly'])) },
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
);
