// npm run events: stores the schema and a sample of each new version of a domain event, never changes stored ones, and
// writes the page of all vendors' events.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build, install, root } from '../prepare.mjs';

install({ dev: true });
await build();
const require = createRequire(join(root, 'dist/bin/main.js'));
const { EVENTS } = require('./areas.js');
const { broken, withNewest } = require('../test/support/event-schemas.js');
const { eventsPage } = require('../test/support/events-page.js');

writeFileSync(join(root, 'docs/events.md'), eventsPage());

const files = { schemas: 'docs/operating/schemas/events.json', samples: 'test/fixtures/events.json' };
const read = (file) => (existsSync(join(root, file)) ? JSON.parse(readFileSync(join(root, file), 'utf8')) : {});
const kept = { schemas: read(files.schemas), samples: read(files.samples) };
const wrong = broken(EVENTS, kept.schemas);
if (wrong.length > 0) {
  for (const line of wrong) console.error(`lumio: ${line}`);
  process.exitCode = 1;
} else {
  const newest = withNewest(EVENTS, kept);
  for (const [what, file] of Object.entries(files))
    writeFileSync(join(root, file), `${JSON.stringify(newest[what], null, 2)}\n`);
}
