import { z } from 'zod';
import { bodyOf } from '../http/body';
import { hostOf } from '../http/hosts';
import type { HttpClients } from '../http/port';
import type { PlayedItem, PlayerDevice, SpotifyPlayer } from './port';

const Named = z.object({ id: z.string().nullish(), name: z.string().nullish() });
const Image = z.object({ url: z.string(), width: z.number().nullish(), height: z.number().nullish() });
/** Requires only the members that distinguish items: a listener's own files lack most others. */
const Item = z.object({
  type: z.string().nullish(),
  id: z.string().nullish(),
  uri: z.string(),
  name: z.string().nullish(),
  duration_ms: z.number().nullish(),
  explicit: z.boolean().nullish(),
  external_urls: z.object({ spotify: z.string().nullish() }).nullish(),
  artists: z.array(Named).nullish(),
  album: z.object({ ...Named.shape, images: z.array(Image).nullish() }).nullish(),
  /** An episode has a show and pictures of its own. */
  show: z.looseObject(Named.shape).nullish(),
  images: z.array(Image).nullish(),
});
const Device = z.object({
  id: z.string().nullish(),
  name: z.string().nullish(),
  type: z.string().nullish(),
  volume_percent: z.number().nullish(),
});
const State = z.object({
  is_playing: z.boolean(),
  progress_ms: z.number().nullish(),
  currently_playing_type: z.string().nullish(),
  item: Item.nullish(),
  device: Device.nullish(),
});

/** Bound of an answer, which is kept with the connection; a track with all its markets has some 20 kB. */
const MAX_BYTES = 256 << 10;

export function spotifyPlayer(http: HttpClients, { api_url }: { api_url: string }): SpotifyPlayer {
  const client = http.client('spotify', [hostOf(api_url)]);
  return {
    async state(token) {
      // Spotify returns episodes only to clients that name the type.
      const url = `${api_url}/v1/me/player?additional_types=track,episode`;
      const headers = { authorization: `Bearer ${token}` };
      // Spotify counts the calls of the whole app: its pause is for all players.
      const answer = await client.ask({ method: 'GET', url, headers, max_bytes: MAX_BYTES, repeat_limited: false });
      if (answer.status === 204) return null;
      const state = bodyOf(answer, State, api_url);
      return {
        item: state.item ? itemOf(state.item) : null,
        is_playing: state.is_playing,
        progress_ms: state.progress_ms ?? null,
        currently_playing_type: state.currently_playing_type ?? 'unknown',
        device: state.device ? deviceOf(state.device) : null,
      };
    },
  };
}

function itemOf(item: z.output<typeof Item>): PlayedItem {
  const { type, id, name, duration_ms, explicit, uri, external_urls, artists, show, images } = item;
  const album = item.album ?? (show && { id: show.id, name: show.name, images });
  return {
    type: type ?? 'track',
    id: id ?? null,
    name: name ?? '',
    artists: (artists ?? []).map((artist) => ({ id: artist.id ?? null, name: artist.name ?? '' })),
    album: album
      ? {
          id: album.id ?? null,
          name: album.name ?? '',
          images: (album.images ?? []).map(({ url, width, height }) => ({
            url,
            width: width ?? null,
            height: height ?? null,
          })),
        }
      : null,
    duration_ms: duration_ms ?? 0,
    explicit: explicit ?? false,
    uri,
    url: external_urls?.spotify ?? null,
  };
}

const deviceOf = ({ id, name, type, volume_percent }: z.output<typeof Device>): PlayerDevice => ({
  id: id ?? null,
  name: name ?? '',
  type: type ?? '',
  volume_percent: volume_percent ?? null,
});
