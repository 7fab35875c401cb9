/**
 * Tests run on TypeScript as it stands; packages that are only ES modules are transformed too, since jest loads
 * CommonJS.
 */
module.exports = {
  testEnvironment: '<rootDir>/test/support/environment.cjs',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/engines/', '<rootDir>/test/faults/'],
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
  transform: { '\\.[cm]?[jt]s$': '<rootDir>/test/support/transform.cjs' },
  transformIgnorePatterns: ['/node_modules/(?!(jose|lru-cache)/)'],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  setupFiles: ['<rootDir>/test/support/seed.cjs'],
  reporters: ['default', '<rootDir>/test/support/minutes-reporter.cjs'],
  testTimeout: 300_000,
  maxWorkers: 2,
};
