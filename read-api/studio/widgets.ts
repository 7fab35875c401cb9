import { z } from 'zod';
import { feature, get, notFound, offset, permission, query, whole } from '../../app/operation';
import { DRAWN_TYPES, WIDGET_TYPES } from '../../domain/studio/widget-types';
import { AccessCandidate, Widget, WidgetAccess, widgetOf, widgetsOf } from '../../views/studio/widgets';
import { candidatesFor, entriesOf } from '../../views/studio/access-entries';

const WIDGETS = feature('feature:widgets');
const WIDGET_NOT_FOUND = { WIDGET_NOT_FOUND: notFound('Widget not found') };

const WidgetType = z
  .object({
    type: z.enum(DRAWN_TYPES),
    slug: z.string(),
    kind: z.literal('widget'),
    flag: z.string().nullable().describe('Feature flag that allows it; null: none'),
    name: z.string(),
    is_enabled: z.boolean().describe('False: its flag is off for the account'),
    config_schema: z
      .record(z.string(), z.unknown())
      .describe('By setting: `{type, label, default}`, and `options`, `min`, `max`')
      .meta({ graphql: 'JSON' }),
  })
  .meta({ id: 'WidgetType' });

/** The types of widgets. Source: spec extra-facts §8. */
export const widgetTypes = query({
  name: 'widgetTypes',
  summary: 'Types of widgets with their settings',
  rest: get('/v1/widgets/types'),
  pages: whole(),
  guard: [WIDGETS, permission('widgets:read')],
  input: z.object({}),
  output: WidgetType,
  run: async ({ caller }, { features }) =>
    Promise.all(
      WIDGET_TYPES.map(async ({ type, slug, kind, name, flag, config_schema }) => ({
        ...{ type, slug, kind, name, flag, config_schema },
        is_enabled: flag === null || (await features.enabled(flag, caller.account_id)),
      })),
    ),
});

/** The account's widgets; an access entry may hide one. */
export const widgets = query({
  name: 'widgets',
  summary: "The account's widgets, newest first",
  rest: get('/v1/widgets'),
  pages: offset('WidgetPage'),
  guard: [WIDGETS, permission('widgets:read')],
  input: z.object({}),
  output: Widget,
  run: ({ caller: { account_id, user_id }, page }, { db }) => widgetsOf(db, { account_id, user_id }, page),
});

export const widget = query({
  name: 'widget',
  summary: 'One widget of the account',
  rest: get('/v1/widgets/{id}'),
  guard: [WIDGETS, permission('widgets:read')],
  input: z.object({ id: z.uuid() }),
  output: Widget,
  errors: WIDGET_NOT_FOUND,
  async run({ input, caller: { account_id, user_id }, refuse }, { db }) {
    const found = await widgetOf(db, { account_id, user_id }, input.id);
    if (found === undefined) throw refuse('WIDGET_NOT_FOUND');
    return found;
  },
});

/** Access entries of a widget. Source: spec doc2 §4.2 "Widgets". */
export const widgetAccess = query({
  name: 'widgetAccess',
  summary: 'What single members may do with a widget',
  rest: get('/v1/widgets/{id}/access'),
  pages: whole(),
  guard: [permission('widgets:access-read')],
  input: z.object({ id: z.uuid() }),
  output: WidgetAccess,
  errors: WIDGET_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, refuse }, { db }) {
    if ((await widgetOf(db, { account_id, user_id: null }, id)) === undefined) throw refuse('WIDGET_NOT_FOUND');
    return (await entriesOf(db, 'widget', id)).map((entry) => ({ widget_id: id, ...entry }));
  },
});

export const widgetAccessCandidates = query({
  name: 'widgetAccessCandidates',
  summary: 'Members who have no access entry of a widget',
  rest: get('/v1/widgets/{id}/access/candidates'),
  pages: whole(),
  guard: [permission('widgets:access-read')],
  input: z.object({ id: z.uuid() }),
  output: AccessCandidate,
  errors: WIDGET_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, refuse }, { db }) {
    if ((await widgetOf(db, { account_id, user_id: null }, id)) === undefined) throw refuse('WIDGET_NOT_FOUND');
    return candidatesFor(db, 'widget', account_id, id);
  },
});
