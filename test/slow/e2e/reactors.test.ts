import pg from 'pg';
import type { EventStore } from '../../../engines/event-store/port';
import { createPostgresEventStore } from '../../../engines/event-store/postgres/store';
import { createPostgresWakeups } from '../../../engines/wakeups/postgres';
import type { Wakeups } from '../../../engines/wakeups/port';
import { memberOf, type Member } from '../../support/removed-member';
import { startServer, type TestServer } from '../../support/server';
import { eventually } from '../../support/vendor-cloud';

/** The first reactor in the real server, which is killed where it hurts. */
describe('the keys of a removed member', () => {
  let server: TestServer;
  let pool: pg.Pool;
  let wakeups: Wakeups;
  let store: EventStore;
  let member: Member;

  beforeAll(async () => {
    server = await startServer();
    const { url } = server.database!;
    pool = new pg.Pool({ connectionString: url, max: 2 });
    pool.on('error', () => undefined);
    wakeups = createPostgresWakeups({ url });
    store = await createPostgresEventStore({ pool, wakeups });
    member = await memberOf(server, store);
  });
  afterAll(async () => {
    await store?.close();
    await wakeups?.close();
    await pool?.end();
    await server?.dispose();
  });

  const types = async (key_id: string) => (await member.story(key_id)).map(({ type }) => type);
  const revoked = (key_id: string) =>
    eventually(async () => {
      const last = (await member.story(key_id)).at(-1)!;
      return last.type === 'api_key:revoked' ? last : undefined;
    }, 'the revocation');
  /** Of the member: the demo account's owner has a key too. */
  const remembered = async () => {
    const { other } = server.credentials;
    const query = 'select key_id from member_keys where user_id = $1';
    return (await server.database!.db.query(query, [other.user_id])).map(({ key_id }) => key_id as string);
  };
  const works = ({ bot }: Awaited<ReturnType<Member['createKey']>>) =>
    eventually(async () => ((await bot.get('/v1/events')).status === 200 ? true : undefined), 'the key to work');

  test('are dead at once, and then by events in the name of the service', async () => {
    await member.join();
    const key = await member.createKey();
    await works(key);
    const removal = await member.leave();
    await eventually(async () => ((await key.bot.get('/v1/events')).status === 401 ? true : undefined), 'its end');
    expect(await revoked(key.key_id)).toMatchObject({
      metadata: { actor_kind: 'service', actor_id: 'api-keys', causation_id: removal.id },
    });
  });

  test('kill -9 between append and checkpoint: each is revoked once, and one made after the return lives', async () => {
    await member.join();
    const [first, second] = [await member.createKey(), await member.createKey()];
    await works(first);
    await eventually(async () => ((await remembered()).includes(second.key_id) ? true : undefined), 'both keys');
    // Its checkpoint cannot move: the commands are issued, and nothing after them is stored.
    const holder = new pg.Client({ connectionString: server.database!.url });
    await holder.connect();
    await holder.query(`begin; select from checkpoints where projection = 'reactor:api-keys' for update`);
    await member.leave();
    await revoked(first.key_id);
    await revoked(second.key_id);
    await server.kill();
    await holder.query('rollback');
    await holder.end();
    await member.join();
    const fresh = await member.createKey();
    server = await server.restart();
    member = await memberOf(server, store);
    await eventually(async () => ((await remembered()).join() === fresh.key_id ? true : undefined), 'it to catch up');
    for (const { key_id } of [first, second])
      expect(await types(key_id)).toEqual(['api_key:created', 'api_key:revoked']);
    expect(await types(fresh.key_id)).toEqual(['api_key:created']);
  });

  test('kill -9 after the checkpoint: nothing is done again', async () => {
    const [fresh] = await remembered();
    await member.leave();
    await revoked(fresh!);
    // The event of its own command has been read by it too, so the removal lies before its checkpoint.
    await eventually(async () => ((await remembered()).length === 0 ? true : undefined), 'the checkpoint');
    await server.kill();
    server = await server.restart();
    member = await memberOf(server, store);
    await member.join();
    const next = await member.createKey();
    await eventually(async () => ((await remembered()).join() === next.key_id ? true : undefined), 'the next key');
    expect(await types(fresh!)).toEqual(['api_key:created', 'api_key:revoked']);
  });

  test('two processes: whichever drives it is killed, the other goes on within seconds', async () => {
    const twin = await startServer({
      env: { LUMIO_DATABASE__URL: server.database!.url, LUMIO_SECRETS__KEYS: server.env.LUMIO_SECRETS__KEYS! },
    });
    try {
      await eventually(async () => {
        const rows = await server.database!.db.query('select distinct member from work_holds');
        return rows.length === 2 ? true : undefined;
      }, 'both to have work');
      const before = (await remembered())[0]!;
      await member.leave();
      await revoked(before);
      await server.kill();
      await member.join();
      const key = await member.createKey();
      await member.leave();
      await revoked(key.key_id);
      // The dead one's other pieces are taken over too.
      await eventually(async () => {
        const rows = await server.database!.db.query('select distinct member from work_holds');
        return rows.length === 1 ? true : undefined;
      }, 'one to have all work');
    } finally {
      await twin.dispose();
    }
  });
});
