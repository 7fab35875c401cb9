// npm run check:full: every suite (npm test, test:engines, test:faults) on the Node in use and then on Node 24. Takes
// hours, so it is for a nightly run.
import { node24, run } from './node24.mjs';

for (const node of [process.execPath, node24()]) {
  run(node, ['--version']);
  for (const suite of ['test', 'test-engines', 'test-faults']) run(node, [`scripts/${suite}.mjs`]);
}
