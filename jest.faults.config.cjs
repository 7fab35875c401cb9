const { globalSetup: _setup, globalTeardown: _teardown, ...shared } = require('./jest.config.cjs');

/** The fault stage: engines of its own, broken on purpose, one file after another since every file loads the machine. */
module.exports = {
  ...shared,
  testMatch: ['<rootDir>/test/faults/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  testTimeout: process.env.LUMIO_FAULT_DOSE === 'full' ? 1_800_000 : 180_000,
  maxWorkers: 1,
};
