const { appendFileSync } = require('node:fs');

/**
 * Writes how long each test file took to where `.ci/run` collects it (CI_MINUTES_FILE, a line of JSON each); says
 * nothing elsewhere.
 */
module.exports = class MinutesReporter {
  onTestResult(test, { perfStats, testFilePath, numFailingTests, numPassingTests }) {
    const file = process.env.CI_MINUTES_FILE;
    if (!file) return;
    const suite = testFilePath.slice(testFilePath.lastIndexOf('/test/') + 1);
    const seconds = Math.round((perfStats.end - perfStats.start) / 1000);
    const stage = process.env.CI_STAGE ?? '';
    const line = { stage, suite, seconds, tests: numPassingTests + numFailingTests, failed: numFailingTests };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  }
};
