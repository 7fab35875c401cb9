import { createHmac, createPrivateKey, randomBytes, randomUUID, sign } from 'node:crypto';
import type { Beat, Viewer } from './story';

/** What the demo needs of `dev-credentials.json`. */
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

/** One request to the front door. */
export interface DemoRequest {
  path: string;
  headers: Record<string, string>;
  body: string;
}

/**
 * Turns beats into the requests that vendors and bots would send, signed with the development secrets. One beat can be
 * several requests (an order is made, then paid).
 */
export function createDeliveries(credentials: DemoCredentials): (beat: Beat) => DemoRequest[] {
  const { connections, webhook_signing: secrets, user_api_key } = credentials;
  const kick_signer = kickSigner(secrets);
  const kick = (type: string, payload: object) =>
    kickRequest(kick_signer, type, { broadcaster: broadcaster(), ...payload });
  const now = () => new Date().toISOString();
  const inMonths = (months: number) => new Date(Date.now() + months * 30 * 86_400_000).toISOString();

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

  /** Shopify's ids have eighteen digits: they go into the text as they are. */
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

  const twitchUser = ({ id, name }: Viewer) => ({
    user_id: String(id),
    user_login: name.toLowerCase(),
    user_name: name,
  });
  const emit = (event_type: string, raw: object) =>
    api('/v1/events/emit', {
      event_type,
      platform: 'twitch',
      external_id: `twitch:${randomUUID()}`,
      raw,
      created_at: now(),
    });

  return function deliveries(beat) {
    switch (beat.kind) {
      case 'chat': {
        const identity = { username_color: '#75FD46', badges: [] };
        const sender = { ...kickUser(beat.viewer), identity };
        return [
          kick('chat.message.sent', {
            message_id: randomUUID(),
            replies_to: null,
            sender,
            content: beat.content,
            emotes: null,
            created_at: now(),
          }),
        ];
      }
      case 'follow':
        return [kick('channel.followed', { follower: kickUser(beat.viewer) })];
      case 'subscribe': {
        const type = beat.months === 1 ? 'channel.subscription.new' : 'channel.subscription.renewal';
        return [
          kick(type, {
            subscriber: kickUser(beat.viewer),
            duration: beat.months,
            created_at: now(),
            expires_at: inMonths(1),
          }),
        ];
      }
      case 'gift': {
        const giftees = beat.giftees.map(kickUser);
        return [
          kick('channel.subscription.gifts', {
            gifter: kickUser(beat.viewer),
            giftees,
            created_at: now(),
            expires_at: inMonths(1),
          }),
        ];
      }
      case 'ban': {
        const metadata = { reason: beat.reason, created_at: now(), expires_at: null };
        return [
          kick('moderation.banned', {
            moderator: kickUser(beat.moderator),
            banned_user: kickUser(beat.viewer),
            metadata,
          }),
        ];
      }
      case 'stream': {
        const { is_live, title } = beat;
        return [
          kick('livestream.status.updated', { is_live, title, started_at: now(), ended_at: is_live ? null : now() }),
        ];
      }
      case 'cheer':
        return [
          emit('twitch:cheer', {
            ...twitchUser(beat.viewer),
            is_anonymous: false,
            bits: beat.bits,
            message: beat.message,
          }),
        ];
      case 'raid': {
        const { id, name } = beat.viewer;
        const from = {
          from_broadcaster_user_id: String(id),
          from_broadcaster_user_login: name.toLowerCase(),
          from_broadcaster_user_name: name,
        };
        return [emit('twitch:raid', { ...from, viewers: beat.viewers })];
      }
      case 'spell': {
        const { gift, num, gift_value, viewer } = beat;
        const content = JSON.stringify({ gift, num, gift_value, value_type: 'Elixir' });
        return [trovo({ type: 'channel.spell', sender_id: viewer.id, nick_name: viewer.name, content })];
      }
      case 'trovo_subscribe':
        return [
          trovo({
            type: 'channel.subscribe',
            sender_id: beat.viewer.id,
            nick_name: beat.viewer.name,
            sub_tier: String(beat.tier),
          }),
        ];
      case 'order': {
        const id = `8209${Date.now()}0`;
        const total = beat.items.reduce((sum, item) => sum + item.cents * item.quantity, 0);
        const order = {
          admin_graphql_api_id: `gid://shopify/Order/${id}`,
          name: `#${beat.number}`,
          created_at: now(),
          updated_at: now(),
          currency: 'EUR',
          total_price: decimal(total),
          test: false,
          customer: { id: beat.viewer.id, first_name: beat.viewer.name },
          line_items: beat.items.map(({ title, quantity, cents }) => ({ title, quantity, price: decimal(cents) })),
        };
        return [
          shopify('orders/create', id, { ...order, financial_status: 'pending' }),
          shopify('orders/paid', id, { ...order, financial_status: 'paid' }),
        ];
      }
      case 'product': {
        const id = `7880${Date.now()}0`;
        const variants = [{ title: 'Default', price: decimal(beat.cents) }];
        return [
          shopify('products/create', id, {
            title: beat.title,
            vendor: 'Lumio Demo',
            status: 'active',
            created_at: now(),
            updated_at: now(),
            variants,
          }),
        ];
      }
      case 'video':
        return [youtube(randomBytes(8).toString('base64url'), beat.title)];
      case 'test':
        return [
          api('/v1/events/test', {
            event_type: 'twitch:follower',
            platform: 'twitch',
            raw: { user_id: '1', user_name: 'Test follower' },
          }),
        ];
    }
  };
}

function kickUser({ id, name }: Viewer) {
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

/**
 * Where somebody configured a public key of their own, its private half is not here: then the legacy signature has to
 * do.
 */
function kickSigner({ kick_private_key, kick_secret }: DemoCredentials['webhook_signing']): KickSigner {
  if (kick_private_key === '') {
    return (body) => ({ 'x-kick-signature': createHmac('sha256', kick_secret).update(body).digest('hex') });
  }
  const key = createPrivateKey(kick_private_key);
  return (body, message_id, timestamp) => ({
    'kick-event-signature': sign('sha256', Buffer.from(`${message_id}.${timestamp}.${body}`), key).toString('base64'),
  });
}

function kickRequest(signer: KickSigner, type: string, payload: object): DemoRequest {
  const body = JSON.stringify(payload);
  const message_id = ulid();
  const timestamp = new Date().toISOString();
  const headers = {
    'content-type': 'application/json',
    'kick-event-message-id': message_id,
    'kick-event-message-timestamp': timestamp,
    'kick-event-type': type,
    'kick-event-version': '1',
    ...signer(body, message_id, timestamp),
  };
  return { path: '/v1/webhooks/kick', headers, body };
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Time first, then chance, as Kick's message ids are. */
function ulid(): string {
  let time = '';
  for (let rest = Date.now(), digit = 0; digit < 10; digit += 1, rest = Math.floor(rest / 32))
    time = CROCKFORD[rest % 32]! + time;
  return time + [...randomBytes(16)].map((byte) => CROCKFORD[byte % 32]).join('');
}

const decimal = (cents: number) => `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
