import { z } from 'zod';
import { bodyAs } from '../http/body';
import { hostOf } from '../http/hosts';
import { HttpFailed, type HttpClients } from '../http/port';
import type { PlayedItem, PlayerDevice, SpotifyPlayer } from './port';

const Named = z.object({ id: z.string().nullish(), name: z.string() });
const Image = z.object({ url: z.string(), width: z.number().nullish(), height: z.number().nullish() });
const Item = z.object({
  type: z.string().default('track'),
  id: z.string().nullish(),
  uri: z.string(),
  name: z.string(),
  duration_ms: z.number(),
  explicit: z.boolean().default(false),
  external_urls: z.object({ spotify: z.string().optional() }).default({}),
  artists: z.array(Named).optional(),
  album: z.object({ ...Named.shape, images: z.array(Image).default([]) }).optional(),
  /** An episode has a show and pictures of its own. */
  show: z.looseObject(Named.shape).optional(),
  images: z.array(Image).optional(),
});
const Device = z.object({
  id: z.string().nullish(),
  name: z.string(),
  type: z.string(),
  volume_percent: z.number().nullish(),
});
const State = z.object({
  is_playing: z.boolean(),
  progress_ms: z.number().nullish(),
  currently_playing_type: z.string().default('unknown'),
  item: Item.nullish(),
  device: Device.nullish(),
});

export function spotifyPlayer(http: HttpClients, { api_url }: { api_url: string }): SpotifyPlayer {
  const client = http.client('spotify', [hostOf(api_url)]);
  return {
    async state(token) {
      // Episodes are told only to who says that they know them.
      const url = `${api_url}/v1/me/player?additional_types=track,episode`;
      const answer = await client.ask({ method: 'GET', url, headers: { authorization: `Bearer ${token}` } });
      if (answer.status === 204) return null;
      const state = bodyAs(answer, State);
      if (state === undefined) throw new HttpFailed(new URL(api_url).hostname, 502);
      return {
        item: state.item ? itemOf(state.item) : null,
        is_playing: state.is_playing,
        progress_ms: state.progress_ms ?? null,
        currently_playing_type: state.currently_playing_type,
        device: state.device ? deviceOf(state.device) : null,
      };
    },
  };
}

function itemOf(item: z.output<typeof Item>): PlayedItem {
  const { type, id, name, duration_ms, explicit, uri, external_urls, artists = [], show, images } = item;
  const album = item.album ?? (show && { id: show.id, name: show.name, images: images ?? [] });
  return {
    type,
    id: id ?? null,
    name,
    artists: artists.map((artist) => ({ id: artist.id ?? null, name: artist.name })),
    album: album
      ? {
          id: album.id ?? null,
          name: album.name,
          images: album.images.map(({ url, width, height }) => ({ url, width: width ?? null, height: height ?? null })),
        }
      : null,
    duration_ms,
    explicit,
    uri,
    url: external_urls.spotify ?? null,
  };
}

const deviceOf = ({ id, name, type, volume_percent }: z.output<typeof Device>): PlayerDevice => ({
  id: id ?? null,
  name,
  type,
  volume_percent: volume_percent ?? null,
});
