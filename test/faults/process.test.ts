import { slowness } from '../support/patience';
import { Client } from '../support/realtime';
import { dose, SEED, seeded, sleep, until } from './support/dose';
import { DATABASE_KILLED } from './support/excuses';
import { checkInvariant } from './support/invariants';
import { Lumio } from './support/lumio';
import { Traffic } from './support/traffic';

/** Row 1: SIGKILL at random points, row 26: SIGTERM under load; the embedded engines, as a person runs them. */
describe('the process dies', () => {
  let lumio: Lumio;

  beforeEach(async () => {
    lumio = await Lumio.start({ supervise: true });
  });
  afterEach(() => lumio?.dispose());

  test(`row 1: SIGKILL ${dose(10, 100)} times at random points under traffic, alone and with its database (seed ${SEED})`, async () => {
    const random = seeded(SEED);
    const traffic = new Traffic(lumio, { seed: SEED, name: 'kill' }).start();
    for (let round = 0; round < dose(10, 100); round += 1) {
      // Before, inside and after append, projection transaction, offset commit and answer: whatever runs at that
      // moment.
      await sleep(100 + random() * 900);
      if (random() < 0.4) lumio.killDatabase();
      await lumio.kill();
      await lumio.start();
    }
    await until(() => traffic.acked > 200, 'traffic');
    const sent = await traffic.stop();
    await checkInvariant(lumio, sent, { excused: DATABASE_KILLED });

    expect(await lumio.stop()).toBe(0);
    await lumio.start();
    await checkInvariant(lumio, sent, { rebuild: false, excused: DATABASE_KILLED });
  });

  test(`row 26: SIGTERM under load, ${dose(3, 20)} times: drained, sockets closed with 1012, ended within 10 s`, async () => {
    const random = seeded(SEED + 26);
    const traffic = new Traffic(lumio, { seed: SEED + 26, name: 'term' }).start();
    for (let round = 0; round < dose(3, 20); round += 1) {
      const socket = await Client.open(lumio.ws_url, lumio.credentials.access_token);
      const subscribed = await socket.subscribe(`events:${lumio.credentials.account_id}`);
      expect(subscribed).toMatchObject({ type: 'subscribed' });
      await sleep(300 + random() * 700);
      const started = Date.now();
      const code = await lumio.stop();
      expect([code, Date.now() - started < 10_000 * slowness()]).toEqual([0, true]);
      expect(await socket.closed()).toBe(1012);
      await lumio.start();
    }
    await checkInvariant(lumio, await traffic.stop(), { excused: [] });
  });
});
