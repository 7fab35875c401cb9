import { after, AT, type EventType, typesOf } from './type';

const kick = typesOf('kick');

const person = (user_id: number, username: string) => ({
  is_anonymous: false,
  user_id,
  username,
  is_verified: false,
  profile_picture: 'https://files.kick.com/images/user/ada.webp',
  channel_slug: username,
  identity: null,
});
const broadcaster = person(123_456_789, 'cool_streamer');
const PERSON = ['is_anonymous', 'is_verified', 'profile_picture', 'channel_slug', 'identity'];
const of = (...names: readonly string[]) => ({
  optional: ['broadcaster', ...names].flatMap((name) => PERSON.map((part) => `${name}.${part}`)),
  nullable: ['broadcaster', ...names].flatMap((name) =>
    [...PERSON, 'username', 'user_id'].map((part) => `${name}.${part}`),
  ),
});

/** Kick's events: `raw` is the body of its webhook. Source: spec doc3 §6.2. */
export const KICK: readonly EventType[] = [
  kick(
    'follower',
    'Somebody follows the channel',
    { broadcaster, follower: person(987_654_321, 'ada_l') },
    of('follower'),
  ),
  kick(
    'subscribe',
    'Somebody subscribes, or subscribes again',
    { broadcaster, subscriber: person(987_654_321, 'ada_l'), duration: 3, created_at: AT, expires_at: after(43_200) },
    of('subscriber'),
  ),
  kick(
    'gift',
    'Subscriptions are given away; an anonymous giver has no members',
    {
      broadcaster,
      gifter: person(987_654_321, 'ada_l'),
      giftees: [person(561_654_654, 'grace_h'), person(561_654_655, 'alan_t')],
      created_at: AT,
      expires_at: after(43_200),
    },
    of('gifter', 'giftees[]'),
  ),
  kick(
    'stream_online',
    'The channel goes live',
    { broadcaster, is_live: true, title: 'The last boss, really', started_at: AT, ended_at: null },
    of(),
  ),
  kick(
    'stream_offline',
    'The channel is no longer live',
    { broadcaster, is_live: false, title: 'The last boss, really', started_at: AT, ended_at: after(180) },
    of(),
  ),
];
