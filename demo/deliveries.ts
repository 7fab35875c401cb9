import { randomBytes, randomUUID } from 'node:crypto';
import type { Beat, Viewer } from './story';
import { createVendorRequests, type DemoCredentials, type DemoRequest, kickUser, now } from './vendor-requests';

/**
 * Converts beats to the requests of vendors and bots. One beat can be several requests (an order is created, then
 * paid).
 */
export function createDeliveries(credentials: DemoCredentials): (beat: Beat) => DemoRequest[] {
  const { kick, trovo, shopify, youtube, api, emit } = createVendorRequests(credentials);
  let ids = 0;
  // Eighteen digits, as the vendor's; the counter distinguishes objects of one millisecond.
  const shopifyId = () => `82${Date.now()}${String((ids += 1) % 1000).padStart(3, '0')}`;

  return function deliveries(beat) {
    switch (beat.kind) {
      case 'chat': {
        // Every second viewer of a platform has a badge.
        const badges =
          Math.floor(beat.viewer.id / 4) % 2 === 0 ? [{ text: 'Subscriber', type: 'subscriber', count: 3 }] : [];
        const identity = { username_color: '#75FD46', badges };
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
        const { is_live, title, started_at = now() } = beat;
        return [kick('livestream.status.updated', { is_live, title, started_at, ended_at: is_live ? null : now() })];
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
        const id = shopifyId();
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
        const id = shopifyId();
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

const twitchUser = ({ id, name }: Viewer) => ({
  user_id: String(id),
  user_login: name.toLowerCase(),
  user_name: name,
});

const inMonths = (months: number) => new Date(Date.now() + months * 30 * 86_400_000).toISOString();
const decimal = (cents: number) => `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
