// Property tests print the seed of a failure; LUMIO_TEST_SEED=<that> makes every run of theirs begin with it.
// CI gives each commit a seed of its own.
const seed = process.env.LUMIO_TEST_SEED ?? process.env.CI_PROPERTY_SEED;
if (seed !== undefined) require('fast-check').configureGlobal({ seed: Number(seed) });
