import { readdirSync, renameSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import pg from 'pg';
import { OPERATIONS } from '../../../bin/areas';
import { createFileBlobs } from '../../../engines/blobs/files';
import type { Blobs } from '../../../engines/blobs/port';
import { LOCKS } from '../../../engines/locks/port';
import { sweepUploads } from '../../../maintenance/retention/upload-sweep';
import { startServer, type TestServer } from '../../support/server';
import { picture } from '../../support/uploaded-image';
import { silence } from '../../support/uploaded-sound';
import { eventually } from '../../support/vendor-cloud';

const KINDS = ['uploads', 'sounds'] as const;
type Kind = (typeof KINDS)[number];

/** Uploads that are cut or killed: each record has its blob, and the sweep leaves no other blob. */
describe('files that are cut or killed on their way', () => {
  let server: TestServer;
  let blocker: pg.Client;
  let blobs: Blobs;
  const files = {} as Record<Kind, Buffer>;
  beforeAll(async () => {
    // Some hundred kilobytes each.
    files.uploads = await picture(400, 400).png({ compressionLevel: 0 }).toBuffer();
    files.sounds = silence(60);
    server = await startServer();
    blobs = await createFileBlobs(folder());
    blocker = new pg.Client({ connectionString: server.database!.url });
    await blocker.connect();
  });
  afterAll(async () => {
    await blocker?.end();
    await server?.dispose();
  });

  const folder = () => join(server.data_dir, 'blobs');
  /** Files that the store has begun, and that are no blobs. */
  const begun = () => readdirSync(join(folder(), '~tmp'));

  const BOUNDARY = 'boundary';
  const begin = (filename: string) =>
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="${filename}"\r\n\r\n`;
  const end = `\r\n--${BOUNDARY}--\r\n`;
  /** A request whose answer, or loss, is awaited by `status`; null of a loss. */
  function opened(kind: Kind) {
    const asked = request(`${server.base_url}/v1/${kind}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${server.credentials.access_token}`,
        'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      },
    });
    const status = new Promise<number | null>((answered) => {
      asked.on('response', (response) => {
        response.resume();
        response.on('error', () => answered(null));
        response.on('end', () => answered(response.statusCode!));
      });
      asked.on('error', () => answered(null));
    });
    asked.write(begin('file'));
    return { asked, status };
  }
  function send(kind: Kind): Promise<number | null> {
    const { asked, status } = opened(kind);
    asked.write(files[kind]);
    asked.end(end);
    return status;
  }

  const count = async (from: string) =>
    (await server.database!.db.query<{ n: number }>(`select count(*)::int as n from ${from}`))[0]!.n;
  const underWay = () => count('uploads_under_way');
  const records = async () =>
    (
      await server.database!.db.query<{ key: string; size_bytes: number }>(
        'select storage_key as key, size_bytes::int from uploads union all select blob_key, size_bytes::int from sounds',
      )
    ).sort((a, b) => (a.key < b.key ? -1 : 1));
  async function stored(): Promise<{ key: string; size_bytes: number }[]> {
    const all: { key: string; size_bytes: number }[] = [];
    for await (const { key, size_bytes } of blobs.list('uploads/')) all.push({ key, size_bytes });
    return all.sort((a, b) => (a.key < b.key ? -1 : 1));
  }
  async function sweep(): Promise<void> {
    const { db } = server.database!;
    await db.query("update uploads_under_way set begun_at = begun_at - interval '25 hours'");
    await sweepUploads({ db, blobs, uploads: OPERATIONS.flatMap(({ takes }) => takes ?? []) });
    // Files that were begun have the time of it in their names, and go at a start a day later.
    for (const name of begun()) {
      const older = `${Date.now() - 25 * 3_600_000}${name.slice(name.indexOf('-'))}`;
      renameSync(join(folder(), '~tmp', name), join(folder(), '~tmp', older));
    }
    blobs = await createFileBlobs(folder());
    expect(begun()).toEqual([]);
  }
  /** Each event of a creation is in the read models. */
  const projected = () =>
    eventually(async () => {
      const created = await count(`domain_events where type in ('upload:created', 'sound:created')`);
      return (await records()).length === created || undefined;
    }, 'the read models');

  test.each(KINDS)('a body of %s that is cut leaves neither record nor blob', async (kind) => {
    const before = await stored();
    const { asked, status } = opened(kind);
    asked.write(files[kind].subarray(0, files[kind].length / 2));
    await eventually(async () => (await underWay()) === 1 || undefined, 'the upload to begin');
    asked.destroy();
    expect(await status).toBeNull();
    await eventually(async () => (await underWay()) === 0 || undefined, 'the upload to be dropped');
    expect([await stored(), await records()]).toEqual([before, before]);
  });

  test.each(KINDS)('a kill while a body of %s comes leaves nothing after the sweep', async (kind) => {
    const before = await stored();
    const { asked, status } = opened(kind);
    asked.write(files[kind].subarray(0, files[kind].length / 2));
    await eventually(async () => (await underWay()) === 1 || undefined, 'the upload to begin');
    await server.kill();
    expect(await status).toBeNull();
    server = await server.restart();
    await sweep();
    expect([await stored(), await records(), await underWay()]).toEqual([before, before, 0]);
  });

  test.each(KINDS)('a kill between the blob and the record of %s leaves no blob after the sweep', async (kind) => {
    const before = await stored();
    await blocker.query('select pg_advisory_lock($1)', [LOCKS.event_order]);
    const waiting = `pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and wait_event = 'advisory'`;
    const status = send(kind);
    await eventually(async () => (await count(waiting)) > 0 || undefined, 'the append to wait');
    expect(await stored()).toHaveLength(before.length + 1);
    await server.kill();
    expect(await status).toBeNull();
    await blocker.query(`select pg_terminate_backend(pid) from ${waiting}`);
    await eventually(async () => (await count(waiting)) === 0 || undefined, 'the append to be gone');
    await blocker.query('select pg_advisory_unlock($1)', [LOCKS.event_order]);
    server = await server.restart();
    await projected();
    await sweep();
    expect([await stored(), await records(), await underWay()]).toEqual([before, before, 0]);
  });

  test('kills at other moments leave records with whole blobs, and no blob without a record', async () => {
    let acknowledged = 0;
    for (const answers of [0, 1, 3]) {
      let answered = 0;
      let killed: Promise<void> | null = null;
      const kill = () => (killed ??= server.kill());
      const lane = async (kind: Kind) => {
        while (killed === null) {
          const status = await send(kind);
          if (status === null) return;
          expect(status).toBe(201);
          acknowledged += 1;
          answered += 1;
          if (answered > answers) void kill();
        }
      };
      await Promise.all([...KINDS, ...KINDS].map(lane));
      await kill();
      server = await server.restart();
    }
    await projected();
    await sweep();
    const all = await records();
    expect(all.length).toBeGreaterThanOrEqual(acknowledged);
    expect(await stored()).toEqual(all);
  });
});
