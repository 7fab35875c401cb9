// npm run fingerprints: writes projections/fingerprints.json, after the versions of changed projections were raised.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, install, root } from '../prepare.mjs';

install({ dev: true });
await build();
const require = createRequire(join(root, 'dist/bin/main.js'));
const { PROJECTIONS } = require('./areas.js');
const { startEmbeddedPostgres } = require('../engines/postgres/embedded/server.js');
const { migrate } = require('../engines/postgres/migrate.js');
const { PostgresDatabase } = require('../engines/postgres/pool.js');
const { fingerprintsOf, unraised } = require('../test/support/fingerprints.js');

const file = join(root, 'projections/fingerprints.json');
const data_dir = mkdtempSync(join(tmpdir(), 'lumio-fingerprints-'));
const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: console.error };
const postgres = await startEmbeddedPostgres({ data_dir, log, settings: ['fsync=off'] });
try {
  await migrate(postgres.url);
  const db = new PostgresDatabase({ url: postgres.url, name: 'fingerprints', size: 1 });
  const found = await fingerprintsOf(db, PROJECTIONS, root);
  await db.close();
  const wrong = existsSync(file) ? unraised(JSON.parse(readFileSync(file, 'utf8')), found) : [];
  if (wrong.length > 0) {
    console.error(`lumio: raise the version in projections/ of: ${wrong.join(', ')}`);
    process.exitCode = 1;
  } else writeFileSync(file, `${JSON.stringify(found, null, 2)}\n`);
} finally {
  await postgres.stop();
  rmSync(data_dir, { recursive: true, force: true });
}
