import { v5 } from 'uuid';
import { emittedId } from '../../domain/events/emitted';
import { z } from 'zod';
import type { Caller, RequestContext } from '../../access/authentication/caller';
import {
  account,
  command,
  feature,
  invalid,
  permission,
  post,
  rateLimited,
  type Refuse,
  systemKeyOnly,
  tooLarge,
} from '../../app/operation';
import { emittedBucket } from '../../access/limits/rate-buckets';
import type { Services } from '../../app/services';
import { countEmittedBytes, discountEmittedBytes, secondsToNextDay } from '../../services/events/emitted-bytes';
import { exampleText } from '../../domain/events/event-catalogue';
import { eventUserId } from '../../domain/events/event-users';
import { MAX_DISPLAY_PAYLOAD } from '../../domain/events/display-payload';
import {
  EVENT_COLUMNS,
  eventData,
  EventRecord,
  eventRecord,
  type EventRow,
  eventsChannel,
} from '../../domain/events/events';
import { allSettledOrThrow } from '../../lib/async/all-settled';
import { INSTANT_PATTERN, parseInstant, shownInstant } from '../../lib/time/instants';
import { isTransition } from '../../domain/history/channel-status';
import { stringify } from '../../lib/json/raw-json';
import { ERASED_RAW, TOPICS } from '../../domain/common/records';
import { messageStarts } from '../../services/automation/runs/message-starts';

/** Maximum lead of an event's time over our clock. Spec rulings, `EmitEventInput`. */
const FUTURE_MS = 5 * 60_000;
/** Maximum age of an event in days: older ones belong in an import. */
const PAST_DAYS = 366;
/** Namespace of the ids of events emitted under an Idempotency-Key. */
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
      .describe('Default: now; at most five minutes ahead and 366 days back'),
  })
  .meta({ id: 'EmitEventInput' });

const day_errors = {
  TOO_MANY_BYTES: rateLimited('The account has emitted the bytes of its plan for this day (max_emitted_bytes_per_day)'),
};

const errors = {
  CREATED_IN_THE_FUTURE: invalid('created_at must not be more than five minutes in the future'),
  CREATED_LONG_AGO: invalid(`created_at must not be more than ${PAST_DAYS} days in the past`),
};

const broadcast_errors = {
  EVENT_TOO_LARGE: tooLarge(`raw of an event that is only broadcast has at most ${MAX_DISPLAY_PAYLOAD} bytes`),
};

const EmitEventResult = z.object({ success: z.boolean(), event: EventRecord }).meta({ id: 'EmitEventResult' });

/**
 * Appends an event to the account's log and broadcasts it, through the same record log as vendors' events (spec doc2
 * §4.4, doc3 §6.1). Answers once the event is readable. A known `external_id` returns the existing event.
 */
export const emitEvent = command({
  name: 'emitEvent',
  // Source: spec doc2 §4.3, §4.4.
  summary: "Inserts an event into the account's log and broadcasts it",
  // An answer has the member `type`, so that a read event can be sent as it is.
  rest: post('/v1/events/emit', { envelope: 'bare', aliases: { type: 'event_type' } }),
  graphql: { argument: 'input' },
  guard: [feature('feature:events'), permission('events:create')],
  input: EmitEventInput,
  output: EmitEventResult,
  errors: { ...errors, ...day_errors },
  async run({ input, caller, context, refuse }, services) {
    if (context.repeats !== undefined) {
      return { success: true, event: eventRecord(await repeated(services, context, input)) };
    }
    const row = newEvent(input, caller.account_id, context, refuse);
    const earlier = context.idempotency_seed === null ? undefined : await stored(services, row);
    if (earlier) return emitted(earlier, context);
    await takeBytes('emitted', caller, context, row, services);
    const counted = [services.db, row.account_id, Buffer.byteLength(row.raw), context.now] as const;
    if (!(await countEmittedBytes(...counted))) {
      throw refuse('TOO_MANY_BYTES', { retry_after_seconds: secondsToNextDay(context.now) });
    }
    const user_id = eventUserId(row.platform, row.raw);
    const appended = services.records.append(TOPICS.platform_events, [
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
        ...(isTransition(row.type) && { reported_at: row.created_at }),
      },
    ]);
    // Repetitions during an outage must not use up the day.
    const ends = await appended.catch(async (error: unknown) => {
      await allSettledOrThrow([Promise.reject(error), discountEmittedBytes(...counted)]);
      throw error;
    });
    await services.awaitShown(context, {
      topic: TOPICS.platform_events,
      ends: [...ends],
      projections: ['event-log'],
    });
    // On a timeout the event is durable and will appear, so the answer shows it as it will be.
    return emitted((await stored(services, row)) ?? row, context);
  },
});

/**
 * Broadcasts an event as `emitEvent` does, without storing it (spec doc2 §4.4, doc3 §6.1). The default payload is the
 * catalogue's example.
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
  async run({ input, caller, context, refuse }, services) {
    const row = newEvent(input, caller.account_id, context, refuse);
    if (!input.raw) row.raw = exampleText(row.type, context.now) ?? row.raw;
    requireShort(row, refuse);
    await takeBytes('tested', caller, context, row, services);
    await broadcast(services.live, row);
    return { success: true, event: eventRecord(row) };
  },
});

/**
 * Broadcasts a bot's report on behalf of an account, without storing it (spec doc2 §4.3). `username` is copied to
 * `raw`, where overlays read it.
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
  async run({ input, context, refuse }, { live, db, enqueue, hashes }) {
    const payload = { username: input.username, ...input.raw };
    const row = eventOf({ ...input, raw: payload }, input.account_id, context, new Date(context.now).toISOString());
    requireShort(row, refuse);
    await broadcast(live, row);
    const user_id = eventUserId(row.platform, row.raw);
    const subject = `${row.platform}:${user_id}`;
    const person = user_id === null ? undefined : (await hashes.hashesOf([subject])).get(subject);
    const message = { ...row, account_id: row.account_id.toLowerCase(), person };
    await enqueue(await messageStarts(db, [message], context.now));
    return { success: true, event: eventRecord(row) };
  },
});

/** Answer of an event in the log, which the `Idempotency-Key` keeps without its content. */
function emitted(row: EventRow, context: RequestContext): z.input<typeof EmitEventResult> {
  const { raw: _raw, ...reference } = row;
  context.answer_reference = JSON.stringify(reference);
  return { success: true, event: eventRecord(row) };
}

/** The event of the first call, without its content after it was swept or erased. */
async function repeated(services: Services, context: RequestContext, input: NewEvent): Promise<EventRow> {
  const reference = JSON.parse(context.repeats!) as Omit<EventRow, 'raw'>;
  const row = await byId(services, reference);
  if (row) return row.raw === ERASED_RAW ? { ...row, raw: 'null' } : row;
  // Where the read models are behind, the request is all that is known of the content.
  return { ...reference, raw: context.not_shown ? stringify(input.raw ?? {}) : 'null' };
}

/** @throws ApiError RATE_LIMIT_EXCEEDED when the credential has emitted its bytes of this minute */
const takeBytes = async (
  name: 'emitted' | 'tested',
  caller: Caller,
  { units }: RequestContext,
  { raw }: EventRow,
  { settings }: Services,
): Promise<void> =>
  units?.take(emittedBucket(caller, name, settings.requests.emitted_bytes), Math.ceil(Buffer.byteLength(raw) / 1024));

/** @throws ApiError EVENT_TOO_LARGE where the payload does not fit a message */
function requireShort({ raw }: EventRow, refuse: Refuse<typeof broadcast_errors>): void {
  if (Buffer.byteLength(raw) > MAX_DISPLAY_PAYLOAD) throw refuse('EVENT_TOO_LARGE');
}

type NewEvent = z.output<typeof EmitEventInput>;

function newEvent(
  input: NewEvent,
  account_id: string,
  context: RequestContext,
  refuse: Refuse<typeof errors>,
): EventRow {
  const created_at = input.created_at ? parseInstant(input.created_at)! : new Date(context.now).toISOString();
  if (Date.parse(created_at) > context.now + FUTURE_MS) throw refuse('CREATED_IN_THE_FUTURE');
  if (Date.parse(created_at) < context.now - PAST_DAYS * 86_400_000) throw refuse('CREATED_LONG_AGO');
  return eventOf(input, account_id, context, created_at);
}

function eventOf(input: NewEvent, account_id: string, context: RequestContext, created_at: string): EventRow {
  return {
    id: context.idempotency_seed === null ? emittedId() : v5(context.idempotency_seed, EMITTED),
    account_id,
    type: input.event_type,
    platform: input.platform ?? input.event_type.slice(0, input.event_type.indexOf(':')).slice(0, 50),
    external_id: input.external_id ?? null,
    raw: stringify(input.raw ?? {}),
    created_at: shownInstant(created_at),
  };
}

/** Reads the event from the log by its own id, or by its external id when an earlier event has that. */
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

async function byId({ db }: Services, { id, account_id }: Pick<EventRow, 'id' | 'account_id'>) {
  const [found] = await db.query<EventRow>(
    `select ${EVENT_COLUMNS} from platform_event_logs where id = $1 and account_id = $2`,
    [id, account_id],
    'event-by-id',
  );
  return found;
}

/** Broadcasts the message of a stored event, but without the id, which only stored events have. */
async function broadcast(live: Services['live'], row: EventRow): Promise<void> {
  const channel = eventsChannel(row.account_id);
  await live.broadcast(channel, { type: 'event', channel, event_type: row.type, data: JSON.parse(eventData(row)) });
}
