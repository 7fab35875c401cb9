import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Json, JsonObject } from '../../lib/json/json';
import { unreachable } from '../common/unreachable';
import { PLATFORMS } from '../common/vendors';
import { SessionFigures } from './session-figures';

const ids = { session_id: z.uuid(), account_id: z.uuid() };

/** A broadcast that belongs to a session. */
const SessionStream = z.object({
  platform: z.enum(PLATFORMS),
  platform_channel_id: z.string(),
  broadcast_id: z.string(),
  title: z.string().nullable(),
  category: z.string().nullable(),
  started_at: instant(),
});
export type SessionStream = z.output<typeof SessionStream>;

const figures = SessionFigures.describe('Sums, streams and top lists; persons by their keys alone');

type Stored = { [member: string]: Json };
const withPeak = (markers: Json): Json =>
  markers === null
    ? null
    : {
        ...(markers as Stored),
        peak: Math.max(Number((markers as Stored)['first']), Number((markers as Stored)['last'])),
        peak_at: null,
      };
/** Version 1 had no peak of followers, no raids and one broadcast in a stream. */
function withRaids(data: JsonObject): JsonObject {
  const of = data['figures'] as Stored;
  const streams = (of['streams'] as Stored[]).map((stream) => ({
    ...stream,
    follower_markers: withPeak(stream['follower_markers']!),
    broadcast_ids: [stream['broadcast_id']!],
  }));
  return {
    ...data,
    figures: { ...of, streams, follower_markers: withPeak(of['follower_markers']!), received_raids: [] },
  };
}

/** Recording is no act of a person. */
const UNAUDITED = { audit: null };

/**
 * A session: broadcasts of an account that overlap, or follow each other within the grace. It outlives chat's
 * retention, erasures and rebuilds, since its figures are part of its events. Source: spec doc2 §2.14, §3, §4.2.
 */
export const STREAM_SESSION_EVENTS = events({
  'stream_session:begun': event({ ...ids, stream: SessionStream, begun_at: instant() }, UNAUDITED),
  'stream_session:stream_added': event({ ...ids, stream: SessionStream, added_at: instant() }, UNAUDITED),
  'stream_session:finalized': event(
    { ...ids, ended_at: instant(), figures, finalized_at: instant() },
    { ...UNAUDITED, version: 2, upcast: [withRaids] },
  ),
  'stream_session:corrected': event(
    { ...ids, ended_at: instant(), figures, corrected_at: instant() },
    { ...UNAUDITED, version: 2, upcast: [withRaids] },
  ),
  'stream_session:merged': event(
    {
      ...ids,
      older_id: z.uuid().describe('The session that stays'),
      younger_id: z.uuid(),
      links: z
        .array(z.object({ link_id: z.uuid(), allow_export: z.boolean(), expires_at: instant() }))
        .describe('Links of the younger session, which lead to the older one from now on'),
      merged_at: instant(),
    },
    UNAUDITED,
  ),
  'stream_session:deleted': event({ ...ids, deleted_at: instant() }),
  'stream_session:link_created': event({
    ...ids,
    link_id: z.uuid(),
    token_hash: z.string().describe('Hex SHA-256 of the token'),
    password_hash: z.string().nullable().describe('Argon2id in PHC form'),
    allow_export: z.boolean(),
    expires_at: instant(),
    created_by: z.uuid().nullable(),
    created_at: instant(),
  }),
  'stream_session:link_extended': event({ ...ids, link_id: z.uuid(), expires_at: instant(), extended_at: instant() }),
  'stream_session:link_revoked': event({ ...ids, link_id: z.uuid(), revoked_at: instant() }),
});
export type StreamSessionEvent = EventOf<typeof STREAM_SESSION_EVENTS>;
type LinkCreated = Extract<StreamSessionEvent, { type: 'stream_session:link_created' }>;

export type StreamSessionCommand = { now: string } & (
  | { type: 'stream_session:begin'; session_id: string; account_id: string; stream: SessionStream }
  | { type: 'stream_session:add_stream'; stream: SessionStream }
  | { type: 'stream_session:finalize'; ended_at: string; figures: SessionFigures }
  | { type: 'stream_session:merge'; younger_id: string; links: StreamSession['links'] }
  | { type: 'stream_session:delete' }
  | ({ type: 'stream_session:create_link' } & Omit<LinkCreated, 'type' | 'session_id' | 'account_id' | 'created_at'>)
  | { type: 'stream_session:extend_link'; link_id: string; duration_secs: number }
  | { type: 'stream_session:revoke_link'; link_id: string }
);

/** Link of a report, as long as it is not revoked. */
export interface ReportLink {
  allow_export: boolean;
  expires_at: string;
}

export interface StreamSession {
  status: 'none' | 'live' | 'finalized' | 'merged' | 'deleted';
  session_id: string;
  account_id: string;
  /** `platform/broadcast_id` of each stream. */
  streams: readonly string[];
  /** JSON of the figures last stored, with the end. */
  figures: string | null;
  links: Readonly<Record<string, ReportLink>>;
}

/** Active links of one report. Source: spec doc1 §8. */
export const MAX_LINKS = 20;
/** Seconds that a link lives, or is extended by. Source: spec doc1 §8. */
export const LINK_DURATIONS = [3_600, 21_600, 86_400, 604_800, 2_592_000] as const;

export const streamSessionStream = (session_id: string): string => `stream-session-${session_id}`;
const keyOf = ({ platform, broadcast_id }: Pick<SessionStream, 'platform' | 'broadcast_id'>): string =>
  `${platform}/${broadcast_id}`;

export const streamSession: Decider<StreamSession, StreamSessionCommand, StreamSessionEvent> = {
  initial: { status: 'none', session_id: '', account_id: '', streams: [], figures: null, links: {} },
  decide(state, command) {
    const { now } = command;
    if (command.type === 'stream_session:begin') {
      const { session_id, account_id, stream } = command;
      return state.status === 'none'
        ? [{ type: 'stream_session:begun', session_id, account_id, stream, begun_at: now }]
        : [];
    }
    const { session_id, account_id, status } = state;
    if (status === 'none' || status === 'merged' || status === 'deleted')
      throw new DomainError('REPORT_NOT_FOUND', { session_id });
    const ids = { session_id, account_id };
    switch (command.type) {
      case 'stream_session:add_stream': {
        const { stream } = command;
        if (state.streams.includes(keyOf(stream))) return [];
        return [{ type: 'stream_session:stream_added', ...ids, stream, added_at: now }];
      }
      case 'stream_session:finalize': {
        const { ended_at, figures } = command;
        const counted = figures.streams.flatMap(({ platform, broadcast_ids }) =>
          broadcast_ids.map((broadcast_id) => keyOf({ platform, broadcast_id })),
        );
        // A stream that was added meanwhile is counted by the next finalisation.
        if (!state.streams.every((key) => counted.includes(key))) return [];
        if (storedFigures(command) === state.figures) return [];
        return state.figures === null
          ? [{ type: 'stream_session:finalized', ...ids, ended_at, figures, finalized_at: now }]
          : [{ type: 'stream_session:corrected', ...ids, ended_at, figures, corrected_at: now }];
      }
      case 'stream_session:merge': {
        const { younger_id } = command;
        const links = Object.entries(command.links).map(([link_id, link]) => ({ link_id, ...link }));
        return [{ type: 'stream_session:merged', ...ids, older_id: session_id, younger_id, links, merged_at: now }];
      }
      case 'stream_session:delete':
        if (status === 'live') throw new DomainError('REPORT_LIVE', { session_id });
        return [{ type: 'stream_session:deleted', ...ids, deleted_at: now }];
      case 'stream_session:create_link': {
        const { type: _type, now: _now, ...link } = command;
        if (link.link_id in state.links) return [];
        const active = Object.values(state.links).filter((one) => isActive(one, now)).length;
        if (active >= MAX_LINKS) throw new DomainError('TOO_MANY_LINKS', { most: MAX_LINKS });
        return [{ type: 'stream_session:link_created', ...ids, ...link, created_at: now }];
      }
      case 'stream_session:extend_link': {
        const { link_id, duration_secs } = command;
        const link = state.links[link_id];
        if (link === undefined) throw new DomainError('LINK_NOT_FOUND', { link_id });
        if (!isActive(link, now)) throw new DomainError('LINK_ENDED', { link_id });
        const expires_at = new Date(Date.parse(link.expires_at) + duration_secs * 1000).toISOString();
        return [{ type: 'stream_session:link_extended', ...ids, link_id, expires_at, extended_at: now }];
      }
      case 'stream_session:revoke_link': {
        const { link_id } = command;
        if (!(link_id in state.links)) throw new DomainError('LINK_NOT_FOUND', { link_id });
        return [{ type: 'stream_session:link_revoked', ...ids, link_id, revoked_at: now }];
      }
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'stream_session:begun': {
        const { session_id, account_id, stream } = event;
        return { ...state, status: 'live', session_id, account_id, streams: [keyOf(stream)] };
      }
      case 'stream_session:stream_added':
        return { ...state, status: 'live', streams: [...state.streams, keyOf(event.stream)] };
      case 'stream_session:finalized':
      case 'stream_session:corrected':
        return { ...state, status: 'finalized', figures: storedFigures(event) };
      case 'stream_session:merged': {
        if (event.session_id === event.younger_id) return { ...state, status: 'merged', figures: null, links: {} };
        const links = event.links.map(({ link_id, ...link }) => [link_id, link] as const);
        return { ...state, links: { ...state.links, ...Object.fromEntries(links) } };
      }
      case 'stream_session:deleted':
        return { ...state, status: 'deleted', figures: null, links: {} };
      case 'stream_session:link_created': {
        const { link_id, allow_export, expires_at } = event;
        return { ...state, links: { ...state.links, [link_id]: { allow_export, expires_at } } };
      }
      case 'stream_session:link_extended': {
        const { link_id, expires_at } = event;
        return { ...state, links: { ...state.links, [link_id]: { ...state.links[link_id]!, expires_at } } };
      }
      case 'stream_session:link_revoked': {
        const { [event.link_id]: _revoked, ...links } = state.links;
        return { ...state, links };
      }
      default:
        return unreachable(event);
    }
  },
};

const isActive = ({ expires_at }: ReportLink, now: string): boolean => Date.parse(expires_at) > Date.parse(now);
/** Without the number of rows, which is no figure. */
const storedFigures = ({ ended_at, figures }: { ended_at: string; figures: SessionFigures }): string =>
  JSON.stringify([ended_at, { ...SessionFigures.parse(figures), rows_counted: 0 }]);
/** The figures last stored, of {@link StreamSession.figures}. */
export const figuresOf = (stored: string): SessionFigures => (JSON.parse(stored) as [string, SessionFigures])[1];
