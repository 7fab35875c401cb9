import { createHmac, createPrivateKey, randomBytes, randomUUID, sign } from 'node:crypto';
import type { Viewer } from './story';

/** Part of `dev-credentials.json` that the demo reads. */
export interface DemoCredentials {
  base_url: string;
  user_api_key: string;
  connections: {
    youtube: { platform_channel_id: string };
    kick: { platform_channel_id: string };
    trovo: { platform_channel_id: string };
    shopify: { shop_domain: string };
  };
  webhook_signing: {
    youtube_secret: string;
    kick_private_key: string;
    kick_secret: string;
    trovo_secret: string;
    shopify_secret: string;
  };
}

/** Request to the front door. */
export interface DemoRequest {
  path: string;
  headers: Record<string, string>;
  body: string;
}

export type VendorRequests = ReturnType<typeof createVendorRequests>;

export const now = () => new Date().toISOString();

/** Creates requests of each vendor and of a bot, signed with the development secrets. */
export function createVendorRequests(credentials: DemoCredentials) {
  const { connections, webhook_signing: secrets, user_api_key } = credentials;
  const kick_signer = kickSigner(secrets);
  const kick = (type: string, payload: object) =>
    kickRequest(kick_signer, type, { broadcaster: broadcaster(), ...payload }, connections.kick.platform_channel_id);

  function broadcaster() {
    return kickUser({ id: Number(connections.kick.platform_channel_id), name: 'lumio_demo' });
  }

  function api(path: string, payload: object): DemoRequest {
    const headers = {
      authorization: `Bearer ${user_api_key}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    };
    return { path, headers, body: JSON.stringify(payload) };
  }

  function trovo(payload: object): DemoRequest {
    const channel_id = connections.trovo.platform_channel_id;
    const body = JSON.stringify({
      message_id: `${Date.now()}_${randomBytes(6).toString('hex')}`,
      channel_id,
      created_at: now(),
      ...payload,
    });
    const signature = createHmac('sha256', secrets.trovo_secret).update(body).digest('hex');
    return {
      path: '/v1/webhooks/trovo',
      headers: { 'content-type': 'application/json', 'x-trovo-signature': signature },
      body,
    };
  }

  /** Shopify's ids have eighteen digits, too many for a number, so they are inserted as text. */
  function shopify(topic: string, id: string, payload: object): DemoRequest {
    const body = JSON.stringify({ id: '@id', ...payload }).replace('"@id"', id);
    const headers = {
      'content-type': 'application/json',
      'x-shopify-topic': topic,
      'x-shopify-shop-domain': connections.shopify.shop_domain,
      'x-shopify-event-id': randomUUID(),
      'x-shopify-webhook-id': randomUUID(),
      'x-shopify-triggered-at': now(),
      'x-shopify-hmac-sha256': createHmac('sha256', secrets.shopify_secret).update(body).digest('base64'),
    };
    return { path: '/v1/webhooks/shopify', headers, body };
  }

  function youtube(video_id: string, title: string): DemoRequest {
    const channel_id = connections.youtube.platform_channel_id;
    const escaped = title.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
    const body =
      `<?xml version='1.0' encoding='UTF-8'?>\n<feed xmlns:yt="http://www.youtube.com/xml/schemas/2015" xmlns="http://www.w3.org/2005/Atom">` +
      `<title>YouTube video feed</title><updated>${now()}</updated><entry><id>yt:video:${video_id}</id><yt:videoId>${video_id}</yt:videoId>` +
      `<yt:channelId>${channel_id}</yt:channelId><title>${escaped}</title><published>${now()}</published><updated>${now()}</updated></entry></feed>`;
    const signature = `sha1=${createHmac('sha1', secrets.youtube_secret).update(body).digest('hex')}`;
    return {
      path: '/v1/webhooks/youtube',
      headers: { 'content-type': 'application/atom+xml', 'x-hub-signature': signature },
      body,
    };
  }

  const emit = (event_type: string, raw: object) =>
    api('/v1/events/emit', {
      event_type,
      platform: 'twitch',
      external_id: `twitch:${randomUUID()}`,
      raw,
      created_at: now(),
    });

  return { kick, trovo, shopify, youtube, api, emit };
}

export function kickUser({ id, name }: Viewer) {
  return {
    is_anonymous: false,
    user_id: id,
    username: name,
    is_verified: false,
    profile_picture: '',
    channel_slug: name.toLowerCase(),
    identity: null,
  };
}

type KickSigner = (body: string, message_id: string, timestamp: string) => Record<string, string>;

/** Signs with the private key; uses the legacy signature where a configured public key's private half is unknown. */
function kickSigner({ kick_private_key, kick_secret }: DemoCredentials['webhook_signing']): KickSigner {
  if (kick_private_key === '') {
    return (body) => ({ 'x-kick-signature': createHmac('sha256', kick_secret).update(body).digest('hex') });
  }
  const key = createPrivateKey(kick_private_key);
  return (body, message_id, timestamp) => ({
    'kick-event-signature': sign('sha256', Buffer.from(`${message_id}.${timestamp}.${body}`), key).toString('base64'),
  });
}

/** Id of a channel's subscription to a type at the demo's stand-in for Kick. */
export const kickSubscription = (channel_id: number | string, type: string): string => `demo-${channel_id}-${type}`;

function kickRequest(signer: KickSigner, type: string, payload: object, channel_id: string): DemoRequest {
  const body = JSON.stringify(payload);
  const message_id = ulid();
  const timestamp = new Date().toISOString();
  const headers = {
    'content-type': 'application/json',
    'kick-event-message-id': message_id,
    'kick-event-subscription-id': kickSubscription(channel_id, type),
    'kick-event-message-timestamp': timestamp,
    'kick-event-type': type,
    'kick-event-version': '1',
    ...signer(body, message_id, timestamp),
  };
  return { path: '/v1/webhooks/kick', headers, body };
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Time, then random digits, like Kick's message ids. */
function ulid(): string {
  let time = '';
  for (let rest = Date.now(), digit = 0; digit < 10; digit += 1, rest = Math.floor(rest / 32))
    time = CROCKFORD[rest % 32]! + time;
  return time + [...randomBytes(16)].map((byte) => CROCKFORD[byte % 32]).join('');
}
