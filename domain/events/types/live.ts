import { AT, after, type EventType, type Example, typesOf, WRITTEN } from './type';

const person = { id: '4242', username: 'ada_l', display_name: 'Ada_L', avatar_url: null };
const message = (platform: string, channel_id: string): Example => ({
  version: 1,
  kind: 'message',
  platform,
  channel_id,
  shared_chat: null,
  message_id: 'cc106a89-1814-919d-454c-f4f2f970aae7',
  live_chat_id: null,
  author: person,
  color: '#1E90FF',
  badges: [{ kind: 'subscriber', id: '6', info: '8', image_url: null }],
  roles: ['subscriber'],
  message_type: 'text',
  text: 'Hello everybody!',
  parts: [{ type: 'text', text: 'Hello everybody!' }],
  action: false,
  reply: null,
  paid: null,
  reward_id: null,
  raw: {},
});
const PERSON = ['id', 'username', 'display_name', 'avatar_url'].map((name) => `author.${name}`);
const MESSAGE = {
  delivered: 'chat',
  nullable: [
    ...['shared_chat', 'message_id', 'live_chat_id', 'author', 'color', 'reply', 'paid', 'reward_id'],
    ...['id', 'info', 'image_url'].map((name) => `badges[].${name}`),
    ...PERSON,
  ],
} as const;
const said = (platform: string, channel_id: string) =>
  typesOf(platform)(
    'chat',
    `A message in the chat, in one form for all platforms`,
    message(platform, channel_id),
    MESSAGE,
  );

const chat = typesOf('chat');
const IN_CHAT = { ...WRITTEN, delivered: 'chat' } as const;

/** Chat: its records, version 1, and their live messages. Source: spec doc3 §6.2, §6.4. */
export const CHATS: readonly EventType[] = [
  said('twitch', '1337'),
  said('youtube', 'UCabcdefghijklmnopqrstuv'),
  said('kick', '123456789'),
  said('trovo', '100000021'),
  chat('message', 'A message in any of the chats', message('twitch', '1337'), MESSAGE),
  chat(
    'delete',
    'One message was deleted',
    {
      type: 'chat:delete',
      platform_message_id: 'cc106a89-1814-919d-454c-f4f2f970aae7',
      deleted_by: 'mod_user',
    },
    { ...IN_CHAT, nullable: ['deleted_by'] },
  ),
  chat(
    'clear_user',
    'Somebody was banned or timed out: their messages are greyed out',
    {
      type: 'chat:clear_user',
      platform: 'twitch',
      platform_user_id: '4242',
      deleted_by: 'mod_user',
      action: 'timeout',
      duration_secs: 600,
    },
    { ...IN_CHAT, nullable: ['deleted_by', 'duration_secs'] },
  ),
  chat(
    'moderation_log',
    'An entry of the moderation log',
    {
      type: 'chat:moderation_log',
      data: {
        action: 'timeout',
        platform: 'twitch',
        target_user_id: '4242',
        target_username: 'ada_l',
        moderator_name: 'mod_user',
      },
    },
    { ...IN_CHAT, nullable: ['data.target_user_id', 'data.target_username', 'data.moderator_name'] },
  ),
  chat(
    'user_treatment_update',
    'Somebody is watched or restricted',
    {
      type: 'chat:user_treatment_update',
      platform: 'twitch',
      platform_user_id: '4242',
      user_treatment: 'active_monitoring',
    },
    IN_CHAT,
  ),
];

const LIVE = { ...WRITTEN, delivered: 'live' } as const;
const live = (type: string, summary: string, example: Example): EventType => {
  const [prefix, action] = type.split(':') as [string, string];
  // Their members are the publishing area's: none is promised.
  return typesOf(prefix)(action, summary, example, { ...LIVE, optional: Object.keys(example) });
};
const channel = { platform: 'twitch', channel_id: '1337' };

/** Messages that are pushed and never stored. Source: spec doc3 §6.2. */
export const TRANSIENT: readonly EventType[] = [
  live('channel:online', 'A channel of the account went live', { ...channel, started_at: AT }),
  live('channel:offline', 'A channel of the account is no longer live', { ...channel, ended_at: after(180) }),
  live('copyright:blocked', 'What is played must not be', { song_name: 'Dancing Queen', artist: 'ABBA' }),
  live('copyright:warning', 'What is played may be claimed', { song_name: 'Dancing Queen', artist: 'ABBA' }),
  live('copyright:clear', 'Nothing is claimed any more', { song_name: 'Dancing Queen', artist: 'ABBA' }),
  live('obs:action', 'OBS was told to do something', { action: 'set_scene', scene: 'Just chatting' }),
  live('obs:connection_lost', 'OBS is away', { at: AT }),
  live('obs:low_bitrate', 'OBS sends less than it should', { bitrate_kbps: 900 }),
  live('obs:high_dropped_frames', 'OBS drops frames', { dropped_frames_percent: 12 }),
  live('obs:recovery', 'OBS is well again', { at: AT }),
  live('history:session_started', 'A broadcast began', { session_id: '01900000-0000-7000-8000-00000000000a' }),
  live('history:session_updated', 'A broadcast has new figures', {
    session_id: '01900000-0000-7000-8000-00000000000a',
  }),
  live('sound:play', 'A sound is to be played', { sound_id: '01900000-0000-7000-8000-00000000000b', volume: 0.8 }),
  live('overlay:update', 'An overlay was changed', { overlay_id: '01900000-0000-7000-8000-00000000000c' }),
  live('widget:update', 'A widget was changed', { widget_instance_id: '01900000-0000-7000-8000-00000000000d' }),
  live('storage:update', 'What an extension keeps was changed', { key: 'score', value: 3 }),
  live('extension:updated', 'An extension has another version', {
    install_id: '01900000-0000-7000-8000-00000000000e',
    version: '1.2.0',
  }),
];
