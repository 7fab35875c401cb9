// Tests that kill, cut and restart real processes wait for them with deadlines, and a busy machine misses one now and then. Such a test
// is tried a second time, with the first failure printed; what is broken fails twice. A full dose of faults is its own repetition.
const slow = /[\\/]test[\\/](e2e|engines|faults)[\\/]/;
const full = process.env.LUMIO_FAULT_DOSE === 'full';
if (!full && slow.test(expect.getState().testPath ?? '')) jest.retryTimes(1, { logErrorsBeforeRetry: true });
