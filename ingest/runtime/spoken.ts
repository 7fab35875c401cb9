import type { Vendor } from '../../domain/vendors';
import { normaliseDiscord } from '../discord/members';
import { normaliseSpotify } from '../spotify/adapter';
import { normaliseTips } from '../streamelements/tips';
import { normaliseTrovoChat } from '../trovo/chat';
import { normaliseTwitch } from '../twitch/normalise';
import { normaliseYoutubeChat } from '../youtube/chat';
import type { Adapter } from './adapter';

/** How what is said over connections of ours is read, by vendor. */
export const SPOKEN: Readonly<Partial<Record<Vendor, Adapter['normalise']>>> = {
  twitch: normaliseTwitch,
  youtube: normaliseYoutubeChat,
  trovo: normaliseTrovoChat,
  streamelements: normaliseTips,
  discord: normaliseDiscord,
  spotify: normaliseSpotify,
};
