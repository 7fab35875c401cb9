import type { Vendor } from '../../../domain/common/vendors';
import { normaliseDiscord } from '../../discord/members';
import { normaliseSpotify } from '../../spotify/adapter';
import { normaliseTips } from '../../streamelements/tips';
import { normaliseTrovoChat } from '../../trovo/chat';
import { normaliseTwitch } from '../../twitch/normalise';
import { normaliseYoutubeChat } from '../../youtube/chat';
import type { Adapter } from './adapter';

/** Normalisers of messages that come over our connections, by vendor. */
export const CONNECTION_NORMALISERS: Readonly<Partial<Record<Vendor, Adapter['normalise']>>> = {
  twitch: normaliseTwitch,
  youtube: normaliseYoutubeChat,
  trovo: normaliseTrovoChat,
  streamelements: normaliseTips,
  discord: normaliseDiscord,
  spotify: normaliseSpotify,
};
