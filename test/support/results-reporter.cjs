const { appendFileSync } = require('node:fs');
const { stripVTControlCharacters } = require('node:util');

const WORKER_DEATH = /A jest worker process .*(was terminated|crashed)|Call retries were exceeded/;

const firstLine = (text) =>
  stripVTControlCharacters(text)
    .split('\n')
    .find((line) => line.trim() !== '')
    ?.trim() ?? '';

/**
 * Appends a line of JSON for each test file to CI_RESULTS_FILE: `{stage, suite, seconds, tests, failed, failures,
 * died}`. `failures` are the failed tests as `{title, message}`, or the error of a file that did not load. `died` is
 * true when the worker process ended. Writes nothing without the variable.
 */
module.exports = class ResultsReporter {
  onTestResult(test, { perfStats, testFilePath, numFailingTests, numPassingTests, testResults, testExecError }) {
    const file = process.env.CI_RESULTS_FILE;
    if (!file) return;
    const failures = testResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName, failureMessages }) => ({ title: fullName, message: firstLine(failureMessages[0] ?? '') }));
    const execution = testExecError ? String(testExecError.message ?? testExecError) : '';
    if (execution) failures.push({ title: 'the test file', message: firstLine(execution) });
    const entry = {
      stage: process.env.CI_STAGE ?? '',
      suite: testFilePath.slice(testFilePath.lastIndexOf('/test/') + 1),
      seconds: Math.round((perfStats.end - perfStats.start) / 1000),
      tests: numPassingTests + numFailingTests,
      failed: failures.length,
      failures,
      died: WORKER_DEATH.test(execution),
    };
    appendFileSync(file, `${JSON.stringify(entry)}\n`);
  }
};
