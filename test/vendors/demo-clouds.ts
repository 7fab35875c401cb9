import { randomUUID } from 'node:crypto';
import type { Beat, Viewer } from '../../demo/story';
import type { DemoClouds } from '../../demo/clouds';
import { serveDemoChats } from './demo-chats';
import { startDemoCompanions } from './demo-companions';
import { FakeEmoteCloud } from './emote-cloud';
import { FakeKick, KICK_CLIENT } from './kick-cloud';
import { FakeTrovo, TROVO_CLIENT } from './trovo-cloud';
import { FakeTwitch, TWITCH_CLIENT } from './twitch-cloud';
import { type FakeBroadcast, FakeYoutube } from './youtube-cloud';

const YOUTUBE_CLIENT = 'youtube-client';
const secret = 'demo-secret';

/** Every second viewer of a platform has a badge. */
const hasBadge = ({ id }: Viewer): boolean => Math.floor(id / 4) % 2 === 0;

/** The clouds of the four platforms, for a demo that goes through every adapter of theirs. */
export async function startDemoClouds(): Promise<DemoClouds> {
  const [twitch, youtube, kick, trovo] = [new FakeTwitch(), new FakeYoutube(), new FakeKick(), new FakeTrovo()];
  await Promise.all([twitch, youtube, kick, trovo].map((cloud) => cloud.start()));
  const companions = await startDemoCompanions();
  const emotes = await new FakeEmoteCloud().start();
  youtube.quota = 1_000_000_000;
  let on_air: FakeBroadcast | null = null;
  let channels: Parameters<DemoClouds['open']>[0] | null = null;

  function goLive(title: string): void {
    const { twitch: twitch_id, youtube: youtube_id, kick: kick_id, trovo: trovo_id } = channels!;
    if (on_air !== null) return;
    on_air = youtube.goLive(youtube_id, { title, viewers: 40 });
    kick.goLive(Object.assign(kick.channel(Number(kick_id)), { title }), 60);
    trovo.goLive(Object.assign(trovo.channel(trovo_id), { title }), 15);
    const started_at = new Date().toISOString();
    const id = String(Date.now());
    const about = { id, user_id: twitch_id, user_login: 'lumio_demo', user_name: 'lumio_demo', type: 'live' };
    twitch.channel(twitch_id).stream = { ...about, title, game_name: 'Just Chatting', viewer_count: 120, started_at };
    twitch.notify(twitch_id, 'stream.online', { id, ...broadcaster(), type: 'live', started_at });
  }

  function goOffline(): void {
    if (on_air === null) return;
    youtube.goOffline(on_air);
    on_air = null;
    for (const channel of kick.channels.values()) kick.goOffline(channel);
    for (const channel of trovo.channels.values()) trovo.goOffline(channel);
    twitch.channel(channels!.twitch).stream = null;
    twitch.notify(channels!.twitch, 'stream.offline', broadcaster());
  }

  const broadcaster = () => ({
    broadcaster_user_id: channels!.twitch,
    broadcaster_user_login: 'lumio_demo',
    broadcaster_user_name: 'lumio_demo',
  });
  const user = ({ id, name }: Viewer) => ({
    user_id: String(id),
    user_login: name.toLowerCase(),
    user_name: name,
    ...broadcaster(),
  });
  const chatter = ({ id, name }: Viewer) => ({
    chatter_user_id: String(id),
    chatter_user_login: name.toLowerCase(),
    chatter_user_name: name,
    ...broadcaster(),
  });
  const onTrovo = ({ id, name }: Viewer, item: object) =>
    trovo.say(channels!.trovo, { sender_id: id, user_name: name.toLowerCase(), nick_name: name, ...item });

  /** Somebody comes, somebody goes. */
  function audience(): void {
    const step = (count: number) => Math.max(1, count + Math.round((Math.random() - 0.48) * 4));
    if (on_air === null) return;
    on_air.viewers = step(on_air.viewers);
    for (const channel of [...kick.channels.values(), ...trovo.channels.values()])
      channel.viewers = step(channel.viewers);
    const { stream } = twitch.channel(channels!.twitch);
    if (stream !== null) stream['viewer_count'] = step(Number(stream['viewer_count']));
  }

  /** False: this happens on a platform that sends webhooks. */
  function said(viewer: Viewer, of_kick: string): boolean {
    // Elsewhere the emotes of Kick are those of 7TV.
    const content = of_kick.replace(/\[emote:\d+:(\w+)\]/g, '$1');
    switch (viewer.id % 4) {
      case 0: {
        const message = { text: content, fragments: [{ type: 'text', text: content }] };
        twitch.notify(channels!.twitch, 'channel.chat.message', {
          ...chatter(viewer),
          message_id: randomUUID(),
          message,
          color: '#1E90FF',
          badges: hasBadge(viewer) ? [{ set_id: 'subscriber', id: '1', info: '3' }] : [],
          message_type: 'text',
        });
        return true;
      }
      case 1:
        if (on_air === null) return false;
        youtube.text(on_air, `UC${viewer.id}`, content, { isChatSponsor: hasBadge(viewer) });
        return true;
      case 2:
        onTrovo(viewer, { type: 0, content, medals: hasBadge(viewer) ? ['sub_L1_T1'] : [] });
        return true;
      default:
        return false;
    }
  }

  return {
    env: () => ({
      ...companions.env(),
      ...emotes.env(),
      LUMIO_OUTGOING__ALLOW_LOOPBACK: 'true',
      LUMIO_HOSTS__WEB: 'http://127.0.0.1:3000',
      LUMIO_LIVE__LOOK_EVERY: '5s',
      LUMIO_TWITCH__CLIENT_ID: TWITCH_CLIENT,
      LUMIO_TWITCH__CLIENT_SECRET: secret,
      LUMIO_TWITCH__ID_URL: twitch.base_url,
      LUMIO_TWITCH__API_URL: twitch.base_url,
      LUMIO_TWITCH__EVENTSUB_URL: twitch.eventsub_url,
      LUMIO_GOOGLE__CLIENT_ID: YOUTUBE_CLIENT,
      LUMIO_GOOGLE__CLIENT_SECRET: secret,
      LUMIO_GOOGLE__ID_URL: youtube.base_url,
      LUMIO_GOOGLE__TOKEN_URL: youtube.base_url,
      LUMIO_GOOGLE__API_URL: youtube.base_url,
      LUMIO_GOOGLE__DAILY_QUOTA: '100000000',
      LUMIO_KICK__CLIENT_ID: KICK_CLIENT,
      LUMIO_KICK__CLIENT_SECRET: secret,
      LUMIO_KICK__ID_URL: kick.base_url,
      LUMIO_KICK__API_URL: kick.base_url,
      LUMIO_TROVO__CLIENT_ID: TROVO_CLIENT,
      LUMIO_TROVO__CLIENT_SECRET: secret,
      LUMIO_TROVO__ID_URL: trovo.base_url,
      LUMIO_TROVO__API_URL: trovo.base_url,
      LUMIO_TROVO__CHAT_URL: trovo.chat_url,
    }),
    open(given, kicked) {
      channels = given;
      serveDemoChats({ twitch, youtube, kick, trovo, channels: () => given, on_air: () => on_air, kicked });
      twitch.channel(given.twitch);
      kick.channel(Number(given.kick));
      trovo.channel(given.trovo);
      youtube.subscribers.set(given.youtube, 4200);
    },
    async logIn(link) {
      const { twitch: twitch_id, youtube: youtube_id, kick: kick_id, trovo: trovo_id } = channels!;
      const tokenOf = (cloud: { tokens: FakeTwitch['tokens'] }, owner: string) => cloud.tokens.give(owner).access_token;
      await link({ provider: 'twitch', provider_id: twitch_id, access_token: tokenOf(twitch, twitch_id) });
      await link({ provider: 'kick', provider_id: kick_id, access_token: tokenOf(kick, kick_id) });
      await link({ provider: 'trovo', provider_id: trovo_id, access_token: tokenOf(trovo, trovo_id) });
      // Google names the person, and afterwards the token is one of the channel.
      const access_token = tokenOf(youtube, youtube_id);
      youtube.people.set(access_token, { id: 'demo-google', name: 'Demo Streamer', client_id: YOUTUBE_CLIENT });
      await link({ provider: 'google', provider_id: 'demo-google', access_token });
      youtube.people.delete(access_token);
    },
    code: (platform, owner) => ({ twitch, youtube, kick, trovo })[platform].tokens.code(owner),
    async listened() {
      const all = () =>
        twitch.subscriptionsOf(channels!.twitch).length > 0 && trovo.listening(channels!.trovo).size > 0;
      for (const until = Date.now() + 20_000; !all() && Date.now() < until;)
        await new Promise((resume) => setTimeout(resume, 100));
    },
    connectOthers: (account_id, post, return_to) => companions.connect(account_id, post, return_to),

    play(beat: Beat): boolean {
      audience();
      companions.play(beat);
      switch (beat.kind) {
        case 'stream':
          if (beat.is_live) goLive(beat.title);
          else goOffline();
          return true;
        case 'chat':
          return said(beat.viewer, beat.content);
        case 'follow':
          if (beat.viewer.id % 2 === 0) return false;
          onTrovo(beat.viewer, { type: 5003, content: 'just followed channel!' });
          return true;
        case 'cheer': {
          const { viewer, bits, message } = beat;
          twitch.notify(channels!.twitch, 'channel.cheer', { ...user(viewer), is_anonymous: false, bits, message });
          return true;
        }
        case 'raid': {
          const { broadcaster_user_id, broadcaster_user_login, broadcaster_user_name } = broadcaster();
          const { id, name } = beat.viewer;
          twitch.notify(channels!.twitch, 'channel.raid', {
            from_broadcaster_user_id: String(id),
            from_broadcaster_user_login: name.toLowerCase(),
            from_broadcaster_user_name: name,
            to_broadcaster_user_id: broadcaster_user_id,
            to_broadcaster_user_login: broadcaster_user_login,
            to_broadcaster_user_name: broadcaster_user_name,
            viewers: beat.viewers,
          });
          return true;
        }
        case 'spell': {
          const { gift, num, gift_value } = beat;
          onTrovo(beat.viewer, { type: 5, content: JSON.stringify({ gift, num, gift_value, value_type: 'Elixir' }) });
          return true;
        }
        case 'trovo_subscribe':
          onTrovo(beat.viewer, { type: 5001, content: `Tier ${beat.tier}` });
          return true;
        default:
          return false;
      }
    },
    async close() {
      await Promise.all([companions, emotes, twitch, youtube, kick, trovo].map((cloud) => cloud.close()));
    },
  };
}
