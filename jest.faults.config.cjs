const shared = { ...require('./jest.config.cjs') };
delete shared.globalSetup;
delete shared.globalTeardown;

/**
 * The fault stage: engines of its own, broken on purpose, two files at a time: most of their time they wait for
 * timeouts.
 */
module.exports = {
  ...shared,
  testMatch: ['<rootDir>/test/faults/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  globals: { ASSERTS_TIMES: true },
  testTimeout: process.env.LUMIO_FAULT_DOSE === 'full' ? 1_800_000 : 480_000,
  maxWorkers: 2,
};
