import { ApiClient } from '../support/vendor-cloud';
import { type FakeClock, fakeClock } from './support/clock';
import { type Cluster, startCluster } from './support/cluster';
import { dose, SEED, sleep, until } from './support/dose';
import { SESSION_TIMED_OUT } from './support/excuses';
import { checkInvariant } from './support/invariants';
import { Lumio } from './support/lumio';
import { Traffic } from './support/traffic';

const HOUR = 3600;

/** Row 22: a wall clock jumps an hour forth and back, the server's or the database's, and the other's does not. */
describe('the clock jumps', () => {
  let clock: FakeClock;
  let database_clock: FakeClock;
  let cluster: Cluster;
  let lumio: Lumio;

  beforeAll(async () => {
    [clock, database_clock] = [fakeClock(), fakeClock()];
    cluster = await startCluster({ env: database_clock.env });
  });
  beforeEach(async () => {
    lumio = await Lumio.start({ database_url: await cluster.createDatabase(), env: clock.env });
  });
  afterEach(() => lumio?.dispose());
  afterAll(async () => {
    await cluster?.dispose();
    clock?.dispose();
    database_clock?.dispose();
  });

  test('row 22: order, dedup and idempotency hold; an expired token stays out, a valid one comes back in with the clock', async () => {
    // A refused token is what a forward jump means for commands, and a refused time for signatures that hold one;
    // Trovo's webhooks carry neither and go on.
    const untimed = { emits: 0, keys: 0, payments: 0, chat: 0 };
    const traffic = new Traffic(lumio, { seed: SEED, name: 'clock', repeats: 0.3, ...untimed }).start();
    const api = new ApiClient(lumio.base_url, lumio.credentials.access_token);
    const emit = () =>
      api.send(
        'POST',
        '/v1/events/emit',
        { event_type: 'twitch:cheer', external_id: 'clock-e0-0', raw: {} },
        {
          'idempotency-key': 'clock-emit',
        },
      );
    traffic.sent.tried.add('clock-e0-0');
    await sleep(500);
    const first = await emit();
    expect(first.status).toBe(200);

    const jumps = Array.from({ length: dose(1, 15) }, () => [1, 0, -1, 0]).flat();
    for (const hours of jumps) {
      const before = traffic.acked;
      clock.jump(hours * HOUR);
      await until(() => traffic.acked > before + 100, `webhooks with the clock ${hours} h off`);
      // An hour ahead the token of a quarter of an hour has ended; else the first answer is given again, byte for byte.
      const { status, body } = await emit();
      const refused = { error: 'UNAUTHORIZED', message: expect.any(String) };
      expect([hours, status, body]).toEqual([hours, ...(hours === 1 ? [401, refused] : [200, first.body])]);
    }
    await checkInvariant(lumio, await traffic.stop(), { excused: [] });
    expect([lumio.lives, lumio.ends]).toEqual([1, []]);
  });

  test('row 22: the same of the database alone: order and dedup hold, and commands go on', async () => {
    const traffic = new Traffic(lumio, { seed: SEED, name: 'db-clock', repeats: 0.3 }).start();
    const away = async () => {
      const [row] = await lumio.query('select extract(epoch from clock_timestamp()) as seconds');
      return (Number(row.seconds) - Date.now() / 1000) / HOUR;
    };
    const jumps = Array.from({ length: dose(1, 15) }, () => [1, 0, -1, 0]).flat();
    for (const hours of jumps) {
      const before = traffic.acked;
      database_clock.jump(hours * HOUR);
      expect(await away()).toBeCloseTo(hours, 1);
      await until(() => traffic.acked > before + 100, `work with the database's clock ${hours} h off`);
    }
    await checkInvariant(lumio, await traffic.stop(), { excused: [SESSION_TIMED_OUT] });
    expect([lumio.lives, lumio.ends]).toEqual([1, []]);
  });
});
