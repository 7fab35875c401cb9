import { ApiError } from '../../kernel/errors';
import type { ChatDraft } from '../../domain/chat/chat-messages';
import { broadcastIdOf } from '../../domain/history/channel-status';
import { TOPICS } from '../../domain/common/records';
import type { Settings } from '../../kernel/settings/settings';
import { hmacMatches, isFresh, publicKeys, rsaMatches, secretList } from '../runtime/webhook/signatures';
import { kickBan, kickMessage } from './chat';
import { chatRecord, people } from '../runtime/parse/chat-record';
import { eventTime, readInstant } from '../runtime/parse/times';
import * as webhook from '../runtime/webhook/webhook';
import type { Delivery, Identity, Outcome, WebhookRequest, WebhookVendor } from '../runtime/webhook/webhook';

/**
 * Kick's webhooks (spec doc3 §4.2). RSA over `<message id>.<timestamp>.<body>` is preferred; the legacy HMAC counts
 * only where no RSA signature was sent or no key is configured, so that nobody can downgrade a delivery. A mismatch or
 * a stale timestamp, where the spec names no status, is 401.
 */
export function createKickWebhook(settings: Settings['webhooks']): WebhookVendor {
  const keys = publicKeys(settings.kick_public_key, 'webhooks.kick_public_key');
  const secrets = secretList(settings.kick_secret);
  return {
    vendor: 'kick',
    path: '/v1/webhooks/kick',
    headers: [
      'kick-event-message-id',
      'kick-event-message-timestamp',
      'kick-event-type',
      'kick-event-version',
      'kick-event-subscription-id',
    ],
    signatures: ['kick-event-signature', 'x-kick-signature'],
    async verify(request, _connections, now) {
      const { headers, raw_body } = request;
      const signature = webhook.headerOf(headers, 'kick-event-signature');
      const legacy = webhook.headerOf(headers, 'x-kick-signature');
      if (signature !== null && keys.length > 0) {
        verifyRsa(request, signature, now);
        return { id_signed: true };
      }
      if (legacy !== null && secrets.length > 0) {
        const hex = legacy.trim().replace(/^sha256=/i, '');
        if (!hmacMatches('sha256', 'hex', secrets, raw_body, hex)) throw webhook.unauthorized();
        return webhook.BODY_ALONE;
      }
      const needed = signature !== null ? keys.length : legacy !== null ? secrets.length : keys.length + secrets.length;
      if (needed > 0) throw webhook.unauthorized('Missing webhook signature');
      if (settings.require_signatures) throw new ApiError('FORBIDDEN', 'Webhook verification is not configured');
      return webhook.BODY_ALONE;
    },
    normalise: normaliseKick,
  };

  function verifyRsa({ headers, raw_body }: WebhookRequest, signature: string, now: number): void {
    const message_id = webhook.headerOf(headers, 'kick-event-message-id');
    const timestamp = webhook.headerOf(headers, 'kick-event-message-timestamp');
    if (message_id === null || timestamp === null) throw webhook.unauthorized();
    // headers reach us as latin1: the same bytes go back into what was signed
    const signed = Buffer.concat([Buffer.from(`${message_id}.${timestamp}.`, 'latin1'), raw_body]);
    if (!rsaMatches(keys, signed, signature)) throw webhook.unauthorized();
    if (!isFresh(timestamp, now)) throw webhook.unauthorized('Webhook timestamp is outside the tolerance');
  }
}

interface Reading {
  /** Suffix of `kick:`; null for records of the chat. */
  name: string | null;
  chat?: (channel_id: string, payload: unknown, sent_at: string | null) => ChatDraft;
  /** The person whom the event is about, then all other persons in it. */
  people: readonly unknown[];
  /** Candidates for the time of the event, best first. */
  times: readonly unknown[];
  /** Begin of the stream, which identifies its going live or offline from every source. */
  started_at?: unknown;
  /** True for the stream's going live or offline. */
  is_turn?: true;
}

/** Documented types that are not stored. */
const NOT_KEPT: ReadonlySet<string> = new Set([
  'channel.reward.redemption.updated',
  'livestream.metadata.updated',
  'kicks.gifted',
]);
/** The only version that Kick documents, of every type. */
const VERSION = '1';

/**
 * Converts a payload of Kick to a record. Documented types beyond the spec's mapping are skipped;
 * `channel.subscription.renewal` has the shape and meaning of a subscription, and Kick really sends
 * `livestream.status.updated` with `is_live` where the spec names `livestream.started` and `.ended`.
 */
export function normaliseKick(delivery: Delivery): Outcome {
  const body = webhook.readJsonBody(delivery);
  if (!body.ok) return body.outcome;
  const type = delivery.header('kick-event-type')?.trim() ?? webhook.idText(webhook.member(body.value, 'event'));
  if (!type) return webhook.park('no_event_type', 'the header Kick-Event-Type is missing');
  const reading = readKick(type, body.value);
  if (reading === null) return ofChannel(webhook.unmapped(type, NOT_KEPT.has(type)), delivery, body.value);
  const version = delivery.header('kick-event-version')?.trim() ?? VERSION;
  if (version !== VERSION)
    return ofChannel(webhook.park('unknown_version', `${type} ${version}`.slice(0, 100)), delivery, body.value);
  if (typeof reading === 'string') return webhook.park('bad_payload', reading);
  const channel_id = channelOf(body.value);
  if (channel_id === null) return webhook.park('bad_payload', 'broadcaster.user_id is missing');
  const sent_at = delivery.header('kick-event-message-timestamp');
  const occurred_at = eventTime(delivery.received_at, ...reading.times, sent_at);
  // Only a signed message time is the platform's own.
  const reported_at = (delivery.id_signed ? readInstant(sent_at) : null) ?? occurred_at;
  const rest = {
    owner: { kind: 'channel', platform: 'kick', channel_id, subscription_type: type, ...subscriptionOf(delivery) },
    ...kickIdentity(delivery, type, body.value, streamId(channel_id, reading)),
    occurred_at,
  } as const;
  if (reading.chat) return webhook.ok(chatRecord(reading.chat(channel_id, body.value, sent_at), body.raw, rest));
  return webhook.ok({
    ...rest,
    topic: TOPICS.platform_events,
    type: `kick:${reading.name}`,
    platform: 'kick',
    ...people('kick', reading.people),
    raw: body.raw,
    ...(reading.is_turn && { reported_at }),
  });
}

/** Adds the channel to a parked delivery that has one: Kick signs deliveries to other apps with the same key. */
function ofChannel(outcome: Outcome, delivery: Delivery, payload: unknown): Outcome {
  const channel_id = channelOf(payload);
  if (outcome.kind !== 'park' || channel_id === null) return outcome;
  return { ...outcome, owner: { kind: 'channel', platform: 'kick', channel_id, ...subscriptionOf(delivery) } };
}

/**
 * Id of a channel's going live or offline, equal for this webhook and for a poll of the channel, so that it counts
 * once. Null when the begin of the stream is unknown.
 */
function streamId(channel_id: string, { name, started_at }: Reading): string | null {
  const broadcast_id = typeof started_at === 'string' ? broadcastIdOf(channel_id, started_at) : null;
  return name === null || broadcast_id === null ? null : `${name}:${broadcast_id}`;
}

/**
 * Channel of an event. Kick's events name the broadcaster; the shape of legacy deliveries is not documented, so the
 * plain names count too.
 */
function channelOf(payload: unknown): string | null {
  const paths = [['broadcaster', 'user_id'], ['broadcaster_user_id'], ['channel_id']];
  return paths.reduce<string | null>((found, path) => found ?? webhook.idText(webhook.member(payload, ...path)), null);
}

/** Kick signs for every app with one key, while the legacy secret is ours alone. */
const subscriptionOf = (delivery: Delivery) =>
  delivery.id_signed ? { subscription_id: webhook.keptId(delivery.header('kick-event-subscription-id')) } : {};

/**
 * A chat message has an id of its own, equal for every app that Kick delivers it to. Everything else uses the message
 * id that Kick calls its idempotent key, which its RSA signature covers; the legacy HMAC covers the body alone, so that
 * the same bytes count once. Spec rulings, "event identity of webhooks".
 */
function kickIdentity(delivery: Delivery, type: string, payload: unknown, stream_id: string | null): Identity {
  const message_id = delivery.header('kick-event-message-id')?.trim() ?? null;
  if (stream_id !== null) return webhook.signedIdentity('kick', stream_id, message_id);
  const chat_id = type === 'chat.message.sent' ? webhook.idText(webhook.member(payload, 'message_id')) : null;
  if (chat_id !== null) return webhook.signedIdentity('kick', chat_id, message_id);
  if (delivery.id_signed && message_id !== null) return { external_id: webhook.externalId('kick', message_id) };
  const external_id =
    message_id === null
      ? webhook.contentId('kick', delivery, `${type}:${delivery.header('kick-event-message-timestamp') ?? ''}`)
      : webhook.externalId('kick', message_id);
  return { external_id, same_raw: 'once' };
}

/** Reads a payload; null for an unknown type, a text for a fault of the payload. */
function readKick(type: string, payload: unknown): Reading | string | null {
  const at = (...path: string[]) => webhook.member(payload, ...path);
  const event = (name: string, about: readonly unknown[], ...times: unknown[]): Reading => ({
    name,
    people: about,
    times,
  });
  const turn = (name: string, ...times: unknown[]): Reading => ({
    ...event(name, [], ...times),
    started_at: at('started_at'),
    is_turn: true,
  });
  switch (type) {
    case 'channel.followed':
      return event('follower', [at('follower', 'user_id')], at('created_at'));
    case 'channel.subscription.new':
    case 'channel.subscription.renewal':
      return event('subscribe', [at('subscriber', 'user_id')], at('created_at'));
    case 'channel.subscription.gifts': {
      const giftees = at('giftees');
      const ids = (Array.isArray(giftees) ? giftees : []).map((giftee) => webhook.member(giftee, 'user_id'));
      return event('gift', [at('gifter', 'user_id'), ...ids], at('created_at'));
    }
    case 'livestream.started':
      return turn('stream_online', at('started_at'), at('created_at'));
    case 'livestream.ended':
      return turn('stream_offline', at('ended_at'), at('created_at'));
    case 'livestream.status.updated': {
      const is_live = at('is_live');
      if (typeof is_live !== 'boolean') return 'is_live is missing';
      return is_live ? turn('stream_online', at('started_at')) : turn('stream_offline', at('ended_at'));
    }
    case 'chat.message.sent':
      return { name: null, chat: kickMessage, people: [], times: [at('created_at')] };
    case 'moderation.banned':
      return { name: null, chat: kickBan, people: [], times: [at('metadata', 'created_at'), at('created_at')] };
    default:
      return null;
  }
}
