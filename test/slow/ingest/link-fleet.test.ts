import { once } from 'node:events';
import { dose } from '../../faults/support/dose';
import { type TestDatabase, testDatabase } from '../../support/database';
import { type FleetLink, LinkFleet } from '../../support/link-fleet';
import { PATIENCE_MS, slowness } from '../../support/patience';
import { until } from '../../support/projections';

const CHANNELS = dose(40, 2_000);
const PER_SECOND = dose(200, 500);
const TIMES = dose(5, 20);
/** Promised: messages are stored within 2 s, links of a killed worker are open again within 40 s. */
const LATE_MS = 2_000;
const BACK_MS = 40_000;
const OPENING_MS = dose(PATIENCE_MS, 600_000);

describe('two workers that hold the channels of many accounts', () => {
  let t: TestDatabase;
  let fleet: LinkFleet;
  beforeAll(async () => {
    t = await testDatabase();
    fleet = await LinkFleet.start(t.url, { workers: 2, channels: CHANNELS });
  });
  afterAll(async () => {
    await fleet.close();
    await t.drop();
  });

  const open = (links: readonly FleetLink[]) =>
    links.filter(({ vendor, status }) => vendor === 'twitch' && status === 'connected');
  const tokens = (links: readonly FleetLink[]) => new Map(open(links).map(({ link, token }) => [link, token]));

  test(
    'no link moves when another connection comes and goes; those of a killed worker are back soon, gaps told',
    async () => {
      await until(async () => (await fleet.open()).links === CHANNELS, OPENING_MS);
      const before = await fleet.links();
      const shares = [...new Set(before.map(({ holder }) => holder))].map(
        (holder) => before.filter((link) => link.holder === holder).length,
      );
      expect(shares).toEqual([CHANNELS / 2, CHANNELS / 2]);

      fleet.talk(PER_SECOND);
      for (let n = 0; n < TIMES; n += 1) {
        fleet.connectPlayer();
        await until(() => fleet.playing());
        fleet.disconnectPlayer();
        await until(async () => !(await fleet.playing()));
      }
      fleet.silence();
      await until(async () => (await fleet.judge()).missing === 0);
      expect(tokens(await fleet.links())).toEqual(tokens(before));
      const quiet = await fleet.judge();
      expect(quiet.sent).toBeGreaterThan(0);
      expect(quiet.latest_ms).toBeLessThan(LATE_MS * slowness());

      const killed_at = performance.now();
      fleet.workers[0]!.kill('SIGKILL');
      await until(async () => {
        const { links, holders } = await fleet.open();
        return links === CHANNELS && holders === 1;
      }, OPENING_MS);
      const back_ms = performance.now() - killed_at;
      expect(back_ms).toBeLessThan(BACK_MS * slowness());
      const held = tokens(before);
      const moved = new Set(
        [...tokens(await fleet.links())].flatMap(([link, token]) => (held.get(link) === token ? [] : link)),
      );
      expect(moved.size).toBe(CHANNELS / 2);
      await until(async () =>
        (await fleet.links()).every((one) => moved.has(one.link) === (one.missed_detail !== null)),
      );

      fleet.forget();
      fleet.talk(PER_SECOND);
      await until(async () => (await fleet.judge()).sent >= CHANNELS);
      fleet.silence();
      await until(async () => (await fleet.judge()).missing === 0);
      const figures = { channels: CHANNELS, messages: quiet.sent, latest_ms: quiet.latest_ms };
      process.stdout.write(`link fleet: ${JSON.stringify({ ...figures, back_ms: Math.round(back_ms) })}\n`);
    },
    OPENING_MS * 3,
  );
});

describe('a worker that holds 110 channels, with a successor, at 100 ms a call', () => {
  const MOVED_CHANNELS = 110;
  const MOVED_MS = 8_000;
  const STOP_WITHIN_MS = 8_750;
  let t: TestDatabase;
  let fleet: LinkFleet;
  let slow: number;
  beforeAll(async () => {
    t = await testDatabase();
    slow = slowness();
    const stop_within_ms = STOP_WITHIN_MS * slow;
    fleet = await LinkFleet.start(t.url, { workers: 1, channels: MOVED_CHANNELS, stop_within_ms });
  });
  afterAll(async () => {
    await fleet.close();
    await t.drop();
  });

  test(
    'stops without the loss of a message, and every channel has moved within 8 s',
    async () => {
      await until(async () => (await fleet.open()).links === MOVED_CHANNELS, OPENING_MS);
      const [first] = fleet.workers;
      const [{ holder: former }] = (await fleet.links()) as [FleetLink];
      fleet.slow(100);
      fleet.talk(60);
      await fleet.join();
      const at = performance.now();
      const ended = once(first!, 'exit').then(() => performance.now() - at);
      first!.kill('SIGTERM');
      await until(async () => (await fleet.moved(former)) === MOVED_CHANNELS);
      const moved_ms = performance.now() - at;
      const ended_ms = await ended;
      fleet.silence();
      await until(async () => (await fleet.judge()).missing === 0);
      const { sent } = await fleet.judge();
      const figures = { channels: MOVED_CHANNELS, sent, unheard: fleet.unheard, moved_ms, ended_ms, slow };
      process.stdout.write(`planned stop: ${JSON.stringify(figures)}\n`);
      expect(fleet.unheard).toBe(0);
      expect((await fleet.links()).filter(({ missed_detail }) => missed_detail !== null)).toEqual([]);
      expect(moved_ms).toBeLessThan(MOVED_MS * slow);
      expect(ended_ms).toBeLessThan((STOP_WITHIN_MS + 250) * slow);
    },
    OPENING_MS * 2,
  );
});
