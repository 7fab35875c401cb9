/** Topics of the broker. Source: design §6. */
export const TOPICS = {
  platform_events: 'platform-events',
  chat_events: 'chat-events',
  webhook_events: 'webhook-events',
  stream_samples: 'stream-samples',
  domain_events: 'domain-events',
} as const;
export type Topic = (typeof TOPICS)[keyof typeof TOPICS];

/**
 * Name of the event store in checkpoints and dead letters; its only partition is 0. It never means the topic of the
 * same name, which is a relay of the event store.
 */
export const DOMAIN_EVENTS = 'domain-events';

/** Topics that hold what is nowhere else. What is relayed from elsewhere is relayed again into a new log. */
export const LOGS_OF_RECORD: readonly Topic[] = Object.values(TOPICS).filter((topic) => topic !== TOPICS.domain_events);

/** The topic that relays what could not be applied of this one. Design §7. */
export const deadLettersOf = (topic: string): string => `${topic}.dead-letters`;

/**
 * The record envelope, version 1: what every ingest topic carries. Field meanings are fixed; new fields get defaults
 * (schema evolution).
 */
export interface RecordEnvelope {
  /** UUIDv7, made when the record was received; becomes the row id in the event log. */
  id: string;
  account_id: string;
  /** `platform:action`, at most 100 characters. */
  type: string;
  /** Vendor slug. */
  platform: string;
  /** The vendor's delivery or object id, prefixed with the slug (`kick:01J…`); null when it has none. */
  external_id: string | null;
  /** RFC 3339 UTC: the vendor's event time, else when it was received. */
  occurred_at: string;
  /** RFC 3339 UTC. */
  received_at: string;
  /** The person the record is about (`kick:987654321`), whose key encrypts `raw`; null when about nobody. */
  subject: string | null;
  /**
   * Everybody else whom `raw` names (giftees, moderators, who is quoted): once one of them is erased it is as
   * unreadable as after the erasure of `subject`. Absent where there is nobody else.
   */
  subjects?: readonly string[];
  /**
   * JSON text as received (NUL and lone surrogates replaced by U+FFFD). `[erased]` as a JSON string when the subject's
   * key is gone.
   */
  raw: string;
  /** W3C traceparent, or null. */
  trace: string | null;
  /**
   * Where no signature covers the id: how often records with the same `raw` count within {@link SAME_RAW_DAYS}, for one
   * account and platform. Absent where the id is signed and decides alone.
   */
  same_raw?: SameRaw;
  /**
   * Unsigned id of this delivery in the previous release, next to the signed one: a delivery that counted under it does
   * not count again.
   */
  former_id?: string;
  /**
   * RFC 3339 UTC: when the platform sent its report that a broadcast began or ended; `occurred_at` where its message
   * has no plausible time of its own. Absent in records of other types and of earlier releases.
   */
  reported_at?: string;
  /** RFC 3339 UTC, instead of `reported_at`: time of the poll from which the begin or end of a broadcast follows. */
  seen_at?: string;
  /** Id of the run of an automation that emitted the event. Absent of any other. */
  cause?: string;
  /** Number of runs of automations that led to the event. Absent: 0. */
  depth?: number;
}

export const SAME_RAW = ['once', 'once_per_type'] as const;
export type SameRaw = (typeof SAME_RAW)[number];
/** How long it is remembered which bytes have counted. */
export const SAME_RAW_DAYS = 7;

/**
 * Account id of records that a payment vendor sends to the installation; the reader finds the account in the content.
 */
export const INSTALLATION = '00000000-0000-0000-0000-000000000000';

/** Value of `raw` after the erasure of its subject. */
export const ERASED_RAW = '"[erased]"';
