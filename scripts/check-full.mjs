// npm run check:full: every check that the merge gate (.ci/run) leaves out. Continues after a failed stage, and ends
// with a table. Takes hours, so it is for an area that is about to be called done. The property tests draw a new seed.
import { randomInt } from 'node:crypto';
import { chooseStages, runStages, stageArguments } from './ci/stages.mjs';

const { only } = stageArguments(process.argv.slice(2));
const npm = (script, ...args) => ['npm', 'run', '--silent', script, ...(args.length > 0 ? ['--', ...args] : [])];
const node = (script, ...args) => ['node', `scripts/${script}`, ...args];

const seed = process.env.LUMIO_TEST_SEED ?? String(randomInt(2 ** 31));
console.log(`seed of this run: LUMIO_TEST_SEED=${seed}`);

/** For test suites alone: a server refuses to start with an unknown `LUMIO_*` name. */
const env = { LUMIO_TEST_SEED: seed };

const STAGES = [
  { name: 'tests with the seed of this run', command: npm('test'), env },
  { name: 'slow tests', command: npm('test:slow'), env },
  { name: 'real engines', command: npm('test:engines'), env },
  { name: 'faults', command: npm('test:faults'), env },
  { name: 'kill loop', command: npm('soak', '--seconds', '60', '--seed', seed) },
  { name: 'kill loop over Kafka', command: npm('soak', '--kafka', '--seconds', '60', '--seed', seed) },
  { name: 'walk through README.md and docs/tutorial.md', command: node('ci/readme.mjs') },
  { name: 'walk through docs/access.md', command: node('ci/access.mjs') },
  { name: 'example of CONTRIBUTING.md', command: node('ci/contributing.mjs') },
  { name: 'pages in a browser', command: node('ci/browser.mjs') },
  { name: 'npm start from a fresh clone, as an ordinary user', command: node('ci/fresh-clone.mjs', '--ordinary-user') },
  { name: 'end-to-end tests on Node 24', command: node('ci/node24.mjs') },
  { name: 'known vulnerabilities', command: node('ci/audit.mjs') },
  { name: 'alert rules', command: node('ci/alerts.mjs') },
  { name: 'benchmarks, smoke', command: npm('bench', '--smoke') },
];

// A second look is for the gate alone.
delete process.env.CI;
delete process.env.LUMIO_TEST_SEED;
process.exit(await runStages(chooseStages(STAGES, only), { keep_going: true }));
