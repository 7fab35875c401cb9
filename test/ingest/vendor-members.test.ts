import fc from 'fast-check';
import { isTransition, readTransition } from '../../domain/history/channel-status';
import { readChatRecord } from '../../domain/chat/chat-messages';
import { chatPush } from '../../domain/chat/chat-push';
import { parseInstant } from '../../lib/time/instants';
import { eventUserId } from '../../domain/events/event-users';
import { readPayment } from '../../domain/billing/payments';
import { TOPICS } from '../../domain/common/records';
import { readStreamSample } from '../../domain/history/stream-samples';
import type { DraftRecord } from '../../ingest/runtime/webhook/webhook';
import { storableJson } from '../../ingest/runtime/parse/text';
import { createKickLook } from '../../ingest/kick/live';
import type { LiveLook, SeenChannel, WatchedChannel } from '../../ingest/runtime/live-status/live-watch';
import { normaliseSpotify } from '../../ingest/spotify/adapter';
import { changesOf, isNews, type Seen, stateOf } from '../../ingest/spotify/changes';
import { createTrovoLook } from '../../ingest/trovo/live';
import { createTwitchLook } from '../../ingest/twitch/live';
import { createYoutubeLook } from '../../ingest/youtube/live';
import type { YoutubeQuota } from '../../ingest/youtube/quota';
import type { ConnectionTokens } from '../../services/connections/connection-tokens';
import { DataError } from '../../kernel/projection';
import { HttpFailed, type HttpClients } from '../../vendors/http/port';
import { kickChannels } from '../../vendors/kick/channels';
import { spotifyPlayer } from '../../vendors/spotify/player';
import { streamElementsApi } from '../../vendors/streamelements/astro';
import { trovoOpenApi } from '../../vendors/trovo/open-api';
import { createTwitch } from '../../vendors/twitch/api';
import { twitchStreams } from '../../vendors/twitch/streams';
import { youtubeDataApi } from '../../vendors/youtube/data-api';
import { pathsOf, replaced, strangeJson } from '../support/mutations';
import { connection, door, FILES, NOW, read, readSpoken, spoken, WEBHOOKS } from '../support/payloads';

/** More of them find what these do not: `LUMIO_TEST_TIMES=30`. */
const TIMES = Number(process.env.LUMIO_TEST_TIMES ?? 1);

/** A text of one of these payloads with one of its members replaced. */
function bent<T>(payloads: readonly (readonly [T, string])[]): fc.Arbitrary<[T, string]> {
  const all = payloads.map(([of, text]) => ({ of, text, paths: pathsOf(JSON.parse(text)) }));
  return fc
    .tuple(fc.constantFrom(...all), fc.nat(), strangeJson)
    .map(([{ of, text, paths }, n, by]) => [of, replaced(text, paths[n % paths.length]!, by)]);
}

type Stored = Pick<DraftRecord, 'type' | 'external_id' | 'occurred_at' | 'subject' | 'subjects' | 'raw'> & {
  topic: string;
  platform: string;
};

/** What is stored can be kept by PostgreSQL, and be read by everything that reads it. */
function judge({ topic, type, platform, external_id, occurred_at, subject, subjects = [], raw }: Stored): void {
  expect(storableJson(raw)).toBe(raw);
  const value: unknown = JSON.parse(raw);
  expect(parseInstant(occurred_at)).not.toBeNull();
  for (const id of [external_id, subject, ...subjects]) expect((id ?? '').length).toBeLessThanOrEqual(200);
  expect(new Set([subject, ...subjects]).size).toBe(1 + subjects.length);
  expect(eventUserId(platform, raw)?.length ?? 0).toBeLessThanOrEqual(128);
  switch (topic) {
    case TOPICS.chat_events: {
      const pushed = chatPush(readChatRecord({ raw })!, { id: 'r', account_id: 'a', occurred_at });
      for (const { data } of pushed) JSON.parse(data);
      return;
    }
    case TOPICS.webhook_events:
      return judgePayment(type, raw);
    case TOPICS.stream_samples:
      return void readStreamSample(raw);
    default:
      expect(value).toBeInstanceOf(Object);
      if (isTransition(type))
        for (const text of Object.values(readTransition({ type, raw, at: occurred_at }))) judgeText(text);
  }
}

function judgeText(text: unknown): void {
  if (typeof text !== 'string') return;
  expect(text).not.toContain('\0');
  expect(text.isWellFormed()).toBe(true);
}

/** It is one that can be read, or parked as one that cannot. */
function judgePayment(type: string, raw: string): void {
  try {
    const payment = readPayment(type, raw);
    const text = JSON.stringify(payment);
    expect(storableJson(text)).toBe(text);
    expect(parseInstant(payment.happened_at)).not.toBeNull();
    expect(Number.isSafeInteger(payment.rank)).toBe(true);
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
  }
}

describe('with any JSON in any one of its members', () => {
  const socketed = FILES.flatMap(([vendor, file]) =>
    (spoken(vendor, file) ?? []).map(([text, channel_id]) => [{ vendor, channel_id }, text] as const),
  );

  test('what is said over a socket makes no reader throw, and what is stored of it can be read', () => {
    fc.assert(
      fc.property(bent(socketed), fc.boolean(), ([{ vendor, channel_id }, text], parsed) => {
        const outcome = readSpoken(vendor, text, channel_id, 0, parsed);
        expect(['ok', 'skip', 'park']).toContain(outcome.kind);
        if (outcome.kind === 'ok') outcome.records.forEach(judge);
      }),
      { numRuns: 3_000 * TIMES },
    );
  });

  const posted = FILES.flatMap(([vendor, file]) =>
    vendor in WEBHOOKS && spoken(vendor, file) === null && file.endsWith('.json')
      ? [[{ vendor, file }, read(vendor, file).toString()] as const]
      : [],
  );

  test('what a webhook takes is answered 200, and what is stored of it can be read', async () => {
    await fc.assert(
      fc.asyncProperty(bent(posted), async ([{ vendor, file }, text]) => {
        const { path, sign } = WEBHOOKS[vendor]!;
        const { kept, deliver } = door();
        const body = Buffer.from(text);
        // PayPal signs objects alone.
        expect(vendor === 'paypal' ? [200, 401] : [200]).toContain(
          await deliver(`/v1/webhooks/${path}`, body, sign(body, file)),
        );
        expect(kept.parked).not.toContain('normaliser_failed');
        kept.records.forEach(judge);
      }),
      { numRuns: 600 * TIMES },
    );
  });

  test('what Spotify shows is compared with what it showed before', async () => {
    const shown = ['track', 'episode'].map((kind) => {
      const text = read('spotify', `player.playback_state.${kind}.json`).toString();
      return [kind, text] as const;
    });
    const stateFrom = (text: string) =>
      spotifyPlayer(answering(text), { api_url: 'https://spotify.example' })
        .state('token')
        .catch((error: unknown) => {
          if (!(error instanceof HttpFailed)) throw error;
          return null;
        });
    await fc.assert(
      fc.asyncProperty(bent(shown), bent(shown), async ([, first], [, second]) => {
        const [one, other] = [await stateFrom(first), await stateFrom(second)];
        const before: Seen = { at: NOW - 3_000, player: one, item: one?.item ?? null };
        const now: Seen = { at: NOW, player: other, item: other?.item ?? before.item };
        JSON.stringify([isNews(before, now), stateOf(now)]);
        for (const [n, { action, to, raw }] of changesOf(before, now).entries()) {
          const text = JSON.stringify({ action, to, count: n, raw });
          const outcome = normaliseSpotify({ text, received_at: NOW }, connection('wizzler'));
          expect(outcome.kind).toBe('ok');
          if (outcome.kind === 'ok') outcome.records.forEach(judge);
        }
      }),
      { numRuns: 500 * TIMES },
    );
  });
});

describe('of what is on air', () => {
  const channel = { connection_id: 'c', account_id: 'a', platform_channel_id: '7', client_id: 'app', kind: 'channel' };
  const channels = [channel] as unknown as readonly WatchedChannel[];
  const tokens = { token: () => Promise.resolve('token') } as unknown as ConnectionTokens;
  const quota = { take: () => Promise.resolve({ granted: true }) } as unknown as YoutubeQuota;
  const api_url = 'https://api.example';
  const shown: Readonly<Record<string, { said: object; look(http: HttpClients): LiveLook }>> = {
    kick: {
      said: {
        data: [
          {
            broadcaster_user_id: 7,
            slug: 'seven',
            stream_title: 'A stream',
            category: { name: 'Games' },
            stream: { is_live: true, start_time: '2026-11-22T06:00:00Z', viewer_count: 5, custom_tags: ['a'] },
          },
        ],
      },
      look: (http) => createKickLook(kickChannels(http, { api_url }), tokens),
    },
    trovo: {
      said: { is_live: true, live_title: 'A', category_name: 'B', current_viewers: '5', started_at: '1763791200' },
      look: (http) => createTrovoLook(trovoOpenApi(http, { api_url, chat_url: 'wss://chat.example' })),
    },
    twitch: {
      said: {
        total: 3,
        data: [{ id: 's', user_id: '7', title: 'A', viewer_count: 5, tags: ['a'], started_at: '2026-11-22T06:00:00Z' }],
      },
      look: (http) => createTwitchLook(twitchStreams(http, { api_url }), tokens),
    },
    youtube: {
      said: {
        items: [
          {
            id: 'v',
            snippet: { title: 'A', categoryId: '1', tags: ['a'] },
            statistics: { subscriberCount: '5' },
            liveStreamingDetails: { actualStartTime: '2026-11-22T06:00:00Z', concurrentViewers: '5' },
          },
        ],
      },
      look: (http) => createYoutubeLook(youtubeDataApi(http, { api_url }), tokens, quota),
    },
  };
  const said = Object.entries(shown).map(([platform, one]) => [platform, JSON.stringify(one.said)] as const);
  const look = async (platform: string, text: string) =>
    shown[platform]!.look(answering(text)).look(channels, new Map([['a', ['v']]]));

  test.each(said)('%s shows a broadcast', async (platform, text) => {
    const seen = (await look(platform, text)).get('c');
    expect(seen?.broadcasts).toEqual([expect.objectContaining({ viewer_count: 5 })]);
  });

  test('a platform may show anything: it is a broadcast that can be kept, none, or an answer that is none', async () => {
    await fc.assert(
      fc.asyncProperty(bent(said), async ([platform, text]) => {
        const seen = await look(platform, text).catch((error: unknown) => {
          if (error instanceof HttpFailed) return new Map<string, SeenChannel>();
          throw error;
        });
        for (const { viewer_count, started_at } of seen.get('c')?.broadcasts ?? []) {
          expect(viewer_count === null || (Number.isSafeInteger(viewer_count) && viewer_count >= 0)).toBe(true);
          expect(started_at === null || parseInstant(started_at) !== null).toBe(true);
        }
        for (const { ended_at } of seen.get('c')?.over ?? []) expect(parseInstant(ended_at)).not.toBeNull();
      }),
      { numRuns: 500 * TIMES },
    );
  });
});

describe('with anything that XML can say in any one of its texts', () => {
  const feeds = FILES.filter(([vendor, file]) => vendor === 'youtube' && file.endsWith('.xml')).map(([vendor, file]) =>
    read(vendor, file).toString(),
  );
  const strange = fc.oneof(
    fc.constantFrom('&#0;', '&#xD800;', '&#x110000;', '&amp;#0;', '<![CDATA[\u0001]]>', '&undefined;', '', ' ', '-1'),
    fc.constantFrom('<x/>', '<a>1</a><a>2</a>', '<channelId>2</channelId>', '<!-- -->', '__proto__', '1e400', '𝒳'),
    fc.string({ unit: 'binary', maxLength: 20 }),
  );
  const bentFeed = fc.tuple(fc.constantFrom(...feeds), fc.nat(), strange).map(([feed, n, by]) => {
    const places = [...feed.matchAll(/(?<=>|=")[^<>"]+(?=<|")/g)];
    const { index, 0: text } = places[n % places.length]!;
    return feed.slice(0, index) + by + feed.slice(index + text.length);
  });

  test('a feed is answered 200, or 400 where it is none', async () => {
    await fc.assert(
      fc.asyncProperty(bentFeed, async (feed) => {
        const { kept, deliver } = door();
        const body = Buffer.from(feed);
        expect([200, 400]).toContain(
          await deliver('/v1/webhooks/youtube', body, WEBHOOKS['youtube']!.sign(body, 'feed.xml')),
        );
        expect(kept.parked).toEqual([]);
        for (const { owner_channel, ...record } of kept.records.map(withChannel)) {
          judgeText(owner_channel);
          judge(record);
        }
      }),
      { numRuns: 600 * TIMES },
    );
  });
});

/** The channel that a feed's record is looked up by is one that PostgreSQL can be asked for. */
const withChannel = (record: Stored) => ({
  ...record,
  owner_channel: (JSON.parse(record.raw) as { channel_id: string }).channel_id,
});

/** A client whose every answer is this text. */
test('an answer that is nested too deep to be written again is none', async () => {
  const deep = `{"docs":[{"_id":"1","message":${'['.repeat(100_000)}${']'.repeat(100_000)}}],"data":[]}`;
  expect(() => JSON.stringify(JSON.parse(deep))).toThrow(RangeError);
  const urls = { api_url: 'https://vendor.example', astro_url: 'wss://vendor.example' };
  const tips = streamElementsApi(answering(deep), urls).tips('c', 'token', { since: 0, offset: 0, limit: 1 });
  await expect(tips).rejects.toMatchObject({ status: 502 });
  const { api_url } = urls;
  const twitch = createTwitch(answering(deep), {
    api_url,
    id_url: api_url,
    eventsub_url: api_url,
    allow_loopback: false,
  });
  expect(await twitch.get({ token: 't', client_id: 'c' }, 'polls', {})).toBeNull();
});

function answering(text: string): HttpClients {
  const answer = { status: 200, headers: {}, body: Buffer.from(text), retry_after_ms: undefined };
  const call = () => Promise.resolve(answer);
  return { client: () => ({ call, ask: call }), close: () => Promise.resolve() } as unknown as HttpClients;
}
