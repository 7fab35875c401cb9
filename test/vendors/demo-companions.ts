import { randomUUID } from 'node:crypto';
import type { Post } from '../../demo/clouds';
import type { Beat, Viewer } from '../../demo/story';
import type { FakeTokens } from './cloud-tokens';
import { FakeDiscord } from './discord-cloud';
import { FakeSpotify } from './spotify-cloud';
import { FakeStreamElements } from './streamelements-cloud';

const TIPS = { token: 'demo.tips.token', channel: '5ad23dcc18fff500d78c5348' };
const BOT_TOKEN = 'demo-bot-token';
const APP = { client_id: 'demo-app', client_secret: 'demo-secret' };
const GUILD = '1132079436691415100';
const LISTENER = 'lumio_demo';
const SONGS = ['Dancing Queen', 'Mamma Mia', 'Waterloo', 'Fernando', 'Chiquitita', 'Super Trouper', 'SOS', 'Gimme'];
const SONG_MS = 12_000;

/** StreamElements, Discord and Spotify beside the platforms of the demo. */
export interface DemoCompanions {
  /** The settings that lead to them. */
  env(): Record<string, string>;
  /** Connects the account to them. */
  connect(account_id: string, post: Post, return_to: string): Promise<void>;
  /** What follows there from what happens on the platforms: a tip, somebody new on the server, another song. */
  play(beat: Beat): void;
  close(): Promise<void>;
}

export async function startDemoCompanions(): Promise<DemoCompanions> {
  const [tips, discord, spotify] = [new FakeStreamElements(), new FakeDiscord(), new FakeSpotify()];
  await Promise.all([tips, discord, spotify].map((cloud) => cloud.start()));
  tips.channels.set(TIPS.token, TIPS.channel);
  discord.bot_tokens.add(BOT_TOKEN);
  let songs = 0;
  let begun_at = 0;
  const singing = setInterval(sing, 1_000);
  const ping = setInterval(() => tips.ping(), 30_000);

  /** One song after the other, as a player tells of it. */
  function sing(): void {
    const now = Date.now();
    if (now - begun_at >= SONG_MS) [songs, begun_at] = [songs + 1, now];
    const name = SONGS[songs % SONGS.length]!;
    const id = `demo${songs}`;
    const artists = [{ id: 'abba', name: 'ABBA' }];
    const album = { id: 'gold', name: 'Gold', images: [] };
    const item = { type: 'track', id, uri: `spotify:track:${id}`, name, artists, album, duration_ms: SONG_MS };
    const device = { id: 'studio', name: 'Studio', type: 'Computer', volume_percent: 80 };
    const of = { item, device, is_playing: true, progress_ms: now - begun_at, currently_playing_type: 'track' };
    spotify.players.set(LISTENER, of);
  }

  const member = ({ id, name }: Viewer) => ({
    guild_id: GUILD,
    user: { id: `76091013${id}`, username: name.toLowerCase(), global_name: name, avatar: null },
    roles: [],
    joined_at: new Date().toISOString(),
    premium_since: null as string | null,
  });

  return {
    env: () => ({
      LUMIO_STREAMELEMENTS__API_URL: tips.base_url,
      LUMIO_STREAMELEMENTS__ASTRO_URL: tips.astro_url,
      LUMIO_DISCORD__API_URL: discord.base_url,
      LUMIO_DISCORD__BOT_TOKEN: BOT_TOKEN,
      LUMIO_DISCORD__CLIENT_ID: APP.client_id,
      LUMIO_DISCORD__CLIENT_SECRET: APP.client_secret,
      LUMIO_SPOTIFY__API_URL: spotify.base_url,
      LUMIO_SPOTIFY__ID_URL: spotify.base_url,
      LUMIO_SPOTIFY__CLIENT_ID: APP.client_id,
      LUMIO_SPOTIFY__CLIENT_SECRET: APP.client_secret,
    }),

    async connect(account_id, post, return_to) {
      // Four channels and a shop are what the demo's plan allows; music is one more.
      const limits = [{ name: 'max_integrations', value: 10 }];
      await post(`/v1/admin/accounts/${account_id}/overrides`, { limits }, 'PATCH');
      await post('/v1/se-tokens', { platform: 'twitch', token: TIPS.token, label: 'Tips of the demo' });
      const agree = async (platform: string, kind: string, owner: string, tokens: FakeTokens) => {
        const path = `/v1/connections/oauth/${platform}`;
        const { state } = await post(`${path}/start`, { kind, return_to });
        await post(`${path}/exchange`, { code: tokens.code(owner), state });
      };
      await agree('discord', 'bot', GUILD, discord.tokens);
      await agree('spotify', 'channel', LISTENER, spotify.tokens);
    },

    play(beat) {
      if (beat.kind === 'cheer') {
        const user = { username: beat.viewer.name, email: `${beat.viewer.id}@example.com`, geo: 'ZZ' };
        const donation = { user, message: beat.message, amount: beat.bits / 100, currency: 'EUR' };
        tips.tip(TIPS.channel, { donation, transactionId: randomUUID() });
      } else if (beat.kind === 'follow') {
        discord.say('GUILD_MEMBER_ADD', member(beat.viewer));
      } else if (beat.kind === 'gift') {
        discord.say('GUILD_MEMBER_UPDATE', { ...member(beat.viewer), premium_since: new Date().toISOString() });
      } else if (beat.kind === 'ban') {
        const { guild_id, user } = member(beat.viewer);
        discord.say('GUILD_MEMBER_REMOVE', { guild_id, user });
      }
    },

    async close() {
      clearInterval(singing);
      clearInterval(ping);
      await Promise.all([tips, discord, spotify].map((cloud) => cloud.close()));
    },
  };
}
