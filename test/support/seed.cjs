// Property tests begin with one fixed seed. LUMIO_TEST_SEED sets another one; fast-check prints the seed of a failure.
require('fast-check').configureGlobal({ seed: Number(process.env.LUMIO_TEST_SEED ?? '20261128') });
