/**
 * Tests against real engines: one file at a time, since they kill and restart what they run on. Started by
 * scripts/test-engines.mjs.
 */
module.exports = {
  ...require('./jest.config.cjs'),
  testMatch: ['<rootDir>/test/engines/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  globals: { ASSERTS_TIMES: true },
  globalTeardown: '<rootDir>/test/engines/support/teardown.ts',
  testTimeout: process.env.LUMIO_FAULT_DOSE === 'full' ? 1_800_000 : 360_000,
  maxWorkers: 1,
};
