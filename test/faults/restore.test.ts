import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECTIONS } from '../../bin/areas';
import { TOPICS } from '../../domain/common/records';
import { createFileBlobs } from '../../engines/blobs/files';
import { createKafkaBroker } from '../../engines/broker/kafka/broker';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createArchiver } from '../../maintenance/archive/archive';
import { type Kafka, startKafka } from '../engines/support/kafka';
import { driveAllDoors } from '../support/all-doors';
import { silentLog } from '../support/log';
import { noMetrics } from '../support/projections';
import { runLumio, settingsOf } from '../support/server';
import { VendorCloud } from '../support/vendor-cloud';
import { type Cluster, startCluster } from './support/cluster';
import { dose, SEED, until } from './support/dose';
import { kafkaEnds } from './support/ends';
import { checkInvariant, settled } from './support/invariants';
import { Lumio } from './support/lumio';
import { both, copyOf, type Sent, Traffic } from './support/traffic';

/** Row 25: the database is lost and comes back from a backup, while the records of a real Kafka live on. */
describe('row 25: yesterday’s database beside today’s Kafka', () => {
  let kafka: Kafka;
  let cluster: Cluster;
  let folder: string;
  let data_dir: string;
  let env: Record<string, string>;
  let lumio: Lumio | undefined;

  beforeAll(async () => {
    [kafka, cluster] = [await startKafka(), await startCluster()];
    folder = mkdtempSync(join(tmpdir(), 'lumio-faults-restore-'));
    data_dir = join(folder, 'data');
    env = {
      LUMIO_BROKER__URL: kafka.url,
      LUMIO_BLOBS__URL: join(folder, 'blobs'),
      LUMIO_SECRETS__KEYS: `test:${Buffer.alloc(32, 9).toString('base64')}`,
    };
  });
  afterAll(async () => {
    await lumio?.dispose();
    await cluster?.dispose();
    await kafka?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  const start = async (database_url: string) =>
    (lumio = await Lumio.start({ database_url, data_dir, env, ends: kafkaEnds(kafka.url) }));
  const person = (id: string) => ({ type: 'channel.spell', message_id: `person-w0-${id}`, uid: `canary-${id}` });
  const deliver = async (to: Lumio, ...ids: string[]) => {
    const vendors = new VendorCloud(to.base_url, to.credentials);
    for (const id of ids) expect((await vendors.trovo(person(id))).status).toBe(200);
  };
  /** Which people can be read, of those that {@link deliver} sent. */
  const readable = async (of: Lumio) => {
    const rows = await of.query(`select raw::text from platform_event_logs where raw::text like '%canary-%'`);
    return rows.map(({ raw }) => (JSON.parse(raw) as { uid: string }).uid).sort();
  };

  /** The archiver as a projector runs it, with everything old enough. */
  async function archive(database_url: string): Promise<number> {
    const db = new PostgresDatabase({ url: database_url, name: 'test', size: 4 });
    const broker = await createKafkaBroker({ url: kafka.url });
    const blobs = await createFileBlobs(join(folder, 'blobs'));
    try {
      const archiver = createArchiver({
        db,
        broker,
        blobs,
        projections: PROJECTIONS,
        topics: [TOPICS.platform_events],
        log: silentLog,
        metrics: noMetrics,
        after_ms: 0,
        linger_ms: 0,
        trim: true,
      });
      return (await archiver.run()).records;
    } finally {
      await broker.close();
      await db.close();
    }
  }

  test.each(['in the topic', 'in the archive, and gone from the topic'])(
    'what came since lies %s: applied once, nothing missing, the erased stay erased',
    async (where) => {
      const name = where === 'in the topic' ? 'topic' : 'archive';
      let url = await cluster.createDatabase();
      let server = await start(url);
      const people = [1, 2, 3, 4].map((n) => `${name}-${n}`);
      const [erased_before, erased_since, kept, younger] = people as [string, string, string, string];
      let promised: Sent | undefined;

      for (let round = 0; round < dose(1, 6); round += 1) {
        const before = new Traffic(server, { seed: SEED, name: `${name}${round}before` }).start();
        await deliver(server, erased_before, erased_since, kept);
        await until(() => before.acked > 300, 'traffic');
        expect(await server.command('erase', `trovo:canary-${erased_before}`)).toMatchObject({ code: 0 });
        const place = join(folder, `backup-${name}-${round}`);
        const keys = `${place}.keys.json`;
        const known = copyOf(before.sent);
        expect(await server.command('backup', place)).toMatchObject({ stderr: '', code: 0 });
        expect(await server.command('keys', 'export', keys)).toMatchObject({ code: 0 });
        const old = await before.stop();
        // Records outlive the database; the domain events of the keys that were made since are lost with it.
        promised = both(promised ?? known, { ...old, keys: { acked: known.keys.acked, tried: old.keys.tried } });

        const since = new Traffic(server, { seed: SEED, name: `${name}${round}since`, keys: 0 }).start();
        await deliver(server, younger);
        await until(() => since.acked > 300, 'traffic since the backup');
        expect(await server.command('erase', `trovo:canary-${erased_since}`)).toMatchObject({ code: 0 });
        promised = both(promised, await since.stop());
        await settled(server, 30_000);
        const archived = name === 'archive' ? await archive(url) : 0;
        expect({ archived: archived > 300 ? 'many' : archived }).toEqual({ archived: name === 'archive' ? 'many' : 0 });
        await server.kill();

        url = await cluster.createDatabase();
        const restore = await runLumio(['restore', place, '--keys', keys], {
          ...settingsOf(data_dir),
          ...env,
          LUMIO_DATABASE__URL: url,
        });
        expect(restore).toMatchObject({
          code: 0,
          stdout: expect.stringMatching(/topics: kept as the broker has them/),
        });
        server = await start(url);
        const after = new Traffic(server, { seed: SEED, name: `${name}${round}after` }).start();
        await deliver(server, ...people); // as vendors do that saw no 2xx
        await until(() => after.acked > 200, 'traffic after the restore');
        promised = both(promised, await after.stop());
        for (const id of people) promised.tried.add(person(id).message_id);
        const announced = (id: string) => /(since|after)-/.test(id) && id.startsWith(`${name}${round}`);
        await checkInvariant(server, promised, { announced });
        expect(/reading on from the archive/.test(server.output())).toBe(name === 'archive');
        // Whose key is younger than the key export is as unreadable as if erased.
        expect(await readable(server)).toEqual([`canary-${kept}`]);
      }
      await driveAllDoors(server);
      expect(await server.stop()).toBe(0);
    },
    dose(480_000, 1_800_000),
  );
});
