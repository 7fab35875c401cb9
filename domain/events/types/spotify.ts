import { AT, type EventType, typesOf } from './type';

const spotify = typesOf('spotify');

const track = {
  type: 'track',
  id: '01iyCAUm8EvOFqVWYJ3dVX',
  name: 'Dancing Queen',
  artists: [{ id: '0LcJLqbBmaGUft1e9Mm8HV', name: 'ABBA' }],
  album: {
    id: '79ZX48114T8NH36MnOTtl7',
    name: 'Arrival',
    images: [{ url: 'https://i.scdn.co/image/1cb3d4e9b45c0526655b712e8e7a9154a0367b42', width: 640, height: 575 }],
  },
  duration_ms: 230_400,
  explicit: false,
  uri: 'spotify:track:01iyCAUm8EvOFqVWYJ3dVX',
  url: 'https://open.spotify.com/track/01iyCAUm8EvOFqVWYJ3dVX',
};
const before = {
  ...track,
  id: '0GjEhVFGZW8afUYGChu3Rr',
  name: 'Money, Money, Money',
  uri: 'spotify:track:0GjEhVFGZW8afUYGChu3Rr',
  url: 'https://open.spotify.com/track/0GjEhVFGZW8afUYGChu3Rr',
};
const device = { id: '5fbb3ba6aa454b5534c4ba43a8c7e8e45a63ad0e', name: 'Studio', type: 'Computer', volume_percent: 80 };
const state = { item: track, is_playing: true, progress_ms: 1_200, currently_playing_type: 'track', device };
const playlist = {
  id: '3cEYpjA9oz9GiPac4AsH4n',
  name: 'Stream requests',
  uri: 'spotify:playlist:3cEYpjA9oz9GiPac4AsH4n',
};

const members = (path: string) => ['id', 'url', 'album', 'album.id'].map((name) => `${path}.${name}`);
const DEVICE = ['device', 'device.id', 'device.volume_percent'];
const STATE = { nullable: ['item', 'progress_ms', ...members('item'), ...DEVICE] };
const CHANGED = (path: string) => ({
  nullable: [
    ...STATE.nullable,
    path,
    ...['id', 'volume_percent', 'item', 'progress_ms'].map((name) => `${path}.${name}`),
  ],
});

/**
 * Spotify's events, derived from the difference of two successive states of its player; `item` is null for an
 * advertisement and in a private session, and an item of the listener's own files has no id. Source: spec doc3 §6.2.
 */
export const SPOTIFY: readonly EventType[] = [
  spotify('track', 'Another track or episode is played', state, STATE),
  spotify('play', 'Playing goes on', state, STATE),
  spotify('pause', 'Playing is paused', { ...state, is_playing: false, progress_ms: 69_937 }, STATE),
  spotify(
    'skip',
    'A track was left before its end',
    { ...state, previous: { item: before, progress_ms: 41_000 } },
    CHANGED('previous'),
  ),
  spotify(
    'volume',
    'The volume was changed; `device` has the new one',
    { ...state, previous: { volume_percent: 60 } },
    CHANGED('previous'),
  ),
  spotify(
    'device',
    'Another device plays',
    { ...state, previous: { id: 'a1b2c3', name: 'Phone', type: 'Smartphone', volume_percent: 100 } },
    CHANGED('previous'),
  ),
  spotify('queue_add', 'A track was put into the queue', { item: track }, { nullable: members('item') }),
  spotify(
    'playlist_add',
    'Tracks were put on a playlist',
    { playlist, items: [track] },
    { nullable: members('items[]') },
  ),
  spotify(
    'playlist_remove',
    'Tracks were taken off a playlist',
    { playlist, items: [track] },
    {
      nullable: members('items[]'),
    },
  ),
  spotify('playlist_create', 'A playlist was made', { playlist, created_at: AT }, { optional: ['created_at'] }),
  spotify('playlist_edit', 'A playlist was renamed or described anew', { playlist }),
  spotify('playlist_delete', 'A playlist was deleted', { playlist }),
];
