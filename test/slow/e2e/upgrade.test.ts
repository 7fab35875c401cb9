import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate } from '../../../engines/postgres/migrate';
import { MIGRATIONS, type Migration } from '../../../migrations';
import { runLumio, startServer } from '../../support/server';
import { ApiClient, eventually, VendorCloud } from '../../support/vendor-cloud';

/** What a newer build may do to a schema that this one goes on running on: docs/operating, "Upgrades". */
const ADDED: Migration = {
  name: '9000-of-a-newer-build',
  async up(knex) {
    await knex.raw(`
      create table of_a_newer_build (id int primary key);
      insert into of_a_newer_build values (1);
      alter table api_keys add column of_a_newer_build text;
    `);
  },
};
const BREAKING: Migration = { name: '9001-breaking', generation: 2, up: () => Promise.resolve() };

test('this build starts and serves on a schema with steps it does not know, and is refused by one that excludes it', async () => {
  const server = await startServer();
  const folder = mkdtempSync(join(tmpdir(), 'lumio-upgrade-'));
  const { url } = server.database!;
  try {
    await server.stop();
    expect(await migrate(url, { steps: [...MIGRATIONS, ADDED] })).toEqual([ADDED.name]);

    const again = await server.restart();
    const vendors = new VendorCloud(again.base_url, again.credentials);
    const api = new ApiClient(again.base_url, again.credentials.access_token);
    for (const user_id of [1, 2, 3]) expect((await vendors.kickFollow(user_id)).status).toBe(200);
    await eventually(async () => (await api.allEvents()).length === 3 || undefined, 'three events');
    expect((await api.send('POST', '/v1/api-keys', { label: 'Kept', permissions: ['events:read'] })).status).toBe(201);
    for (const command of [['rebuild', 'api-keys'], ['backup', join(folder, 'backup')], ['migrate']]) {
      expect(await runLumio(command, again.env)).toMatchObject({ code: 0 });
    }
    expect((await api.get('/v1/api-keys')).body.data).toContainEqual(expect.objectContaining({ label: 'Kept' }));
    await again.stop();
    // What the newer build has made is still there, in the read model that was rebuilt too.
    const { db } = server.database!;
    expect(await db.query('select * from of_a_newer_build')).toHaveLength(1);
    expect(await db.query('select of_a_newer_build from api_keys')).not.toEqual([]);

    await migrate(url, { steps: [...MIGRATIONS, ADDED, BREAKING] });
    for (const command of ['start', 'migrate']) {
      const { code, stdout, stderr } = await runLumio([command], again.env);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/^lumio: the database needs a newer Lumio \(its schema generation is 2[^\n]*\n$/);
    }
  } finally {
    await server.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
});
