import { randomUUID } from 'node:crypto';
import type { Kicked } from '../../demo/clouds';
import type { Platform } from '../../domain/common/vendors';
import type { FakeAnswer, FakeCall } from './cloud';
import type { FakeKick } from './kick-cloud';
import type { FakeTrovo } from './trovo-cloud';
import type { FakeTwitch } from './twitch-cloud';
import type { FakeBroadcast, FakeYoutube } from './youtube-cloud';

export interface DemoChats {
  twitch: FakeTwitch;
  youtube: FakeYoutube;
  kick: FakeKick;
  trovo: FakeTrovo;
  channels(): Record<Platform, string>;
  on_air(): FakeBroadcast | null;
  /** Delivers an event of Kick as a webhook. */
  kicked: Kicked;
}

const REFUSED: FakeAnswer = { status: 401, body: { message: 'invalid access token' } };

/** Messages and bans by Lumio's callers in the demo's chats: each comes back as the platform's own echo. */
export function serveDemoChats({ twitch, youtube, kick, trovo, channels, on_air, kicked }: DemoChats): void {
  const by =
    (cloud: { tokens: FakeTwitch['tokens'] }, answer: (owner: string, body: Record<string, any>) => FakeAnswer) =>
    (call: FakeCall): FakeAnswer => {
      const owner = cloud.tokens.of(call.headers.authorization)?.owner;
      return owner ? answer(owner, JSON.parse(call.body) as Record<string, any>) : REFUSED;
    };
  const broadcaster = (id: string) => ({
    ...{ broadcaster_user_id: id, broadcaster_user_login: 'lumio_demo', broadcaster_user_name: 'lumio_demo' },
  });
  twitch.on(
    'POST /helix/chat/messages',
    by(twitch, (owner, { message: text, broadcaster_id }) => {
      const message_id = randomUUID();
      twitch.notify(broadcaster_id, 'channel.chat.message', {
        ...broadcaster(broadcaster_id),
        ...{ chatter_user_id: owner, chatter_user_login: 'lumio_demo', chatter_user_name: 'lumio_demo' },
        ...{ message_id, message: { text, fragments: [{ type: 'text', text }] }, message_type: 'text' },
        ...{ color: '', badges: [{ set_id: 'broadcaster', id: '1', info: '' }] },
      });
      return { body: { data: [{ message_id, is_sent: true, drop_reason: null }] } };
    }),
  );
  twitch.on(
    'POST /helix/moderation/bans',
    by(twitch, () => ({ body: { data: [{}] } })),
  );
  youtube.on(
    'POST /youtube/v3/liveChat/messages',
    by(youtube, (owner, { snippet }) => {
      const broadcast = on_air();
      if (broadcast === null) return { status: 403, body: { error: { message: 'The live chat is over' } } };
      return { body: youtube.text(broadcast, owner, snippet.textMessageDetails.messageText, { isChatOwner: true }) };
    }),
  );
  youtube.on(
    'POST /youtube/v3/liveChat/bans',
    by(youtube, () => ({ body: { id: randomUUID() } })),
  );
  kick.on(
    'POST /public/v1/chat',
    by(kick, (owner, { content }) => {
      const message_id = randomUUID();
      const sender = { user_id: Number(owner), username: 'lumio_demo', channel_slug: 'lumio_demo' };
      const of = { message_id, sender, content, emotes: null, replies_to: null };
      void kicked('chat.message.sent', { ...of, created_at: new Date().toISOString() });
      return { body: { data: { is_sent: true, message_id }, message: 'OK' } };
    }),
  );
  trovo.on(
    'POST /openplatform/chat/send',
    by(trovo, (owner, { content }) => {
      trovo.say(channels().trovo, { content, sender_id: owner, user_name: 'lumio_demo', nick_name: 'lumio_demo' });
      return { body: {} };
    }),
  );
  trovo.on(
    'POST /openplatform/channels/command',
    by(trovo, () => ({ body: { is_success: true, display_msg: '' } })),
  );
}
