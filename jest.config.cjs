/**
 * Tests run on TypeScript as it stands; packages that are only ES modules are transformed too, since jest loads
 * CommonJS.
 */
module.exports = {
  testEnvironment: '<rootDir>/test/support/environment.cjs',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: [
    '/node_modules/',
    '<rootDir>/test/slow/',
    '<rootDir>/test/engines/',
    '<rootDir>/test/faults/',
  ],
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
  transform: { '\\.[cm]?[jt]s$': '<rootDir>/test/support/transform.cjs' },
  transformIgnorePatterns: ['/node_modules/(?!(jose|lru-cache)/)'],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  globals: { ASSERTS_TIMES: false },
  setupFiles: ['<rootDir>/test/support/seed.cjs'],
  reporters: ['default', '<rootDir>/test/support/results-reporter.cjs'],
  testTimeout: 300_000,
  // More than the gate's two cores: tests wait for a fifth of their time.
  maxWorkers: 3,
};
