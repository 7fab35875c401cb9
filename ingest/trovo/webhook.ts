import { TOPICS } from '../../domain/common/records';
import type { Settings } from '../../kernel/settings/settings';
import { hmacMatches, secretList } from '../runtime/webhook/signatures';
import { eventTime } from '../runtime/parse/times';
import * as webhook from '../runtime/webhook/webhook';
import { type Delivery, type Identity, idText, type Outcome, type WebhookVendor } from '../runtime/webhook/webhook';

/** Trovo's webhooks (spec doc3 §4.2): receive-only, HMAC-SHA256 of the body in hex. */
export function createTrovoWebhook(settings: Settings['webhooks']): WebhookVendor {
  const secrets = secretList(settings.trovo_secret);
  return {
    vendor: 'trovo',
    path: '/v1/webhooks/trovo',
    headers: ['x-trovo-event', 'x-trovo-event-type', 'x-trovo-message-id'],
    signatures: ['x-trovo-signature'],
    async verify({ headers, raw_body }) {
      if (secrets.length === 0) {
        if (settings.require_signatures) throw webhook.unauthorized();
        return webhook.BODY_ALONE;
      }
      const signature = webhook.headerOf(headers, 'x-trovo-signature');
      if (signature === null) throw webhook.unauthorized('Missing webhook signature');
      const hex = signature.trim().replace(/^sha256=/i, '');
      if (!hmacMatches('sha256', 'hex', secrets, raw_body, hex)) throw webhook.unauthorized();
      return webhook.BODY_ALONE;
    },
    normalise: normaliseTrovo,
  };
}

const TYPES: Readonly<Record<string, string>> = {
  'channel.subscribe': 'trovo:subscribe',
  'channel.spell': 'trovo:spell',
};

/**
 * Reads Trovo's undocumented webhooks: searches each member where Trovo's chat socket and similar services put it; the
 * first match counts.
 *
 * | fact | member | below |
 * |---|---|---|
 * | event type | `type`, `event`, `event_type`, `event_name` (headers `X-Trovo-Event`, `X-Trovo-Event-Type`) | root, `subscription`, `data`, `event`, `payload` |
 * | channel id | `channel_id`; `id` of `channel` and `channel_info` | root, `channel_info`, `channel`, and those below `data`, `event`, `payload` |
 * | person | `sender_id`, `uid`, `user_id`; `id` of `user`, `sender`, `subscriber` | the same |
 * | id | `message_id`, `event_id`, `eid`, `id`, else header `X-Trovo-Message-Id` | root, then `data`, `event`, `payload` |
 * | time | `created_at`, `send_time`, `occurred_at`, `timestamp`, `time` | the same |
 *
 * No signature covers the header. Without an id in the body equal bytes count as one event: deliveries are repeated,
 * and a sender of two equal events distinguishes them by id or time. Spec rulings, "event identity of webhooks".
 */
export function normaliseTrovo(delivery: Delivery): Outcome {
  const body = webhook.readJsonBody(delivery);
  if (!body.ok) return body.outcome;
  if (body.value === null || typeof body.value !== 'object' || Array.isArray(body.value)) {
    return webhook.park('bad_payload', 'not an object');
  }
  const layers = objectsAt([body.value], [null, 'data', 'event', 'payload']);
  const incoming = eventName(delivery, [...layers, ...objectsAt([body.value], ['subscription'])]);
  if (incoming === null) return webhook.park('no_event_type', 'no member names the event type');
  const type = mappedType(incoming);
  // Trovo documents no webhooks, so any other type is unknown.
  if (type === undefined) return webhook.unmapped(incoming, false);
  const channels = objectsAt(layers, ['channel_info', 'channel']);
  const channel_id = firstText([...layers, ...channels], ['channel_id']) ?? firstText(channels, ['id']);
  if (channel_id === null) return webhook.park('bad_payload', 'channel_id is missing');
  const people = objectsAt(layers, ['user', 'sender', 'subscriber']);
  const person = firstText([...layers, ...people], ['sender_id', 'uid', 'user_id']) ?? firstText(people, ['id']);
  const times = layers.flatMap((layer) => TIME_NAMES.map((name) => ownMember(layer, name)));
  return webhook.ok({
    owner: { kind: 'channel', platform: 'trovo', channel_id },
    topic: TOPICS.platform_events,
    type,
    platform: 'trovo',
    ...trovoIdentity(delivery, firstText(layers, ['message_id', 'event_id', 'eid', 'id'])),
    occurred_at: eventTime(delivery.received_at, ...times),
    subject: webhook.subjectOf('trovo', person),
    raw: body.raw,
  });
}

function trovoIdentity(delivery: Delivery, signed: string | null): Identity {
  const message_id = delivery.header('x-trovo-message-id')?.trim() ?? null;
  if (signed !== null) return webhook.signedIdentity('trovo', signed, message_id);
  const external_id =
    message_id === null ? webhook.contentId('trovo', delivery) : webhook.externalId('trovo', message_id);
  return { external_id, same_raw: 'once' };
}

type Layer = Readonly<Record<string, unknown>>;

const TYPE_NAMES = ['type', 'event', 'event_type', 'event_name'];
const TYPE_HEADERS = ['x-trovo-event', 'x-trovo-event-type'];
const TIME_NAMES = ['created_at', 'send_time', 'occurred_at', 'timestamp', 'time'];

const mappedType = (name: string) => (Object.hasOwn(TYPES, name) ? TYPES[name] : undefined);
const ownMember = (layer: Layer, name: string) => (Object.hasOwn(layer, name) ? layer[name] : undefined);

/** Returns a mapped name, else the first one, because a wrapper may have a `type` of its own. Null without any. */
function eventName(delivery: Delivery, layers: readonly Layer[]): string | null {
  let first: string | null = null;
  for (const layer of layers) {
    for (const name of TYPE_NAMES) {
      const text = idText(ownMember(layer, name));
      if (text !== null && mappedType(text) !== undefined) return text;
      first ??= text;
    }
  }
  for (const name of TYPE_HEADERS) {
    const text = delivery.header(name)?.trim() ?? null;
    if (text !== null && mappedType(text) !== undefined) return text;
    first ??= text;
  }
  return first;
}

/** Returns the objects under these names in each of `values`, in that order; null means the value itself. */
function objectsAt(values: readonly unknown[], names: readonly (string | null)[]): Layer[] {
  const found: Layer[] = [];
  for (const value of values) {
    for (const name of names) {
      const at = name === null ? value : ownMember(value as Layer, name);
      if (at !== null && typeof at === 'object' && !Array.isArray(at)) found.push(at as Layer);
    }
  }
  return found;
}

/** Returns the first text or number under one of the names; layer by layer, name by name. */
function firstText(layers: readonly Layer[], names: readonly string[]): string | null {
  for (const layer of layers) {
    for (const name of names) {
      const text = idText(ownMember(layer, name));
      if (text !== null) return text;
    }
  }
  return null;
}
