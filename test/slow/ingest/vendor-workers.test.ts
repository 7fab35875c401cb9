import { pause } from '../../../lib/async/signal';
import { dose } from '../../faults/support/dose';
import { type TestDatabase, testDatabase } from '../../support/database';
import { until } from '../../support/projections';
import { VendorWorkers } from '../../support/vendor-workers';

describe('workers that hold connections of all vendors', () => {
  let t: TestDatabase;
  let all: VendorWorkers;
  beforeEach(async () => {
    t = await testDatabase();
    all = await VendorWorkers.start(t.url);
  });
  afterEach(async () => {
    await all.close();
    await t.drop();
  });

  test('one that joins and one that stops while vendors take 150 ms a call: nothing is lost, or stored as two', async () => {
    // However slow the machine is, no process leaves before the other one reads.
    const patient = { timings: { handover_ms: 120_000, stop_handover_ms: 120_000 }, stop_within_ms: 150_000 };
    const first = all.begin(patient);
    const before = await all.allHeld();
    await all.eachStored();
    all.slow(150);
    all.begin(patient);
    await all.divided(2);
    await all.stop(first);
    await all.allHeld(before);
    all.slow(0);
    await all.nothingMissingOrTwice();
    expect(await all.oneReader()).toBe(true);
  }, 300_000);

  test(
    'one that is killed, then one that is paused: another takes over, and everything is stored once',
    async () => {
      const killed = all.begin();
      const first = await all.allHeld();
      await all.eachStored();
      all.kill(killed);
      await until(() => all.twitch.sessions.size === 0);
      const paused = all.begin();
      const second = await all.allHeld(first);
      await all.eachStored();
      await all.nothingMissingOrTwice();

      paused.kill('SIGSTOP');
      // Its sockets stay open: the vendors go on sending to them.
      const last = all.begin();
      await all.allHeld(second);
      await pause(dose(500, 60_000));
      paused.kill('SIGCONT');
      await all.oneReader();
      await all.nothingMissingOrTwice();

      all.silence();
      await Promise.all([all.stop(paused), all.stop(last)]);
      await until(() => all.twitch.sessions.size === 0 && all.discord.connected === 0);
    },
    dose(300_000, 360_000),
  );
});
