// Tests that kill, cut and restart real processes wait for them with deadlines, and a busy machine misses one now and then. Such a test
// is tried a second time, with the first failure printed; what is broken fails twice.
const slow = /[\\/]test[\\/](e2e|engines|faults)[\\/]/;
if (slow.test(expect.getState().testPath ?? '')) jest.retryTimes(1, { logErrorsBeforeRetry: true });
