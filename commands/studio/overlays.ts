import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { actorOf } from '../../access/authentication/caller';
import { generateKey } from '../../access/authentication/keys';
import { revokeBoundTokens } from '../../access/authentication/tokens/bound-tokens';
import { limitOf, PLAN_LIMIT_REACHED } from '../../access/authorization/plan-limits';
import { command, del, patch, permission, post } from '../../app/operation';
import { newEvents } from '../../app/write-path/event-ids';
import { layers, layersStream, type Layer } from '../../domain/studio/layers';
import { copyName } from '../../domain/studio/names';
import { overlays, overlaysStream, type AccessCopy, type OverlayEvent } from '../../domain/studio/overlays';
import { entriesOf } from '../../views/studio/access-entries';
import { layersOf, Overlay, overlayOf } from '../../views/studio/overlays';
import {
  editableOverlay,
  FOLDER_NOT_FOUND,
  NOT_AN_EDITOR,
  OVERLAY_NOT_FOUND,
  OVERLAYS,
  shownName,
  TOKEN_NOT_SHOWN,
} from './overlay-parts';

const BACKGROUND = /^(transparent|#([0-9A-Fa-f]{3,4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8}))$/;
const side = z.int().min(1).max(16_384);
const settings = {
  name: shownName.nullish(),
  width: side.nullish(),
  height: side.nullish(),
  background: z.string().regex(BACKGROUND, 'background is transparent or a hex colour').nullish(),
  folder_id: z.uuid().nullish(),
};
const DEFAULTS = { name: 'Main Overlay', width: 1920, height: 1080, background: 'transparent' };

const OverlayWithToken = z
  .object({ ...Overlay.shape, access_token: z.string().describe('Of its page; it is never shown again') })
  .meta({ id: 'OverlayWithToken' });

/** 12 characters that an address takes as they are. Source: spec extra-facts §7. */
const newKey = (): string => randomBytes(9).toString('base64url');

type Created = Extract<OverlayEvent, { type: 'overlay:created' }>;

function shown(created: Created, revision: number, access_token: string): z.output<typeof OverlayWithToken> {
  const { overlay_id: id, account_id, folder_id, name, key, width, height, background, created_at } = created;
  const times = { created_at, updated_at: created_at };
  return { id, account_id, folder_id, name, key, width, height, background, revision, ...times, access_token };
}

/** Creates an overlay and shows the token of its page once. Source: spec extra-facts §7. */
export const createOverlay = command({
  name: 'createOverlay',
  summary: 'Creates an overlay and shows the token of its page once',
  rest: post('/v1/overlays', { status: 201 }),
  graphql: { argument: 'input' },
  guard: [OVERLAYS, permission('overlays:create')],
  input: z.object(settings).meta({ id: 'CreateOverlayInput' }),
  output: OverlayWithToken,
  errors: { ...FOLDER_NOT_FOUND, ...TOKEN_NOT_SHOWN, ...PLAN_LIMIT_REACHED },
  async run({ input, caller, act, refuse, newId }, { db }) {
    const { account_id } = caller;
    const token = generateKey('overlay');
    const overlay_id = newId('overlay');
    const { events } = await act(overlays, overlaysStream(account_id), {
      type: 'overlay:create',
      ...{ overlay_id, account_id, key: newKey(), created_by: actorOf(caller).user_id, access: [] },
      ...{ token_id: newId('token'), token_hash: token.hash },
      name: input.name ?? DEFAULTS.name,
      width: input.width ?? DEFAULTS.width,
      height: input.height ?? DEFAULTS.height,
      background: input.background ?? DEFAULTS.background,
      folder_id: input.folder_id ?? null,
      most: await limitOf(db, account_id, 'max_overlays'),
    });
    const created = createdIn(events);
    if (created?.token_hash !== token.hash) throw refuse('TOKEN_NOT_SHOWN', { id: overlay_id });
    return shown(created, 0, token.key);
  },
});

const createdIn = (events: readonly OverlayEvent[]): Created | undefined =>
  events.find((event) => event.type === 'overlay:created');

/** Changes an overlay; its sources are sent the change. */
export const updateOverlay = command({
  name: 'updateOverlay',
  summary: 'Changes an overlay; what is left out stays as it is, and a null folder takes it out of its folder',
  rest: patch('/v1/overlays/{id}'),
  per_minute: 120,
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [OVERLAYS, permission('overlays:edit')],
  input: z.object({ id: z.uuid(), ...settings }).meta({ id: 'UpdateOverlayInput' }),
  output: Overlay,
  errors: { ...OVERLAY_NOT_FOUND, ...NOT_AN_EDITOR, ...FOLDER_NOT_FOUND },
  async run({ input, caller, context, act, refuse }, services) {
    const { account_id } = caller;
    const found = await editableOverlay(services, caller, input.id, refuse);
    const { state, events } = await act(overlays, overlaysStream(account_id), {
      type: 'overlay:update',
      overlay_id: input.id,
      name: input.name ?? undefined,
      width: input.width ?? undefined,
      height: input.height ?? undefined,
      background: input.background ?? undefined,
      folder_id: input.folder_id,
    });
    const now = state.overlays[input.id];
    if (now === undefined) throw refuse('OVERLAY_NOT_FOUND');
    const { name, width, height, background, folder_id } = now;
    const updated_at = events.length === 0 ? found.updated_at : new Date(context.now).toISOString();
    return { ...found, name, width, height, background, folder_id, updated_at };
  },
});

/** Deletes an overlay; its tokens and links end. */
export const deleteOverlay = command({
  name: 'deleteOverlay',
  summary: 'Deletes an overlay and ends its token and its links',
  rest: del('/v1/overlays/{id}'),
  guard: [OVERLAYS, permission('overlays:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteOverlayResult' }),
  errors: { ...OVERLAY_NOT_FOUND, ...NOT_AN_EDITOR },
  async run({ input: { id }, caller, act, refuse }, services) {
    const { account_id, user_id } = caller;
    const found = await overlayOf(services.db, { account_id, user_id }, id);
    if (found?.role === 'viewer') throw refuse('NOT_AN_EDITOR');
    if (found !== undefined) await revokeBoundTokens(services, { account_id, resource_id: id });
    // A repetition finds no row any more, and is answered by its own event.
    const given = () => found === undefined && refuse('OVERLAY_NOT_FOUND');
    await act(
      overlays,
      overlaysStream(account_id),
      { type: 'overlay:delete', overlay_id: id },
      { precondition: given },
    );
    return { success: true };
  },
});

/** Copies an overlay with its layers and access entries, without its links. */
export const duplicateOverlay = command({
  name: 'duplicateOverlay',
  summary: 'Copies an overlay and shows the token of the copy once',
  rest: post('/v1/overlays/{id}/duplicate', { status: 201 }),
  guard: [OVERLAYS, permission('overlays:create')],
  input: z.object({ id: z.uuid() }),
  output: OverlayWithToken,
  errors: { ...OVERLAY_NOT_FOUND, ...FOLDER_NOT_FOUND, ...TOKEN_NOT_SHOWN, ...PLAN_LIMIT_REACHED },
  async run({ input: { id }, caller, context, act, refuse, newId }, { db }) {
    const { account_id, user_id } = caller;
    const found = await overlayOf(db, { account_id, user_id }, id);
    if (found === undefined) throw refuse('OVERLAY_NOT_FOUND');
    const [{ layers: drawn }, entries] = await Promise.all([layersOf(db, id), entriesOf(db, 'overlay', id)]);
    const copies = drawn.map((one, index): Layer => {
      const { type, name, visible, sort_order, locked } = one;
      return {
        id: newId(`layer ${index}`),
        type,
        name,
        config: JSON.stringify(one.config),
        visible,
        sort_order,
        locked,
      };
    });
    const access = entries.map((entry): AccessCopy => ({
      entry_id: newId(`access ${entry.user_id}`),
      user_id: entry.user_id,
      role: entry.role,
      granted_by: entry.granted_by,
    }));
    const token = generateKey('overlay');
    const overlay_id = newId('overlay');
    const key = newKey();
    const now = new Date(context.now).toISOString();
    const stream = layersStream(overlay_id);
    const copied = layers.decide(layers.initial, {
      type: 'layers:copy',
      ...{ overlay_id, account_id, key, revision: 0, layers: copies, now },
    });
    const { name, width, height, background, folder_id } = found;
    const { events } = await act(
      overlays,
      overlaysStream(account_id),
      {
        type: 'overlay:create',
        ...{
          overlay_id,
          account_id,
          key,
          created_by: actorOf(caller).user_id,
          access,
          width,
          height,
          background,
          folder_id,
        },
        ...{ token_id: newId('token'), token_hash: token.hash, name: copyName(name) },
        most: await limitOf(db, account_id, 'max_overlays'),
      },
      {
        additionalWrites: () =>
          copied.length === 0 ? [] : [{ stream, expected: 'none', events: newEvents(context, stream, copied) }],
      },
    );
    const created = createdIn(events);
    if (created?.token_hash !== token.hash) throw refuse('TOKEN_NOT_SHOWN', { id: overlay_id });
    return shown(created, copied.length, token.key);
  },
});

/** Replaces the token of an overlay's page; every earlier one ends, and links stay. */
export const rotateOverlayToken = command({
  name: 'rotateOverlayToken',
  summary: "Replaces the token of an overlay's page; shared links stay",
  rest: post('/v1/overlays/{id}/rotate-token'),
  guard: [OVERLAYS, permission('overlays:edit')],
  input: z.object({ id: z.uuid() }),
  output: OverlayWithToken,
  errors: { ...OVERLAY_NOT_FOUND, ...NOT_AN_EDITOR, ...TOKEN_NOT_SHOWN },
  async run({ input: { id }, caller, act, refuse, newId }, services) {
    const { account_id } = caller;
    const { role: _role, ...found } = await editableOverlay(services, caller, id, refuse);
    const token = generateKey('overlay');
    const { events } = await act(overlays, overlaysStream(account_id), {
      type: 'overlay:rotate_token',
      ...{ overlay_id: id, token_id: newId('token'), token_hash: token.hash },
    });
    const rotated = events.find((event) => event.type === 'overlay:token_rotated');
    if (rotated?.token_hash !== token.hash) throw refuse('TOKEN_NOT_SHOWN', { id });
    await revokeBoundTokens(services, { account_id, resource_id: id, kind: 'overlay' });
    return { ...found, access_token: token.key };
  },
});
