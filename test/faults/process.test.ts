import { Client } from '../support/realtime';
import { dose, SEED, seeded, sleep } from './support/dose';
import { checkInvariant } from './support/invariants';
import { Lumio } from './support/lumio';
import { Traffic } from './support/traffic';

/** Row 1: SIGKILL at random points, row 26: SIGTERM under load; the embedded engines, as a person runs them. */
describe('the process dies', () => {
  let lumio: Lumio;
  const random = seeded(SEED);

  beforeEach(async () => {
    lumio = await Lumio.start({ supervise: true });
  });
  afterEach(() => lumio?.dispose());

  test(`row 1: SIGKILL ${dose(10, 100)} times at random points under traffic, alone and with its database (seed ${SEED})`, async () => {
    const traffic = new Traffic(lumio, { seed: SEED, name: 'kill' }).start();
    for (let round = 0; round < dose(10, 100); round += 1) {
      // Before, inside and after append, projection transaction, offset commit and answer: whatever runs at that moment.
      await sleep(100 + random() * 900);
      if (random() < 0.4) lumio.killDatabase();
      await lumio.kill();
      await lumio.start();
    }
    const sent = await traffic.stop();
    expect(traffic.acked).toBeGreaterThan(200);
    await checkInvariant(lumio, sent);
    expect(lumio.output()).not.toMatch(/"level":(50|60)/);

    expect(await lumio.stop()).toBe(0);
    await lumio.start();
    await checkInvariant(lumio, sent, { rebuild: [] });
  });

  test(`row 26: SIGTERM under load, ${dose(3, 20)} times: drained, sockets closed with 1012, ended within 10 s`, async () => {
    const traffic = new Traffic(lumio, { seed: SEED + 26, name: 'term' }).start();
    for (let round = 0; round < dose(3, 20); round += 1) {
      const socket = await Client.open(lumio.ws_url, lumio.credentials.access_token);
      await socket.subscribe(`events:${lumio.credentials.account_id}`);
      await sleep(300 + random() * 700);
      const started = Date.now();
      const code = await lumio.stop();
      expect([code, Date.now() - started < 10_000]).toEqual([0, true]);
      expect([1001, 1012]).toContain(await socket.closed());
      await lumio.start();
    }
    await checkInvariant(lumio, await traffic.stop());
  });
});
