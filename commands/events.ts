import { v5, v7 } from 'uuid';
import { z } from 'zod';
import type { RequestContext } from '../access/caller';
import {
  account,
  command,
  feature,
  invalid,
  permission,
  post,
  type Refuse,
  systemKeyOnly,
  tooLarge,
} from '../access/operation';
import type { Services } from '../access/services';
import { exampleText } from '../domain/event-catalogue';
import { eventUserId } from '../domain/event-users';
import { MAX_DISPLAY_PAYLOAD } from '../domain/display-payload';
import { EVENT_COLUMNS, eventData, EventRecord, eventRecord, type EventRow, eventsChannel } from '../domain/events';
import { INSTANT_PATTERN, parseInstant, shownInstant } from '../domain/instants';
import { stringify } from '../kernel/raw-json';
import { TOPICS } from '../domain/records';

/** How far ahead of our clock an event may say it happened. Spec rulings, `EmitEventInput`. */
const FUTURE_MS = 5 * 60_000;
/** Ids of emitted events that come again under their Idempotency-Key derive from this. */
const EMITTED = 'b0ab6a2e-2f6c-5d0c-9a55-7f3f2a5f5b6d';

const eventType = z
  .string()
  .max(100)
  .regex(/^[A-Za-z0-9_.-]+:[A-Za-z0-9_.:-]+$/, 'event_type must be prefix:action')
  .describe('`prefix:action`, at most 100 characters');
const platform = z.string().regex(/^[A-Za-z0-9_-]{1,50}$/, 'platform must be a slug');
const raw = z.record(z.string(), z.unknown());

const EmitEventInput = z
  .object({
    event_type: eventType,
    platform: platform.nullish().describe('Default: the prefix of the type'),
    external_id: z
      .string()
      .min(1)
      .max(255)
      .nullish()
      .describe('An event with an id that was there before is not inserted again'),
    raw: raw.nullish().describe('Default: {}; of a test event a lifelike payload, where the catalogue has the type'),
    created_at: z
      .string()
      .refine((text) => parseInstant(text) !== null, 'created_at must be an ISO 8601 date or date-time')
      .meta({ pattern: INSTANT_PATTERN })
      .nullish()
      .describe('Default: now; at most five minutes ahead'),
  })
  .meta({ id: 'EmitEventInput' });

const errors = {
  CREATED_IN_THE_FUTURE: invalid('created_at must not be more than five minutes in the future'),
};

const broadcast_errors = {
  EVENT_TOO_LARGE: tooLarge(`raw of an event that is only broadcast has at most ${MAX_DISPLAY_PAYLOAD} bytes`),
};

const EmitEventResult = z.object({ success: z.boolean(), event: EventRecord }).meta({ id: 'EmitEventResult' });

/**
 * Puts an event into the account's log and on its channel, through the same record log as vendors' events (spec doc2
 * §4.4, doc3 §6.1). Answers when the event can be read. An `external_id` that the account had before answers the event
 * that is there.
 */
export const emitEvent = command({
  name: 'emitEvent',
  // Source: spec doc2 §4.3, §4.4.
  summary: "Inserts an event into the account's log and broadcasts it",
  // An event is read with a `type`, and what was read can be sent.
  rest: post('/v1/events/emit', { envelope: 'bare', aliases: { type: 'event_type' } }),
  graphql: { argument: 'input' },
  guard: [feature('feature:events'), permission('events:create')],
  input: EmitEventInput,
  output: EmitEventResult,
  errors,
  async run({ input, caller, context, refuse }, services) {
    const row = newEvent(input, caller.account_id, context, refuse);
    const earlier = context.idempotency_seed === null ? undefined : await stored(services, row);
    if (earlier) return { success: true, event: eventRecord(earlier) };
    const user_id = eventUserId(row.platform, row.raw);
    const ends = await services.records.append(TOPICS.platform_events, [
      {
        id: row.id,
        account_id: row.account_id,
        type: row.type,
        platform: row.platform,
        external_id: row.external_id,
        occurred_at: row.created_at,
        received_at: new Date(context.now).toISOString(),
        subject: user_id === null ? null : `${row.platform}:${user_id}`,
        raw: row.raw,
        trace: context.trace,
      },
    ]);
    await services.awaitShown(context, {
      topic: TOPICS.platform_events,
      ends: [...ends],
      projections: ['event-log'],
    });
    // Not there within the bound: it is durable and will come, so the answer shows what it will be.
    return { success: true, event: eventRecord((await stored(services, row)) ?? row) };
  },
});

/**
 * Broadcasts an event as `emitEvent` would, and stores nothing (spec doc2 §4.4, doc3 §6.1). Without a payload it has
 * the one that the catalogue shows.
 */
export const testEvent = command({
  name: 'testEvent',
  // Source: spec doc2 §4.4.
  summary: "Broadcasts an event on the account's channel without storing it",
  rest: post('/v1/events/test', { envelope: 'bare' }),
  graphql: { argument: 'input' },
  guard: [feature('feature:events'), permission('events:create')],
  input: EmitEventInput,
  output: EmitEventResult,
  errors: { ...errors, ...broadcast_errors },
  async run({ input, caller, context, refuse }, { live }) {
    const row = newEvent(input, caller.account_id, context, refuse);
    if (!input.raw) row.raw = exampleText(row.type, context.now) ?? row.raw;
    await broadcast(live, row, refuse);
    return { success: true, event: eventRecord(row) };
  },
});

/**
 * What bots report on behalf of an account: broadcast only (spec doc2 §4.3). `username` is in `raw` too, where overlays
 * look for it.
 */
export const emitBotEvent = command({
  name: 'emitBotEvent',
  // Source: spec doc2 §4.3.
  summary: "Broadcasts a bot's event on an account's channel without storing it",
  rest: post('/v1/events/emit-bot', { envelope: 'bare' }),
  guard: [systemKeyOnly, account('account_id')],
  input: z.object({
    account_id: z.uuid().meta({ graphql: 'ID' }),
    event_type: eventType,
    platform,
    username: z.string().min(1).max(255),
    raw: raw.meta({ graphql: 'JSON' }),
  }),
  output: EmitEventResult,
  errors: broadcast_errors,
  async run({ input, context, refuse }, { live }) {
    const payload = { username: input.username, ...input.raw };
    const row = eventOf({ ...input, raw: payload }, input.account_id, context, new Date(context.now).toISOString());
    await broadcast(live, row, refuse);
    return { success: true, event: eventRecord(row) };
  },
});

type NewEvent = z.output<typeof EmitEventInput>;

function newEvent(
  input: NewEvent,
  account_id: string,
  context: RequestContext,
  refuse: Refuse<typeof errors>,
): EventRow {
  const created_at = input.created_at ? parseInstant(input.created_at)! : new Date(context.now).toISOString();
  if (Date.parse(created_at) > context.now + FUTURE_MS) throw refuse('CREATED_IN_THE_FUTURE');
  return eventOf(input, account_id, context, created_at);
}

function eventOf(input: NewEvent, account_id: string, context: RequestContext, created_at: string): EventRow {
  return {
    id: context.idempotency_seed === null ? v7() : v5(context.idempotency_seed, EMITTED),
    account_id,
    type: input.event_type,
    platform: input.platform ?? input.event_type.slice(0, input.event_type.indexOf(':')).slice(0, 50),
    external_id: input.external_id ?? null,
    raw: stringify(input.raw ?? {}),
    created_at: shownInstant(created_at),
  };
}

/**
 * The event as the log shows it: under its own id, or, when its external id was there before, the event that has it.
 */
async function stored({ db }: Services, row: EventRow): Promise<EventRow | undefined> {
  const [found] = await db.query<EventRow>(
    `select ${EVENT_COLUMNS} from platform_event_logs
     where account_id = $1 and id in (
       select $2::uuid union all
       select record_id from ledger
       where account_id = $1 and external_id = $4 and projection = 'event-log' and topic = $3)
     limit 1`,
    [row.account_id, row.id, TOPICS.platform_events, row.external_id],
    'event-stored',
  );
  return found;
}

/** The same message as a stored event's, without the id that only stored ones have. */
async function broadcast(
  live: Services['live'],
  row: EventRow,
  refuse: Refuse<typeof broadcast_errors>,
): Promise<void> {
  if (Buffer.byteLength(row.raw) > MAX_DISPLAY_PAYLOAD) throw refuse('EVENT_TOO_LARGE');
  const channel = eventsChannel(row.account_id);
  await live.broadcast(channel, { type: 'event', channel, event_type: row.type, data: JSON.parse(eventData(row)) });
}
