import type { Operation } from '../../../app/operation';
import { OPERATIONS, PROJECTIONS } from '../../../bin/areas';
import { CALLS, prepareCalls, WEB, type Callers, type Made } from '../../support/repeated-calls';
import { runLumio, startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';
import { FakeChatCloud } from '../../vendors/chat-cloud';

/**
 * Every command, killed when all that it does is done and stored, before its answer is: whoever sends it again under
 * its Idempotency-Key is answered, and nothing is done twice. A new command fails here until it says how it is called.
 */
// Uploads are no JSON; test/studio/sounds.test.ts repeats one.
const commands = OPERATIONS.filter(({ kind, rest, takes }) => kind === 'command' && rest !== null && !takes);
/** Held by the test alone while others wait for it: whoever stores an answer then is cut off. */
const GATE = 471_100;
const AT_A_TIME = 8;

let cloud: FakeChatCloud;
let server: TestServer;
/** Of the first start: later ones open sessions of their own. */
let made: Made;
let callers: Callers;
beforeAll(async () => {
  cloud = await new FakeChatCloud().start();
  server = await startServer({
    env: {
      ...cloud.env(),
      LUMIO_HOSTS__WEB: WEB,
      LUMIO_DISCORD__BOT_TOKEN: 'bot-token',
      LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true',
      LUMIO_HISTORY__SESSION_GRACE: '0s',
    },
  });
  ({ made, callers } = await prepareCalls(server.base_url, server.credentials, cloud));
  await server.database!.asAdmin(`
    create function hold_answers() returns trigger language plpgsql as
      'begin
        if exists (select 1 from pg_locks where objid = ${GATE} and granted and mode = ''ExclusiveLock'') then
          perform pg_advisory_xact_lock_shared(${GATE});
          -- The statement goes on when its client is dead: it must store nothing.
          raise exception ''cut off'';
        end if;
        return new;
      end';
    create trigger hold_answers before update of answer on idempotency_keys
      for each row when (new.answer is not null) execute function hold_answers()`);
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});

function send({ name, rest }: Operation, input: Record<string, unknown>) {
  const body: Record<string, unknown> = { ...input };
  const path = rest!.path.replace(/\{(\w+)\}/g, (_all, member: string) => {
    const value = String(body[member]);
    delete body[member];
    return value;
  });
  const sent = Object.keys(body).length === 0 && rest!.method === 'DELETE' ? undefined : body;
  const key = { 'idempotency-key': `repeat-${name}` };
  return new ApiClient(server.base_url, callers[CALLS[name]!.as ?? 'owner']!).send(rest!.method, path, sent, key);
}

const lastPosition = async () =>
  (await server.database!.db.query<{ at: string }>('select max(position)::text as at from domain_events'))[0]!.at;

/**
 * Everything that follows has followed: no reaction appends any more, and every record is applied. The relay to the
 * topic of events is left out: nothing that is counted here comes of it, and after a kill it waits for its lease.
 */
const settled = () =>
  eventually(async () => {
    const { db } = server.database!;
    const at = await lastPosition();
    const events = await db.query(
      `select projection from checkpoints
       where source = 'domain-events' and projection not like 'relay to %'
         and coalesce(nullif(position, '')::bigint, 0) < $1::bigint`,
      [at],
    );
    const records = await db.query(
      `select partition from broker_partitions p join broker_topics using (topic_id)
       where topic = 'platform-events' and next_offset > coalesce(
         (select position::bigint from checkpoints c
          where c.source = topic and c.partition = p.partition and projection = 'event-log'), 0)`,
    );
    return events.length + records.length === 0 && (await lastPosition()) === at ? true : undefined;
  }, 'all read models and reactions');

/** All that commands leave behind, and what follows from them, in numbers. */
async function effects(): Promise<Record<string, number>> {
  await settled();
  const [row] = await server.database!.db.query(`select
    (select count(*)::int from domain_events) as events, (select count(*)::int from platform_event_logs) as records,
    (select count(*)::int from sessions) as sessions, (select count(*)::int from api_keys) as keys`);
  return row as Record<string, number>;
}

test('each command says here how it is called', () => {
  expect(Object.keys(CALLS).sort()).toEqual(commands.map(({ name }) => name).sort());
});

test('each is answered when it comes again after a kill, and does nothing twice', async () => {
  const rank = ({ name }: Operation) => Number(CALLS[name]!.later === true);
  const first = commands.filter(({ name }) => !CALLS[name]!.last).sort((a, b) => rank(a) - rank(b));
  const batches = [...Array(Math.ceil(first.length / AT_A_TIME)).keys()].map((n) =>
    first.slice(n * AT_A_TIME, (n + 1) * AT_A_TIME),
  );
  batches.push(commands.filter(({ name }) => CALLS[name]!.last));
  const answers: Record<string, number> = {};
  for (const batch of batches) {
    const inputs = new Map(batch.map(({ name }) => [name, CALLS[name]!.input?.(made) ?? {}]));
    const gate = await server.database!.adminClient();
    await gate.query('select pg_advisory_lock($1)', [GATE]);
    const lost = batch.map((one) =>
      send(one, inputs.get(one.name)!).then(
        ({ status, body }) => `${one.name} was answered: ${status} ${JSON.stringify(body)}`,
        () => 'cut',
      ),
    );
    await eventually(
      async () => {
        const { rows } = await gate.query('select count(*)::int as n from pg_locks where objid = $1 and not granted', [
          GATE,
        ]);
        return rows[0].n === batch.length ? true : undefined;
      },
      `answers of ${batch.map(({ name }) => name).join(', ')} that wait to be stored`,
    );
    await server.kill();
    expect(await Promise.all(lost)).toEqual(batch.map(() => 'cut'));
    await gate.end();
    server = await server.restart();
    const done = await effects();
    for (const one of batch) {
      const answer = await eventually(async () => {
        const again = await send(one, inputs.get(one.name)!);
        return again.body?.message?.includes('still in progress') ? undefined : again;
      }, `an answer to ${one.name}`);
      answers[one.name] = answer.status;
      if (one.name === 'refreshToken') made.refresh_token = answer.body.refresh_token;
    }
    expect(await effects()).toEqual(done);
  }
  const wanted = commands.map(({ name, rest }) => [name, CALLS[name]!.repeated ?? rest!.status]);
  expect(answers).toEqual(Object.fromEntries(wanted));
  expect(cloud.sent.map(({ body }) => body.message)).toEqual(['once']);
  // Twitch itself refuses a second raid, poll or prediction, so that their calls may be made again after a kill.
  const bans = cloud.acts.map(({ route }) => route).filter((route) => route.endsWith(' /helix/moderation/bans'));
  expect(bans).toEqual(['POST /helix/moderation/bans', 'DELETE /helix/moderation/bans']);
}, 900_000);

test('what came of it all is the same when every read model of events is built from zero', async () => {
  const db = server.database!.db;
  const built = PROJECTIONS.filter(({ from }) => from.kind === 'domain_events');
  // Places come from a sequence, which a killed transaction leaves with a gap: their order counts.
  const orderOf = (table: string) => (table === 'account_events' ? 'account_id, place' : 'to_jsonb(t)::text');
  const rowsOf = async (tables: readonly string[]) =>
    Object.fromEntries(
      await Promise.all(
        tables.map(async (table) => [
          table,
          (await db.query(`select to_jsonb(t) - 'place' as row from "${table}" t order by ${orderOf(table)}`)).map(
            ({ row }) => row,
          ),
        ]),
      ),
    ) as Record<string, unknown[]>;
  await settled();
  const filled: string[] = [];
  for (const { name, tables } of built) {
    const live = await rowsOf(tables);
    expect(await runLumio(['rebuild', name, '--quiet'], server.env)).toMatchObject({ code: 0 });
    expect({ [name]: await rowsOf(tables) }).toEqual({ [name]: live });
    filled.push(...tables.filter((table) => live[table]!.length > 0));
  }
  expect(filled.length).toBeGreaterThan(20);
});
