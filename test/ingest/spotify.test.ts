import { z } from 'zod';
import { EVENT_TYPES, shapeOf } from '../../domain/events/event-catalogue';
import {
  createSpotifyAdapter,
  normaliseSpotify,
  type SpotifyAdapterDeps,
  type SpotifySession,
  type SpotifyTimings,
} from '../../ingest/spotify/adapter';
import { AppPauses } from '../../ingest/spotify/app-pauses';
import { accountsOnAir } from '../../ingest/spotify/on-air';
import { changesOf, isNews, type Seen } from '../../ingest/spotify/changes';
import { ConnectionRefused } from '../../ingest/runtime/connection/adapter';
import { createHttpClients } from '../../vendors/http/client';
import { spotifyPlayer } from '../../vendors/spotify/player';
import type { PlayerState } from '../../vendors/spotify/port';
import { testDatabase } from '../support/database';
import { KeptLink } from '../support/kept-link';
import { noMetrics, until } from '../support/projections';
import { fixture } from '../support/webhooks';
import { FakeSpotify } from '../vendors/spotify-cloud';

const ACCOUNT = '01900000-0000-7000-8000-000000000001';
const connection = { connection_id: 'music-1', account_id: ACCOUNT, channel_id: 'wizzler' };
const payload = (name: string) => JSON.parse(fixture('spotify', `${name}.json`).toString());
const track = payload('player.playback_state.track');
const episode = payload('player.playback_state.episode');

const vendor = new FakeSpotify();
const http = createHttpClients({ metrics: noMetrics, allow_loopback: true });
const told: PlayerState[] = [];
const sessions: SpotifySession[] = [];
const deps: SpotifyAdapterDeps = {
  player: { state: (token) => spotifyPlayer(http, { api_url: vendor.base_url }).state(token) },
  nowPlaying: async (_account, state) => void told.push(state),
  timings: { playing_ms: 10, paused_ms: 10, refused_ms: 10 } satisfies SpotifyTimings,
};
const adapter = createSpotifyAdapter(deps);
beforeAll(() => vendor.start());
beforeEach(() => {
  vendor.heal();
  vendor.players.clear();
  told.length = 0;
});
afterEach(async () => {
  for (const session of sessions.splice(0)) await adapter.stop(session);
});
afterAll(async () => {
  await http.close();
  await vendor.close();
});

async function watched(before: KeptLink | null = null, tokens?: string[], client_id?: string) {
  const of = { ...connection, client_id };
  const link = new KeptLink(adapter, of, tokens ?? [vendor.tokens.give('wizzler').access_token]);
  const session = await (before === null ? adapter.connect(link) : adapter.resume(link, before.state));
  sessions.push(session);
  return { link, session };
}
const actions = (link: KeptLink) => link.records.map(({ type }) => type.slice('spotify:'.length));
const play = (of: object) => vendor.players.set('wizzler', { ...track, ...of });
const other = { ...track.item, id: 'other', uri: 'spotify:track:other', name: 'Money, Money, Money' };

test('what the player does becomes events, each of the shape that the catalogue shows', async () => {
  const { link } = await watched();
  const then = async (state: object, ...expected: string[]) => {
    const before = link.records.length;
    play(state);
    await until(() => link.records.length >= before + expected.length);
    expect(actions(link).slice(before)).toEqual(expected);
  };
  await then({ progress_ms: 1_000 }, 'track', 'play');
  await then({ progress_ms: 1_000, is_playing: false }, 'pause');
  await then({ progress_ms: 1_000, is_playing: true }, 'play');
  await then({ progress_ms: 1_000, device: { ...track.device, volume_percent: 40 } }, 'volume');
  await then(
    { progress_ms: 1_000, device: { ...track.device, id: 'phone', name: 'Phone', volume_percent: 40 } },
    'device',
  );
  await then(
    { progress_ms: 0, item: other, device: { ...track.device, id: 'phone', volume_percent: 40 } },
    'skip',
    'track',
  );
  vendor.players.delete('wizzler');
  await until(() => link.records.length === 9);
  expect(actions(link).at(-1)).toBe('pause');
  await then(episode, 'track', 'play');
  for (const { type, raw, subject, owner } of link.records) {
    const known = EVENT_TYPES.find((one) => one.type === type)!;
    const schema = z.fromJSONSchema(shapeOf(known) as Parameters<typeof z.fromJSONSchema>[0]);
    expect([type, schema.safeParse(JSON.parse(raw)).error]).toEqual([type, undefined]);
    expect([subject, owner]).toEqual([null, { kind: 'account', account_id: ACCOUNT }]);
  }
  expect(told.map(({ item }) => item?.name)).toContain('Dancing Queen');
});

test('of one’s own files and in private sessions Spotify leaves much out, and the player is told all the same', async () => {
  const { link } = await watched();
  const file = {
    uri: 'spotify:local:me:::200',
    name: 'mine',
    duration_ms: null,
    explicit: null,
    external_urls: null,
  };
  const item = { ...file, type: null, artists: null, album: { id: null, name: null, images: null }, show: null };
  play({ item, device: { id: null, name: null, type: 'Unknown', volume_percent: null }, currently_playing_type: null });
  await until(() => link.records.length === 2);
  expect(actions(link)).toEqual(['track', 'play']);
  expect(JSON.parse(link.records[0]!.raw)).toMatchObject({
    item: { id: null, type: 'track', name: 'mine', artists: [], album: { images: [] }, url: null },
    device: { id: null, name: '' },
    currently_playing_type: 'unknown',
  });
});

test('while nothing is done nothing is told, but for another position', async () => {
  play({ is_playing: false, progress_ms: 60_000 });
  const { link } = await watched();
  const looks = () => vendor.asked('/v1/me/player');
  const before = looks();
  await until(() => looks() > before + 3);
  expect([actions(link), told]).toEqual([[], [expect.objectContaining({ progress_ms: 60_000 })]]);
  play({ is_playing: false, progress_ms: 90_000 });
  await until(() => told.length === 2);
  expect(actions(link)).toEqual([]);
});

test('who takes over tells what was done meanwhile, and what was told already has the same id', async () => {
  play({ progress_ms: 1_000 });
  const { link, session } = await watched();
  await until(() => link.state !== null);
  await adapter.stop(session);
  const before = { state: structuredClone(link.state) } as KeptLink;
  play({ item: other, progress_ms: 1_000 });
  const first = await watched(before);
  await until(() => first.link.records.length === 2);
  // It died before it could keep what it had seen.
  const second = await watched(before);
  await until(() => second.link.records.length === 2);
  const ids = ({ link }: { link: KeptLink }) => link.records.map(({ external_id }) => external_id);
  expect(ids(second)).toEqual(ids(first));
  expect(actions(second.link)).toEqual(['skip', 'track']);
});

test('a token that was revoked is asked for anew, and without another the connection is refused', async () => {
  const { access_token } = vendor.tokens.give('wizzler');
  const { link } = await watched(null, ['revoked', access_token]);
  expect(link.refused).toEqual(['revoked']);
  await expect(watched(null, ['revoked'])).rejects.toThrow(ConnectionRefused);
});

test('too many requests, a refusal and an outage: a pause, a status, and the runtime’s next try', async () => {
  const { link, session } = await watched();
  vendor.fail({ path: '/v1/me/player', status: 403 });
  await until(() => link.statuses.some(([status]) => status === 'degraded'));
  await until(() => link.statuses.at(-1)![0] === 'connected');
  // Longer than the call itself waits: the next look comes no sooner.
  vendor.fail({ path: '/v1/me/player', status: 429, retry_after: 600 });
  const before = vendor.asked('/v1/me/player');
  await until(() => vendor.asked('/v1/me/player') === before + 1);
  await new Promise((wait) => setTimeout(wait, 100));
  expect(vendor.asked('/v1/me/player')).toBe(before + 1);
  await adapter.stop(session);
  vendor.fail({ path: '/v1/me/player', status: 500, times: 10 });
  await expect(watched(link)).rejects.toThrow('500');
});

test('an app that asked too often is given a pause, whoever’s player it asked for', async () => {
  const asked = () => vendor.asked('/v1/me/player');
  const before = asked();
  vendor.fail({ path: '/v1/me/player', status: 429, retry_after: 600 });
  const busy = await watched(null, undefined, 'busy');
  const beside = await watched(null, undefined, 'busy');
  expect(asked()).toBe(before + 1);
  for (const { link } of [busy, beside]) expect(link.statuses).toEqual([['degraded', expect.stringContaining('app')]]);
  await watched(null, undefined, 'another');
  expect(asked()).toBeGreaterThan(before + 1);
});

test('a short wait that Spotify asks for holds all players of the app, and not the one call alone', async () => {
  const asked = () => vendor.asked('/v1/me/player');
  const before = asked();
  vendor.fail({ path: '/v1/me/player', status: 429, retry_after: 1 });
  const { link, session } = await watched(null, undefined, 'short');
  expect(asked()).toBe(before + 1);
  expect(link.statuses).toEqual([['degraded', expect.stringContaining('app')]]);
  await adapter.stop(session);
});

/** Pairs without a change of ours whose position is another than the clock expects: listeners are told where it is. */
const DRIFTED = ['the same track again'];
test('a pause that one process was told holds for the others, too', async () => {
  const t = await testDatabase();
  try {
    const [one, other] = [new AppPauses(t.db), new AppPauses(t.db)];
    await one.begin('app', 60_000);
    await one.begin('app', 1_000);
    expect(await other.left('app')).toBeGreaterThan(30_000);
    expect(await other.left('another')).toBe(0);
    // Without a database each goes by what it was told itself.
    const alone = new AppPauses({ query: () => Promise.reject(new Error('away')) });
    await alone.begin('app', 60_000);
    expect(await alone.left('app')).toBeGreaterThan(30_000);
  } finally {
    await t.drop();
  }
});

test('only accounts with a live channel are on air', async () => {
  const t = await testDatabase();
  try {
    const [live, over] = [ACCOUNT, ACCOUNT.replace(/1$/, '2')];
    for (const [account_id, is_online] of [
      [live, true],
      [over, false],
    ] as const)
      await t.db.query(
        `insert into channel_status (account_id, platform, broadcast_id, channel_id, is_online, updated_at)
         values ($1, 'kick', 'b', 'c', $2, now())`,
        [account_id, is_online],
      );
    const isOnAir = accountsOnAir(t.db);
    expect([await isOnAir(live), await isOnAir(over)]).toEqual([true, false]);
  } finally {
    await t.drop();
  }
});

test('while no channel is live the player is left alone, and the first look of the next stream tells no change', async () => {
  let on_air = true;
  const gated = createSpotifyAdapter({ ...deps, isOnAir: async () => on_air });
  play({ progress_ms: 1_000 });
  const link = new KeptLink(gated, connection, [vendor.tokens.give('wizzler').access_token]);
  const session = await gated.connect(link);
  sessions.push(session);
  await until(() => told.length === 1);
  on_air = false;
  const resting = async () => {
    const before = vendor.asked('/v1/me/player');
    await new Promise((wait) => setTimeout(wait, 50));
    return vendor.asked('/v1/me/player') === before;
  };
  await until(resting);
  play({ item: other, progress_ms: 1_000 });
  on_air = true;
  await until(() => told.length === 2);
  expect(told.at(-1)).toMatchObject({ item: { name: other.name } });
  expect(actions(link)).toEqual([]);
  expect(link.state).toMatchObject({ shown: { item: { name: other.name } } });
  play({ item: other, progress_ms: 1_000, is_playing: false });
  await until(() => actions(link).length === 1);
  expect(actions(link)).toEqual(['pause']);
});

describe('differences', () => {
  const seen = (at: number, of: object | null): Seen => {
    const state =
      of === null
        ? null
        : { item: ITEM, is_playing: true, progress_ms: 0, currently_playing_type: 'track', device: null, ...of };
    return { at, player: state as PlayerState | null, item: state?.item ?? ITEM };
  };
  const ITEM = { uri: 'spotify:track:a', id: 'a', name: 'A', duration_ms: 200_000 } as PlayerState['item'];
  const NEXT = { ...ITEM!, uri: 'spotify:track:b', id: 'b', name: 'B' };
  const LOCAL = { ...ITEM!, uri: 'spotify:local:x', id: null };
  const of = (before: Seen, now: Seen) => changesOf(before, now).map(({ action }) => action);

  test.each([
    ['it ended by itself', seen(0, { progress_ms: 198_000 }), seen(3_000, { item: NEXT }), ['track']],
    ['it faded into the next', seen(0, { progress_ms: 186_000 }), seen(3_000, { item: NEXT }), ['track']],
    ['it was left', seen(0, { progress_ms: 50_000 }), seen(3_000, { item: NEXT }), ['skip', 'track']],
    [
      'it was left while paused',
      seen(0, { progress_ms: 50_000, is_playing: false }),
      seen(900_000, { item: NEXT }),
      ['skip', 'track', 'play'],
    ],
    ['nobody looked for long', seen(0, { progress_ms: 50_000 }), seen(900_000, { item: NEXT }), ['track']],
    ['an advertisement', seen(0, {}), seen(3_000, { item: null, currently_playing_type: 'ad' }), []],
    ['a private session', seen(0, {}), seen(3_000, { item: null, currently_playing_type: 'unknown' }), []],
    ['a file of one’s own', seen(0, { progress_ms: 199_000 }), seen(3_000, { item: LOCAL }), ['track']],
    ['the same track again', seen(0, { progress_ms: 199_000 }), seen(3_000, { progress_ms: 1_000 }), []],
    ['nothing is played', seen(0, {}), seen(3_000, null), ['pause']],
    ['nothing still', seen(0, null), seen(3_000, null), []],
    [
      'a device without a volume',
      seen(0, { device: { id: 'a', volume_percent: 3 } }),
      seen(1, { device: { id: 'a', volume_percent: null } }),
      [],
    ],
    [
      'another device',
      seen(0, { device: { id: 'a', volume_percent: 3 } }),
      seen(1, { device: { id: 'b', volume_percent: 9 } }),
      ['device'],
    ],
  ])('%s', (name, before, now, expected) => {
    expect(of(before, now)).toEqual(expected);
    expect(isNews(before, now)).toBe(expected.length > 0 || DRIFTED.includes(name));
  });

  test('what is no change of ours is parked', () => {
    for (const text of ['', '{}', '[]', '{"action":"explode","to":"","count":1,"raw":{}}'])
      expect(normaliseSpotify({ text, received_at: 0 }, connection)).toMatchObject({ kind: 'park' });
  });
});
