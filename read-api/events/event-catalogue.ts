import { z } from 'zod';
import { get, publicAccess, query, whole } from '../../app/operation';
import { EVENT_TYPES, shapeOf } from '../../domain/events/event-catalogue';

const EventTypeRecord = z
  .object({
    type: z.string().describe('`platform:action`'),
    platform: z.string(),
    summary: z.string(),
    delivered: z
      .enum(['event_log', 'chat', 'live'])
      .describe('In the event log and on `events:…`; on `chat:…`; or pushed and kept nowhere'),
    subscribable: z.boolean().describe('Whether extensions may subscribe to it'),
    shape: z.unknown().meta({ graphql: 'JSON' }).describe('JSON Schema of `raw`; vendors add members'),
    example: z.unknown().meta({ graphql: 'JSON' }).describe('A lifelike `raw`'),
  })
  .meta({ id: 'EventTypeRecord' });

/** Catalogue of event types, for consumers and for overlay designers; the same for everybody. */
export const eventCatalogue = query({
  name: 'eventCatalogue',
  // Source: spec doc3 §6.2.
  summary: 'Every type of events, with what its payload looks like',
  rest: get('/v1/events/catalogue'),
  pages: whole(),
  guard: [publicAccess],
  input: z.object({}),
  output: EventTypeRecord,
  run: async () => CATALOGUE,
});

const CATALOGUE: z.input<typeof EventTypeRecord>[] = EVENT_TYPES.map((one) => ({
  type: one.type,
  platform: one.type.slice(0, one.type.indexOf(':')),
  summary: one.summary,
  delivered: one.delivered,
  subscribable: one.subscribable,
  shape: shapeOf(one),
  example: one.example,
}));
