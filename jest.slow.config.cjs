const { readdirSync, readFileSync } = require('node:fs');
const { join } = require('node:path');

const OTHER_SUITES = /^test\/(slow|engines|faults)\//;

/** Files of `npm test` with promised times: they run here again, because `npm test` does not assert times. */
const WITH_TIMES = /\b(promised|inTime|timeLimit)\b[^;]*support\/patience'|'\.\.\/conformance\//;
const timed = readdirSync(join(__dirname, 'test'), { recursive: true })
  .map((name) => `test/${name}`)
  .filter((path) => path.endsWith('.test.ts') && !OTHER_SUITES.test(path))
  .filter((path) => WITH_TIMES.test(readFileSync(join(__dirname, path), 'utf8')));

/** The slow suite, two files at a time: see test/README.md. Started by scripts/test-slow.mjs. */
module.exports = {
  ...require('./jest.config.cjs'),
  testMatch: ['<rootDir>/test/slow/**/*.test.ts', ...timed.map((path) => `<rootDir>/${path}`)],
  testPathIgnorePatterns: ['/node_modules/'],
  globals: { ASSERTS_TIMES: true },
  maxWorkers: 2,
};
