import type { Operation } from '../../access/operation';
import { OPERATIONS } from '../../bin/areas';
import { startServer, type DevCredentials, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';

/**
 * Every command, killed when all that it does is done and stored, before its answer is: whoever sends it again under
 * its Idempotency-Key is answered, and nothing is done twice. A new command fails here until it says how it is called.
 */
interface Made {
  renamed: string;
  removed: string;
  refresh_token: string;
  /** Of somebody whom no start of the server gives a session. */
  login: string;
  needless: string;
  token: string;
  session: string;
}
interface Call {
  /** Path parameters and body. */
  input?: (made: Made) => Record<string, unknown>;
  as?: 'owner' | 'other' | 'system' | 'nobody' | 'ada';
  /** What the repetition answers, where that is not what the command answers. */
  repeated?: number;
  /** Commands that end what others are called with come last. */
  last?: boolean;
}

const provider = (named: string, id: string) => ({
  provider: named,
  provider_id: id,
  access_token: `development:${id}`,
});
const EMITTED = { event_type: 'kick:follower', raw: { user_id: 'p' } };
const CALLS: Readonly<Record<string, Call>> = {
  // Its key was shown to nobody, and only its hash was kept.
  createUserApiKey: { input: () => ({ label: 'Bot', permissions: ['events:read'] }), repeated: 409 },
  updateUserApiKey: { input: ({ renamed }) => ({ id: renamed, label: 'Renamed' }) },
  deleteUserApiKey: { input: ({ removed }) => ({ id: removed }) },
  emitEvent: { input: () => EMITTED },
  testEvent: { input: () => EMITTED },
  emitBotEvent: {
    as: 'system',
    input: () => ({ ...EMITTED, platform: 'kick', username: 'ada', account_id: '' }),
  },
  issueWsToken: {},
  exchangeToken: { as: 'nobody', input: () => provider('twitch', '7') },
  linkLoginConnection: { as: 'ada', input: () => provider('kick', '8') },
  disconnectLoginConnection: { as: 'ada', input: ({ needless }) => ({ login_connection_id: needless }) },
  clearLoginConnectionReconnectFlag: { as: 'ada', input: ({ login }) => ({ id: login }) },
  deleteSession: { as: 'ada', input: ({ session }) => ({ id: session }) },
  deleteAllOtherSessions: { as: 'ada', last: true },
  refreshToken: { as: 'nobody', input: ({ refresh_token }) => ({ refresh_token }) },
  logout: { as: 'nobody', input: ({ refresh_token }) => ({ refresh_token }), last: true },
  // The session that called is the one that has ended.
  logoutSession: { as: 'other', repeated: 401, last: true },
};

const commands = OPERATIONS.filter(({ kind, rest }) => kind === 'command' && rest !== null);
/** Held by the test: whoever stores an answer waits for it. */
const GATE = 471_100;
const AT_A_TIME = 4;

let server: TestServer;
let made: Made;
/** Of the first start: later ones open sessions of their own. */
let credentials: DevCredentials;
beforeAll(async () => {
  server = await startServer({ env: { LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true' } });
  ({ credentials } = server);
  await server.database!.asAdmin(`
    create function hold_answers() returns trigger language plpgsql as
      'begin
        if exists (select 1 from pg_locks where objid = ${GATE} and granted) then
          perform pg_advisory_xact_lock_shared(${GATE});
          -- The statement goes on when its client is dead: it must store nothing.
          raise exception ''cut off'';
        end if;
        return new;
      end';
    create trigger hold_answers before update of answer on idempotency_keys
      for each row when (new.answer is not null) execute function hold_answers()`);
});
afterAll(() => server?.dispose());

function send({ name, rest }: Operation, input: Record<string, unknown>) {
  const { access_token, system_key, other, account_id } = credentials;
  const tokens = { owner: access_token, system: system_key, other: other.access_token, nobody: '', ada: made.token };
  const body: Record<string, unknown> = 'account_id' in input ? { ...input, account_id } : { ...input };
  const path = rest!.path.replace(/\{(\w+)\}/g, (_all, member: string) => {
    const value = String(body[member]);
    delete body[member];
    return value;
  });
  const sent = rest!.method === 'DELETE' ? undefined : body;
  const key = { 'idempotency-key': `repeat-${name}` };
  return new ApiClient(server.base_url, tokens[CALLS[name]!.as ?? 'owner']).send(rest!.method, path, sent, key);
}

/** Somebody with two logins, and a session for each time that they logged in. */
async function makeAda(): Promise<Pick<Made, 'login' | 'needless' | 'token' | 'session'>> {
  const logIn = () =>
    new ApiClient(server.base_url, '').send('POST', '/v1/auth/token/exchange', provider('twitch', '6'));
  await logIn();
  const { body } = await logIn();
  const api = new ApiClient(server.base_url, body.token);
  const link = async (id: string) => (await api.send('POST', '/v1/auth/link', provider('kick', id))).body.data.id;
  const [login, needless] = [await link('5'), await link('4')];
  const sessions = (await api.get('/v1/users/me/sessions')).body.data as { id: string; current: boolean }[];
  return { login, needless, token: body.token, session: sessions.find(({ current }) => !current)!.id };
}

async function makeKey(): Promise<string> {
  const client = new ApiClient(server.base_url, credentials.access_token);
  const { body } = await client.send('POST', '/v1/api-keys', { label: 'Bot', permissions: ['events:read'] });
  return body.data.id;
}

/** All that commands leave behind, in numbers. */
async function effects(): Promise<Record<string, number>> {
  const [row] = await server.database!.db.query(`select
    (select count(*)::int from domain_events) as events, (select count(*)::int from platform_event_logs) as records,
    (select count(*)::int from sessions) as sessions, (select count(*)::int from api_keys) as keys`);
  return row as Record<string, number>;
}

test('each command says here how it is called', () => {
  expect(Object.keys(CALLS).sort()).toEqual(commands.map(({ name }) => name).sort());
});

test('each is answered when it comes again after a kill, and does nothing twice', async () => {
  made = {
    ...(await makeAda()),
    renamed: await makeKey(),
    removed: await makeKey(),
    refresh_token: credentials.refresh_token,
  };
  const first = commands.filter(({ name }) => !CALLS[name]!.last);
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
});
