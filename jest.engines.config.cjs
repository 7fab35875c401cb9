/** Tests against engines beyond the embedded ones; apart from `npm test`, since they may need engines installed or take longer. */
module.exports = {
  ...require('./jest.config.cjs'),
  testMatch: ['<rootDir>/test/engines/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
};
