import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { TOPICS } from '../../domain/common/records';
import { ApiError } from '../../kernel/errors';
import type { Settings } from '../../kernel/settings/settings';
import { hmacMatches, prefixedSignature, secretList } from '../runtime/webhook/signatures';
import { eventTime } from '../runtime/parse/times';
import * as webhook from '../runtime/webhook/webhook';
import type {
  Delivery,
  DraftRecord,
  Outcome,
  WebhookAnswer,
  WebhookRequest,
  WebhookVendor,
} from '../runtime/webhook/webhook';

const PATH = '/v1/webhooks/youtube';

/** Answers the hub's verification of a subscription: its challenge is echoed, nothing is refused. Spec doc3 §4.2. */
export async function answerYoutubeChallenge(request: WebhookRequest): Promise<WebhookAnswer> {
  // A denied subscription has no challenge: the hub only reports it.
  const denied = request.query['hub.mode'] === 'denied';
  const challenge = request.query['hub.challenge'] ?? (denied ? 'denied' : undefined);
  if (typeof challenge !== 'string' || challenge === '') throw new ApiError('BAD_REQUEST', 'Missing hub.challenge');
  // The caller chooses the text: it must never be interpreted as anything but text.
  return {
    status: 200,
    body: challenge,
    content_type: 'text/plain; charset=utf-8',
    headers: { 'X-Content-Type-Options': 'nosniff' },
  };
}

export const YOUTUBE_CHALLENGE = {
  method: 'GET',
  path: PATH,
  described: true,
  handle: answerYoutubeChallenge,
} as const;

/**
 * YouTube's push notifications (spec doc3 §4.2). `X-Hub-Signature-256` takes precedence over `X-Hub-Signature`, whose
 * prefix names the method: hubs may write `sha256=` there as well as the usual `sha1=`. When the first is present and
 * wrong, the second is not checked.
 */
export function createYoutubeWebhook(settings: Settings['webhooks']): WebhookVendor {
  const secrets = secretList(settings.youtube_secret);
  return {
    vendor: 'youtube',
    path: PATH,
    headers: [],
    signatures: ['x-hub-signature-256', 'x-hub-signature'],
    async verify({ headers, raw_body }) {
      if (secrets.length === 0) {
        if (settings.require_signatures) throw webhook.unauthorized();
        return webhook.BODY_ALONE;
      }
      const strong = webhook.headerOf(headers, 'x-hub-signature-256');
      const header = strong ?? webhook.headerOf(headers, 'x-hub-signature');
      if (header === null) throw webhook.unauthorized('Missing webhook signature');
      const signature = prefixedSignature(header);
      if (signature === null || (strong !== null && signature.algorithm !== 'sha256')) throw webhook.unauthorized();
      if (!hmacMatches(signature.algorithm, 'hex', secrets, raw_body, signature.hex)) throw webhook.unauthorized();
      return webhook.BODY_ALONE;
    },
    normalise: normaliseYoutube,
  };
}

const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  removeNSPrefix: true,
  // Ids and titles are text: "1e5" is a video id.
  parseTagValue: false,
  parseAttributeValue: false,
  htmlEntities: true,
  isArray: (name) => name === 'entry' || name === 'deleted-entry',
});

/**
 * Converts Atom to records, one for each entry: any notification is a `youtube:subscribe` whose raw keeps channel_id,
 * video_id, title, published and updated. A tombstone (`at:deleted-entry`) keeps the same members, null where missing,
 * and `deleted: true`. Entries without a channel id take that of the feed's other entries: a hub's topic is one
 * channel. Refused only when the Atom cannot be parsed or has no channel id at all.
 */
export function normaliseYoutube(delivery: Delivery): Outcome {
  const feed = readFeed(delivery.text);
  if (feed === null) return webhook.refuse('Invalid Atom XML');
  const entries = list(feed['entry']);
  const tombstones = list(feed['deleted-entry']);
  const channels = [...entries.map(entryChannel), ...tombstones.map(tombstoneChannel), entryChannel(feed)];
  const known = channels.find((channel) => channel !== null);
  if (known === undefined) return webhook.refuse('Atom XML lacks a channel id');
  const records = [
    ...entries.map((entry, index) => entryRecord(delivery, entry, channels[index] ?? known)),
    ...tombstones.map((entry, index) => tombstoneRecord(delivery, entry, channels[entries.length + index] ?? known)),
  ];
  return records.length === 0 ? webhook.skip('no_entries') : webhook.ok(...records);
}

/**
 * The feed, or a lone entry instead; null when the text is not well-formed, declares a document type, or is something
 * else.
 */
function readFeed(received: string): Record<string, unknown> | null {
  // Blanks before the XML declaration are common, and strictly not XML.
  const text = received.trimStart();
  // A document type can define entities; no legitimate notification has one.
  if (/<!DOCTYPE/i.test(withoutCdata(text))) return null;
  if (XMLValidator.validate(text) !== true) return null;
  let parsed: unknown;
  try {
    parsed = parser.parse(text);
  } catch {
    // Too deep, or a name that the parser refuses: not Atom.
    return null;
  }
  const feed = webhook.member(parsed, 'feed');
  if (feed !== null && typeof feed === 'object' && !Array.isArray(feed)) return feed as Record<string, unknown>;
  const entry = webhook.member(parsed, 'entry');
  return entry === undefined ? null : { entry };
}

/** Searches by index instead of a pattern, which unclosed sections would make quadratic. */
function withoutCdata(text: string): string {
  let rest = '';
  let from = 0;
  for (;;) {
    const start = text.indexOf('<![CDATA[', from);
    const end = start < 0 ? -1 : text.indexOf(']]>', start);
    if (end < 0) return rest + text.slice(from);
    rest += text.slice(from, start);
    from = end + 3;
  }
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

/** Text of an element, with or without attributes. */
function elementText(value: unknown): string | null {
  const first = Array.isArray(value) ? value[0] : value;
  const text = typeof first === 'object' ? webhook.member(first, '#text') : first;
  // An entity may encode text that PostgreSQL does not store.
  return webhook.textOf(text)?.replaceAll('\0', '\ufffd').toWellFormed() ?? null;
}

const entryChannel = (entry: unknown) => elementText(webhook.member(entry, 'channelId'));

function tombstoneChannel(entry: unknown): string | null {
  const uri = elementText(webhook.member(entry, 'by', 'uri'));
  return entryChannel(entry) ?? /\/channel\/([^/?#\s]+)/.exec(uri ?? '')?.[1] ?? null;
}

function videoIn(text: string | null): string | null {
  return /^yt:video:(.+)$/.exec(text ?? '')?.[1] ?? null;
}

function entryRecord(delivery: Delivery, entry: unknown, channel_id: string): DraftRecord {
  const at = (name: string) => elementText(webhook.member(entry, name));
  const video_id = at('videoId') ?? videoIn(at('id'));
  const [published, updated] = [at('published'), at('updated')];
  const raw = { channel_id, video_id, title: at('title'), published, updated };
  return record(delivery, channel_id, raw, updated ?? published, [updated, published]);
}

function tombstoneRecord(delivery: Delivery, entry: unknown, channel_id: string): DraftRecord {
  const video_id = videoIn(elementText(webhook.member(entry, '@ref')));
  const when = elementText(webhook.member(entry, '@when'));
  const raw = { channel_id, video_id, title: null, published: null, updated: when, deleted: true };
  return record(delivery, channel_id, raw, when ?? 'deleted', [when]);
}

/** YouTube announces a video again whenever its title or description changes: `updated` distinguishes these. */
function record(
  delivery: Delivery,
  channel_id: string,
  raw: { video_id: string | null },
  version: string | null,
  times: readonly unknown[],
): DraftRecord {
  return {
    owner: { kind: 'channel', platform: 'youtube', channel_id },
    topic: TOPICS.platform_events,
    type: 'youtube:subscribe',
    platform: 'youtube',
    external_id:
      raw.video_id === null || version === null
        ? webhook.contentId('youtube', delivery, JSON.stringify(raw))
        : webhook.externalId('youtube', raw.video_id, version),
    occurred_at: eventTime(delivery.received_at, ...times),
    // A channel belongs to a person: its notifications are sealed under that person's key.
    subject: webhook.subjectOf('youtube', channel_id),
    raw: JSON.stringify(raw),
  };
}
