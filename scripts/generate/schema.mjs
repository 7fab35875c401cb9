// npm run schema: writes migrations/schema.sql, which shows what the migrations build.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, install, root } from '../prepare.mjs';

install({ dev: true });
await build();
const require = createRequire(join(root, 'dist/bin/main.js'));
const { startEmbeddedPostgres } = require('../engines/postgres/embedded/server.js');
const { migrate } = require('../engines/postgres/migrate.js');
const { PostgresDatabase } = require('../engines/postgres/pool.js');
const { dumpSchema, unraised } = require('../test/support/schema.js');

const file = join(root, 'migrations/schema.sql');
const data_dir = mkdtempSync(join(tmpdir(), 'lumio-schema-'));
const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: console.error };
const postgres = await startEmbeddedPostgres({ data_dir, log, settings: ['fsync=off'] });
try {
  await migrate(postgres.url);
  const db = new PostgresDatabase({ url: postgres.url, name: 'schema', size: 1 });
  const schema = await dumpSchema(db);
  await db.close();
  const wrong = existsSync(file) ? unraised(readFileSync(file, 'utf8'), schema) : [];
  if (wrong.length > 0) {
    console.error(`lumio: raise the version in migrations/functions of: ${wrong.join(', ')}`);
    process.exitCode = 1;
  } else writeFileSync(file, schema);
} finally {
  await postgres.stop();
  rmSync(data_dir, { recursive: true, force: true });
}
