import { TOPICS } from '../domain/records';
import type { Settings } from '../access/settings';
import { hmacMatches, secretList } from './signatures';
import { eventTime } from './times';
import * as webhook from './webhook';
import type { Delivery, Outcome, WebhookVendor } from './webhook';

/** Trovo's webhooks (spec doc3 §4.2): receive-only, HMAC-SHA256 of the body in hex. */
export function createTrovoWebhook(settings: Settings['webhooks']): WebhookVendor {
  const secrets = secretList(settings.trovo_secret);
  return {
    vendor: 'trovo',
    path: '/v1/webhooks/trovo',
    headers: ['x-trovo-event', 'x-trovo-event-type', 'x-trovo-message-id'],
    async verify({ headers, raw_body }) {
      if (secrets.length === 0) {
        if (settings.require_signatures) throw webhook.unauthorized();
        return;
      }
      const signature = webhook.headerOf(headers, 'x-trovo-signature');
      if (signature === null) throw webhook.unauthorized('Missing webhook signature');
      const hex = signature.trim().replace(/^sha256=/i, '');
      if (!hmacMatches('sha256', 'hex', secrets, raw_body, hex)) throw webhook.unauthorized();
    },
    normalise: normaliseTrovo,
  };
}

const TYPES: Readonly<Record<string, string>> = {
  'channel.subscribe': 'trovo:subscribe',
  'channel.spell': 'trovo:spell',
};

/**
 * Trovo documents no webhooks, so the members are looked for where its chat socket and similar services put them; the first that is there counts.
 *
 * | fact | member | below |
 * |---|---|---|
 * | event type | `type`, `event`, `event_type`, `event_name` (headers `X-Trovo-Event`, `X-Trovo-Event-Type`) | root, `subscription`, `data`, `event`, `payload` |
 * | channel id | `channel_id`; `id` of `channel` and `channel_info` | root, `channel_info`, `channel`, and those below `data`, `event`, `payload` |
 * | person | `sender_id`, `uid`, `user_id`; `id` of `user`, `sender`, `subscriber` | the same |
 * | id | `message_id`, `event_id`, `eid`, `id` (header `X-Trovo-Message-Id`) | root, then `data`, `event`, `payload` |
 * | time | `created_at`, `send_time`, `occurred_at`, `timestamp`, `time` | the same |
 *
 * Without an id the same bytes count as the same event: deliveries are repeated, and a sender that means two equal events tells them apart by id or time.
 */
export function normaliseTrovo(delivery: Delivery): Outcome {
  const body = webhook.readJsonBody(delivery);
  if (!body.ok) return body.outcome;
  if (body.value === null || typeof body.value !== 'object' || Array.isArray(body.value)) {
    return webhook.park('bad_payload', 'not an object');
  }
  const layers = [body.value, ...['data', 'event', 'payload'].map((name) => webhook.member(body.value, name))];
  const named = [
    ...texts([...layers, webhook.member(body.value, 'subscription')], ['type', 'event', 'event_type', 'event_name']),
    ...['x-trovo-event', 'x-trovo-event-type'].map((name) => delivery.header(name)?.trim()),
  ].filter((name) => name !== undefined);
  if (named.length === 0) return webhook.park('no_event_type', 'no member names the event type');
  // a wrapper may carry a `type` of its own, so a name that is mapped goes before the first one
  const incoming = named.find((name) => Object.hasOwn(TYPES, name));
  if (incoming === undefined) return webhook.skip('unmapped_type', named[0]!.slice(0, 100));
  const channels = layers.flatMap((layer) => [webhook.member(layer, 'channel_info'), webhook.member(layer, 'channel')]);
  const channel_id = firstText([...layers, ...channels], ['channel_id']) ?? firstText(channels, ['id']);
  if (channel_id === null) return webhook.park('bad_payload', 'channel_id is missing');
  const people = layers.flatMap((layer) => ['user', 'sender', 'subscriber'].map((name) => webhook.member(layer, name)));
  const person = firstText([...layers, ...people], ['sender_id', 'uid', 'user_id']) ?? firstText(people, ['id']);
  const id = delivery.header('x-trovo-message-id') ?? firstText(layers, ['message_id', 'event_id', 'eid', 'id']);
  const times = layers.flatMap((layer) =>
    ['created_at', 'send_time', 'occurred_at', 'timestamp', 'time'].map((name) => webhook.member(layer, name)),
  );
  return webhook.ok({
    owner: { kind: 'channel', platform: 'trovo', channel_id },
    topic: TOPICS.platform_events,
    type: TYPES[incoming]!,
    platform: 'trovo',
    external_id: id === null ? webhook.contentId('trovo', delivery) : webhook.externalId('trovo', id.trim()),
    occurred_at: eventTime(delivery.received_at, ...times),
    subject: webhook.subjectOf('trovo', person),
    raw: body.raw,
  });
}

function texts(layers: readonly unknown[], names: readonly string[]): string[] {
  return layers
    .flatMap((layer) => names.map((name) => webhook.idText(webhook.member(layer, name))))
    .filter((text) => text !== null);
}

function firstText(layers: readonly unknown[], names: readonly string[]): string | null {
  return texts(layers, names)[0] ?? null;
}
