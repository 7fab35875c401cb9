import type { Json } from '../../../lib/json/json';

/** Where events of a type are found. */
export type Delivery =
  /** In the event log, and on `events:<account_id>`. */
  | 'event_log'
  /** On `chat:<account_id>` and in the chat's own history. */
  | 'chat'
  /** Pushed to subscribers, and never stored. */
  | 'live';

/** Event type: its meaning, and an example of its `raw`. */
export interface EventType {
  /** `platform:action`. */
  type: string;
  summary: string;
  delivered: Delivery;
  /** Whether extensions may subscribe to it. */
  subscribable: boolean;
  /** A lifelike payload; its times are {@link AT} and later. */
  example: Example;
  /** Paths of members that may be absent; a list's members stand below `[]`. */
  optional: readonly string[];
  /** Paths of members that may be null. */
  nullable: readonly string[];
  /** Paths of members that come as a number or as its digits in a text. */
  digits: readonly string[];
}

export type Example = { readonly [name: string]: Json };

/** The moment of every example; a test event tells of now instead. */
export const AT = '2026-01-15T18:30:00.000Z';
/** Minutes after {@link AT}. */
export const after = (minutes: number): string => new Date(Date.parse(AT) + minutes * 60_000).toISOString();

type Options = Partial<Pick<EventType, 'optional' | 'nullable' | 'digits' | 'subscribable' | 'delivered'>>;

/** Builders of one platform's types. By default a type is in the event log, and extensions may subscribe to it. */
export const typesOf =
  (prefix: string) =>
  (action: string, summary: string, example: Example, options: Options = {}): EventType => ({
    type: `${prefix}:${action}`,
    summary,
    delivered: 'event_log',
    subscribable: true,
    optional: [],
    nullable: [],
    digits: [],
    ...options,
    example,
  });

/** Types that only workers write: extensions cannot subscribe to them. */
export const WRITTEN = { subscribable: false } as const;
