import { z } from 'zod';
import { actorOf, type Caller, type RequestContext } from '../../access/authentication/caller';
import { generateKey } from '../../access/authentication/keys';
import { revokeBoundTokens } from '../../access/authentication/tokens/bound-tokens';
import {
  badRequest,
  command,
  conflict,
  del,
  feature,
  featureDisabled,
  forbidden,
  invalid,
  notFound,
  patch,
  permission,
  post,
  put,
  type Refuse,
} from '../../app/operation';
import type { Services } from '../../app/services';
import type { Act } from '../../app/write-path/act';
import { configProblem, fullConfig, knownSettings, widgetType } from '../../domain/studio/widget-types';
import { MAX_WIDGETS } from '../../domain/studio/widget-counts';
import { type Widget as WidgetState, widget, type WidgetEvent, widgetStream } from '../../domain/studio/widgets';
import { copyName } from '../../domain/studio/names';
import { isAccessRole } from '../../domain/studio/access-entries';
import { entriesOf, isMember } from '../../views/studio/access-entries';
import type { JsonObject } from '../../lib/json/json';
import { Widget, WidgetAccess, widgetOf } from '../../views/studio/widgets';
import { countWrites } from '../../services/studio/widget-counts';
import { TOKEN_NOT_SHOWN } from './overlay-parts';

type Created = Extract<WidgetEvent, { type: 'widget:created' }>;

const WIDGETS = feature('feature:widgets');
const WIDGET_NOT_FOUND = { WIDGET_NOT_FOUND: notFound('Widget not found') };
const NOT_AN_EDITOR = { NOT_AN_EDITOR: forbidden('Your access to this widget does not allow changes') };
const TOO_MANY = { TOO_MANY_WIDGETS: conflict(`An account has at most ${MAX_WIDGETS} widgets`) };
const config_errors = { BAD_CONFIG: invalid('{problem}') };
const name = z.string().trim().min(1).max(100);
const config = z.record(z.string(), z.unknown()).meta({ graphql: 'JSON' });

const WidgetWithToken = z
  .object({ ...Widget.shape, access_token: z.string().describe('Of its page; it is never shown again') })
  .meta({ id: 'WidgetWithToken' });

interface Acting {
  account_id: string;
  user_id: string | null;
}

/** The widget, where the caller may change it. @throws DomainError WIDGET_NOT_FOUND, NOT_AN_EDITOR */
async function editable(
  { db }: Pick<Services, 'db'>,
  { account_id, user_id }: Acting,
  id: string,
  refuse: Refuse<typeof WIDGET_NOT_FOUND & typeof NOT_AN_EDITOR>,
) {
  const found = await widgetOf(db, { account_id, user_id }, id);
  if (found === undefined) throw refuse('WIDGET_NOT_FOUND');
  if (found.role === 'viewer') throw refuse('NOT_AN_EDITOR');
  return found;
}

const createdIn = (events: readonly WidgetEvent[]): Created | undefined =>
  events.find((event) => event.type === 'widget:created');

interface Creating {
  caller: Pick<Caller, 'user_id' | 'made_by'> & { account_id: string };
  context: RequestContext;
  act: Act;
  newId(label: string): string;
  refuse: Refuse<typeof TOKEN_NOT_SHOWN>;
}

/** A new widget, counted in its account, with its token. @throws DomainError TOO_MANY_WIDGETS, TOKEN_NOT_SHOWN */
async function createdWidget(
  { caller, context, act, newId, refuse }: Creating,
  { events: store }: Pick<Services, 'events'>,
  { type, slug }: Pick<Widget, 'type' | 'slug'>,
  made: { name: string; config: JsonObject },
): Promise<z.output<typeof WidgetWithToken>> {
  const { account_id } = caller;
  const widget_id = newId('widget');
  const token = generateKey('widget');
  const { events } = await act(
    widget,
    widgetStream(widget_id),
    {
      type: 'widget:create',
      ...{ widget_id, account_id, created_by: actorOf(caller).user_id, widget_type: slug, name: made.name },
      ...{ token_id: newId('token'), token_hash: token.hash, config: JSON.stringify(made.config) },
    },
    { additionalWrites: () => countWrites(context, store, { type: 'widget_count:add', widget_id, account_id }) },
  );
  if (createdIn(events)?.token_hash !== token.hash) throw refuse('TOKEN_NOT_SHOWN', { id: widget_id });
  const at = new Date(context.now).toISOString();
  const times = { created_at: at, updated_at: at };
  return { id: widget_id, account_id, type, slug, ...made, revision: 1, ...times, access_token: token.key };
}

/** Creates a widget and shows the token of its page once. */
export const createWidget = command({
  name: 'createWidget',
  summary: 'Creates a widget and shows the token of its page once',
  rest: post('/v1/widgets', { status: 201 }),
  graphql: { argument: 'input' },
  guard: [WIDGETS, permission('widgets:create')],
  input: z
    .object({
      type: z.string().max(100).describe('Word or slug of a type'),
      name: name.nullish(),
      config: config.nullish(),
    })
    .meta({ id: 'CreateWidgetInput' }),
  output: WidgetWithToken,
  errors: {
    ...config_errors,
    ...TOO_MANY,
    ...TOKEN_NOT_SHOWN,
    UNKNOWN_TYPE: invalid('type is none of the types of widgets'),
    TYPE_DISABLED: featureDisabled('Feature not enabled: {flag}'),
  },
  async run({ input, ...creating }, services) {
    const { refuse } = creating;
    const { account_id } = creating.caller;
    const type = widgetType(input.type);
    if (type === undefined) throw refuse('UNKNOWN_TYPE');
    if (type.flag !== null && !(await services.features.enabled(type.flag, account_id)))
      throw refuse('TYPE_DISABLED', { flag: type.flag });
    const sent_config = (input.config ?? {}) as JsonObject;
    const problem = configProblem(type, sent_config);
    if (problem !== null) throw refuse('BAD_CONFIG', { problem });
    return createdWidget(creating, services, type, {
      name: input.name ?? type.name,
      config: fullConfig(type, sent_config),
    });
  },
});

/** Changes a widget; its page is sent the change. */
export const updateWidget = command({
  name: 'updateWidget',
  summary: 'Changes the name or settings of a widget; settings that are left out stay as they are',
  rest: patch('/v1/widgets/{id}'),
  per_minute: 120,
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [WIDGETS, permission('widgets:edit')],
  input: z.object({ id: z.uuid(), name: name.nullish(), config: config.nullish() }).meta({ id: 'UpdateWidgetInput' }),
  output: Widget,
  errors: { ...WIDGET_NOT_FOUND, ...NOT_AN_EDITOR, ...config_errors },
  async run({ input, caller, context, act, refuse }, services) {
    const found = await editable(services, caller, input.id, refuse);
    const type = widgetType(found.slug)!;
    const changed = { ...knownSettings(type, found.config as JsonObject), ...((input.config ?? {}) as JsonObject) };
    const problem = configProblem(type, changed);
    if (problem !== null) throw refuse('BAD_CONFIG', { problem });
    const { state } = await act(widget, widgetStream(input.id), {
      type: 'widget:update',
      name: input.name ?? undefined,
      config: JSON.stringify(changed),
    });
    const shown = { name: state.name, config: JSON.parse(state.config) as JsonObject, revision: state.revision };
    return { ...found, ...shown, updated_at: new Date(context.now).toISOString() };
  },
});

/** Deletes a widget; its page is closed. */
export const deleteWidget = command({
  name: 'deleteWidget',
  summary: 'Deletes a widget and ends its token',
  rest: del('/v1/widgets/{id}'),
  guard: [WIDGETS, permission('widgets:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteWidgetResult' }),
  errors: { ...WIDGET_NOT_FOUND, ...NOT_AN_EDITOR },
  async run({ input: { id }, caller, context, act, refuse }, services) {
    const { db, access } = services;
    const { account_id, user_id } = caller;
    const found = await widgetOf(db, { account_id, user_id }, id);
    if (found?.role === 'viewer') throw refuse('NOT_AN_EDITOR');
    if (found !== undefined) await revokeBoundTokens({ db, access }, { account_id, resource_id: id });
    // A repetition finds no row any more, and is answered by its own event.
    const sent_config = (state: WidgetState) => {
      const is_hidden = found === undefined && state.status === 'active';
      if (is_hidden || state.account_id !== account_id) throw refuse('WIDGET_NOT_FOUND');
    };
    const remove = { type: 'widget_count:remove' as const, widget_id: id, account_id };
    const also = () => countWrites(context, services.events, remove);
    await act(
      widget,
      widgetStream(id),
      { type: 'widget:delete' },
      { precondition: sent_config, additionalWrites: also },
    );
    return { success: true };
  },
});

/** Copies a widget, without its access entries. Source: spec doc2 §4.2 "Widgets". */
export const duplicateWidget = command({
  name: 'duplicateWidget',
  summary: 'Copies a widget and shows the token of the copy once',
  rest: post('/v1/widgets/{id}/duplicate', { status: 201 }),
  guard: [permission('widgets:create')],
  input: z.object({ id: z.uuid() }),
  output: WidgetWithToken,
  errors: { ...WIDGET_NOT_FOUND, ...TOO_MANY, ...TOKEN_NOT_SHOWN },
  async run({ input, ...creating }, services) {
    const { account_id, user_id } = creating.caller;
    const found = await widgetOf(services.db, { account_id, user_id }, input.id);
    if (found === undefined) throw creating.refuse('WIDGET_NOT_FOUND');
    const { name: original, config: settings } = found;
    return createdWidget(creating, services, found, { name: copyName(original), config: settings as JsonObject });
  },
});

const WidgetToken = z
  .object({ access_token: z.string().describe('It is never shown again') })
  .meta({ id: 'WidgetToken' });

/** Replaces the token of a widget's page; the old one ends at once. */
export const rotateWidgetToken = command({
  name: 'rotateWidgetToken',
  summary: "Replaces the token of a widget's page and shows it once",
  rest: post('/v1/widgets/{id}/rotate-token'),
  guard: [WIDGETS, permission('widgets:edit')],
  input: z.object({ id: z.uuid() }),
  output: WidgetToken,
  errors: { ...WIDGET_NOT_FOUND, ...NOT_AN_EDITOR, ...TOKEN_NOT_SHOWN },
  async run({ input: { id }, caller, act, refuse, newId }, services) {
    await editable(services, caller, id, refuse);
    const token = generateKey('widget');
    const { events } = await act(widget, widgetStream(id), {
      type: 'widget:rotate_token',
      ...{ token_id: newId('token'), token_hash: token.hash },
    });
    const rotated = events.find((event) => event.type === 'widget:token_rotated');
    if (rotated?.token_hash !== token.hash) throw refuse('TOKEN_NOT_SHOWN', { id });
    await revokeBoundTokens(services, { account_id: caller.account_id, resource_id: id });
    return { access_token: token.key };
  },
});

/** Narrows what a member may do with a widget. Source: spec doc2 §4.2 "Widgets". */
export const grantWidgetAccess = command({
  name: 'grantWidgetAccess',
  summary: 'Sets what a member may do with a widget; it never allows more than their role',
  rest: put('/v1/widgets/{id}/access/{user_id}'),
  guard: [permission('widgets:access-grant')],
  input: z.object({ id: z.uuid(), user_id: z.uuid(), role: z.string().max(100).nullish() }),
  output: WidgetAccess,
  errors: {
    ...WIDGET_NOT_FOUND,
    INVALID_ROLE: badRequest('Invalid role'),
    MEMBER_NOT_FOUND: notFound('Member not found'),
  },
  async run({ input, caller, context, act, refuse, newId }, { db }) {
    const { id, user_id } = input;
    const role = input.role ?? '';
    const { account_id } = caller;
    if ((await widgetOf(db, { account_id, user_id: null }, id)) === undefined) throw refuse('WIDGET_NOT_FOUND');
    if (!isAccessRole(role)) throw refuse('INVALID_ROLE');
    if (!(await isMember(db, account_id, user_id))) throw refuse('MEMBER_NOT_FOUND');
    const { user_id: granted_by } = actorOf(caller);
    const entry = { entry_id: newId('widget-access'), user_id, role, granted_by };
    const { state } = await act(widget, widgetStream(id), { type: 'widget:grant_access', ...entry });
    const [row] = await entriesOf(db, 'widget', id, user_id);
    const created_at = row?.created_at ?? new Date(context.now).toISOString();
    const { user_name = null, user_avatar = null } = row ?? {};
    const { entry_id } = state.access[user_id] ?? entry;
    return { id: entry_id, widget_id: id, user_id, user_name, user_avatar, role, granted_by, created_at };
  },
});

/** Removes a member's entry. */
export const revokeWidgetAccess = command({
  name: 'revokeWidgetAccess',
  summary: 'Lets a member do with a widget what their role allows',
  rest: del('/v1/widgets/{id}/access/{user_id}'),
  guard: [permission('widgets:access-revoke')],
  input: z.object({ id: z.uuid(), user_id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'RevokeWidgetAccessResult' }),
  errors: { ...WIDGET_NOT_FOUND, ENTRY_NOT_FOUND: notFound('Access entry not found') },
  async run({ input: { id, user_id }, caller: { account_id }, act, refuse }, { db }) {
    if ((await widgetOf(db, { account_id, user_id: null }, id)) === undefined) throw refuse('WIDGET_NOT_FOUND');
    await act(widget, widgetStream(id), { type: 'widget:revoke_access', user_id });
    return { success: true };
  },
});
