// The second look of the merge gate: a test file that failed runs once more, alone, after all others.
import { lastOfEachSuite } from './results.mjs';

/** With more failed files than these, nothing runs again. */
export const MAX_FLAKY_FILES = 3;

/**
 * Judges a failed run by its result entries. `runAlone(file)` runs a test file and returns jest's exit code; `read`
 * returns all entries so far.
 *
 * Returns `{ flaky, refusal }`: `flaky` has `{file, failure}` of each file that passed at its second run; `refusal` is
 * the reason why the run stays failed, or undefined when each failed file passed. A failure outside a test file
 * (set-up, teardown, a worker process that died) gets no second look.
 */
export function lookAgain({ read, runAlone }) {
  const failed = lastOfEachSuite(read()).filter((entry) => entry.failed > 0);
  const refuse = (refusal, flaky = []) => ({ flaky, refusal });
  const outside = () => read().find((entry) => entry.outside !== undefined || entry.died);
  if (outside()) return refuse(outsideText(outside()));
  if (failed.length === 0) return refuse('the run failed outside its test files');
  if (failed.length > MAX_FLAKY_FILES)
    return refuse(`${failed.length} test files failed; a second look is for at most ${MAX_FLAKY_FILES}`);
  const flaky = [];
  const again = [];
  for (const { suite, failures } of failed) {
    if (runAlone(suite) === 0) flaky.push({ file: suite, failure: failureText(failures[0]) });
    else again.push(suite);
  }
  if (outside()) return refuse(outsideText(outside()), flaky);
  return again.length > 0 ? refuse(`failed twice: ${again.join(', ')}`, flaky) : { flaky, refusal: undefined };
}

const outsideText = ({ outside, suite }) =>
  outside === undefined ? `the worker process of ${suite} died` : `outside of the test files: ${outside}`;

/** A failed test in one line. */
export const failureText = ({ title, message }) => `${title}: ${message}`.slice(0, 300);
