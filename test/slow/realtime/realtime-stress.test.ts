import { seeded, SEED, sleep, until } from '../../faults/support/dose';
import { testDatabase, type TestDatabase } from '../../support/database';
import { type Met, type Stored, wrongs } from '../../support/delivery-oracle';
import { ACCOUNT, OTHER_ACCOUNT, publish, realtimeNode, type RealtimeNode } from '../../support/realtime';
import { RecordedClient, storedNumbers } from '../../support/recorded-client';

/** Seconds of faults; a longer run: `LUMIO_STRESS_SECONDS=600 LUMIO_TEST_SEED=… npm run test:slow -- …`. */
const SECONDS = Number(process.env.LUMIO_STRESS_SECONDS ?? 30);
const PACE_MS = 8;
const ACCOUNTS = [ACCOUNT, OTHER_ACCOUNT] as const;
const FAMILIES = ['events', 'chat', 'automations'] as const;
const PERMISSIONS = new Set(['events:read', 'chat:read', 'chat:write', 'automations:read']);
const MAX_CLIENTS = 30;

describe('clients that come, go, stall, resume and are cut, while messages are stored and broadcast', () => {
  let t: TestDatabase;
  let node: RealtimeNode;
  beforeAll(async () => {
    t = await testDatabase(8);
    node = await realtimeNode(t, { windows: { silence_ms: 120_000, stall_ms: 20_000 } });
  });
  afterAll(async () => {
    await node.stop();
    await t.drop();
  });

  class Harried extends RecordedClient {
    constructor(
      name: string,
      readonly account_id: string,
    ) {
      const may = new Set(FAMILIES.map((family) => `${family}:${account_id}`));
      super(node, name, may, { account_id, permissions: PERMISSIONS });
    }
  }

  test(
    `everybody gets exactly what they are to get, for ${SECONDS} s (LUMIO_TEST_SEED=${SEED})`,
    async () => {
      const random = seeded(SEED);
      const below = (most: number) => Math.floor(random() * most);
      const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
      const lives: Harried[] = [];
      let here: Harried[] = [];
      let numbers = 0;
      let publishing: Promise<unknown> = Promise.resolve();
      const pad = 'x'.repeat(20_000);
      const doings: Record<string, (who: Harried | undefined) => void> = {
        store() {
          const channel = `${pick(FAMILIES)}:${pick(ACCOUNTS)}`;
          const messages = Array.from({ length: 1 + below(25) }, () => ({ n: (numbers += 1) }));
          publishing = publishing.then(() => publish(t, node, channel, messages));
        },
        // More than a stalled client's queue and socket hold.
        storeMuch() {
          const channel = `${pick(FAMILIES)}:${pick(ACCOUNTS)}`;
          const messages = Array.from({ length: 60 }, () => ({ n: (numbers += 1), pad }));
          publishing = publishing.then(() => publish(t, node, channel, messages));
        },
        broadcast(who) {
          const n = -(numbers += 1);
          who?.then(async () =>
            who.client!.send({ type: 'broadcast', channel: `chat:${who.account_id}`, payload: `{"n":${n}}` }),
          );
        },
        come() {
          if (here.length >= MAX_CLIENTS) return;
          const one = new Harried(`client-${lives.length}`, pick(ACCOUNTS));
          lives.push(one);
          here.push(one);
          one.then(() => one.open());
          one.then(() => one.subscribe(`chat:${one.account_id}`, false));
        },
        subscribe(who) {
          const channel = `${pick(FAMILIES)}:${who?.account_id ?? ''}`;
          const resume = below(4) > 0;
          who?.then(() => who.subscribe(channel, resume));
        },
        trespass(who) {
          const channel = `${pick(FAMILIES)}:${who?.account_id === ACCOUNT ? OTHER_ACCOUNT : ACCOUNT}`;
          who?.then(() => who.client!.subscribe(channel));
        },
        unsubscribe(who) {
          const channel = `${pick(FAMILIES)}:${who?.account_id ?? ''}`;
          who?.then(() => who.unsubscribe(channel));
        },
        stall(who) {
          const ms = 200 + below(1_800);
          who?.then(() => who.stall(ms));
        },
        // The socket breaks; the same person is back with what it has.
        breakOff(who) {
          if (!who) return;
          who.then(async () => who.end());
          here = here.filter((one) => one !== who);
          const again = new Harried(`client-${lives.length}`, who.account_id);
          lives.push(again);
          here.push(again);
          again.then(() => again.goOn(who));
        },
        revoke(who) {
          if (!who) return;
          here = here.filter((one) => one !== who);
          who.then(async () => {
            who.ends.add(4401);
            node.ended.add(who.name);
            node.revoke({ credential_id: who.name });
            await who.client!.closed();
          });
        },
      };
      const often = {
        store: 40,
        storeMuch: 2,
        broadcast: 10,
        come: 8,
        subscribe: 14,
        trespass: 3,
        unsubscribe: 6,
        stall: 4,
        breakOff: 5,
        revoke: 1,
      };
      const bag = Object.entries(often).flatMap(([name, times]) => Array<string>(times).fill(name));
      for (let n = 0; n < (SECONDS * 1_000) / PACE_MS; n += 1) {
        const [name, number] = [pick(bag), random()];
        doings[name]!(here[Math.floor(number * here.length)]);
        await sleep(PACE_MS);
        if (n % 50 === 0) for (const one of lives) one.note();
      }
      await publishing;
      await Promise.all(lives.map((one) => one.settled()));
      const stored = await storedNumbers(t.db);
      const all = () => lives.every((one) => one.arrived(stored));
      await until(all, 'everybody to have everything').catch(() => undefined);
      expect(wrongs(lives, stored)).toEqual([]);
      // It was a stress: everything happened, and much of it.
      const met = lives.flatMap((one) => one.met);
      const got = met.flatMap((one) => (one.what === 'got' ? [one.message] : []));
      const counts = {
        stored: got.filter(({ type, id }) => type !== 'subscribed' && id !== undefined).length,
        broadcast: got.filter(({ data, id }) => data !== undefined && id === undefined).length,
        resumed: got.filter(({ recovered }) => recovered).length,
        closed: met.filter(({ what }) => what === 'closed').length,
        refused: got.filter(({ code }) => code === 'UNAUTHORIZED').length,
      };
      expect(Object.entries(counts).filter(([, count]) => count < SECONDS / 3)).toEqual([]);
      expect(await node.metrics()).toMatch(/lumio_websocket_holes_total 0/);
      // Nobody is left.
      for (const one of lives) one.end();
      await until(() => node.realtime.stats().sessions === 0, 'all sessions to end');
      expect(node.realtime.stats()).toEqual({ sessions: 0, channels: 0 });
    },
    (SECONDS + 90) * 1_000,
  );
});

/** What judges the stress must itself turn red: each fault is planted, and found. */
describe('the judge', () => {
  const channel = `events:${ACCOUNT}`;
  const stored: Stored = new Map([[channel, [11, 12, 13, 14]]]);
  const got = (message: Omit<Met & { what: 'got' }, 'what'>['message']): Met => ({ what: 'got', message });
  const message = (seq: number, n: number, on = channel) =>
    got({ type: 'event', channel: on, id: `e-${seq}`, data: { n } });
  const asked = (since?: string): Met => ({ what: 'asked', channel, since });
  const subscribed = (seq: number, recovered?: boolean) =>
    got({ type: 'subscribed', channel, id: `e-${seq}`, ...(recovered === undefined ? {} : { recovered }) });
  const judged = (...met: Met[]) =>
    wrongs([{ name: 'one', met, may: new Set([channel]), ends: new Set([4401]) }], stored);
  const right = [asked(), subscribed(2), message(3, 13), message(4, 14)];
  const transient = got({ type: 'event', channel, data: { n: -1 } });

  test('finds nothing wrong where nothing is', () => {
    expect(judged(...right)).toEqual([]);
    expect(judged(...right, { what: 'left', channel }, asked('e-4'), subscribed(4, true), transient)).toEqual([]);
    expect(judged(asked(), subscribed(2), { what: 'closed', code: 4401 })).toEqual([]);
  });

  test.each<[string, Met[]]>([
    ['a lost message', [asked(), subscribed(2), message(4, 14)]],
    ['a lost end', [asked(), subscribed(2), message(3, 13)]],
    ['nothing at all', [asked(), subscribed(2)]],
    ['a doubled message', [asked(), subscribed(2), message(3, 13), message(3, 13), message(4, 14)]],
    ['another order', [asked(), subscribed(2), message(4, 14), message(3, 13)]],
    ['another content', [asked(), subscribed(2), message(3, 12), message(4, 14)]],
    ['a message of somebody else', [...right, message(1, 1, `events:${OTHER_ACCOUNT}`)]],
    ['a subscription of somebody else', [got({ type: 'subscribed', channel: 'chat:x', id: 'e-0' })]],
    ['a message before the subscription', [message(3, 13), ...right]],
    ['a message after leaving', [...right, { what: 'left', channel }, message(5, 15)]],
    [
      'a message after the drop',
      [asked(), subscribed(2), got({ type: 'error', code: 'CHANNEL_DROPPED', channel }), message(3, 13)],
    ],
    ['a resume that was refused', [asked('e-2'), subscribed(4, false)]],
    ['a resume from elsewhere', [asked('e-2'), subscribed(3, true), message(4, 14)]],
    ['a resume that nobody asked for', [asked(), subscribed(4, true)]],
    ['a second subscription', [...right, subscribed(4)]],
    ['a broadcast that came twice', [...right, transient, transient]],
    ['an error', [...right, got({ type: 'error', code: 'SUBSCRIBE_FAILED', channel })]],
    ['another close code', [...right, { what: 'closed', code: 1006 }]],
    ['a message after the close', [asked(), subscribed(2), { what: 'closed', code: 4401 }, message(3, 13)]],
  ])('finds %s', (_what, met) => {
    expect(judged(...met)).not.toEqual([]);
  });
});
