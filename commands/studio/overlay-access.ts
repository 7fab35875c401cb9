import { z } from 'zod';
import { actorOf } from '../../access/authentication/caller';
import { badRequest, command, del, notFound, permission, put } from '../../app/operation';
import { isAccessRole } from '../../domain/studio/access-entries';
import { overlays, overlaysStream } from '../../domain/studio/overlays';
import { entriesOf, isMember } from '../../views/studio/access-entries';
import { OverlayAccess, overlayOf } from '../../views/studio/overlays';
import { OVERLAY_NOT_FOUND, OVERLAYS } from './overlay-parts';

/** Narrows what a member may do with an overlay. */
export const grantOverlayAccess = command({
  name: 'grantOverlayAccess',
  summary: 'Sets what a member may do with an overlay; it never allows more than their role',
  rest: put('/v1/overlays/{id}/access/{user_id}'),
  guard: [OVERLAYS, permission('overlays:access-grant')],
  input: z.object({ id: z.uuid(), user_id: z.uuid(), role: z.string().max(100).nullish() }),
  output: OverlayAccess,
  errors: {
    ...OVERLAY_NOT_FOUND,
    INVALID_ROLE: badRequest('Invalid role'),
    MEMBER_NOT_FOUND: notFound('Member not found'),
  },
  async run({ input, caller, context, act, refuse, newId }, { db }) {
    const { account_id } = caller;
    const { user_id: granted_by } = actorOf(caller);
    const { id, user_id } = input;
    const role = input.role ?? '';
    if ((await overlayOf(db, { account_id, user_id: null }, id)) === undefined) throw refuse('OVERLAY_NOT_FOUND');
    if (!isAccessRole(role)) throw refuse('INVALID_ROLE');
    if (!(await isMember(db, account_id, user_id))) throw refuse('MEMBER_NOT_FOUND');
    const entry = { entry_id: newId('overlay-access'), user_id, role, granted_by };
    const { state } = await act(overlays, overlaysStream(account_id), {
      type: 'overlay:grant_access',
      overlay_id: id,
      ...entry,
    });
    const [row] = await entriesOf(db, 'overlay', id, user_id);
    const { user_name = null, user_avatar = null } = row ?? {};
    const created_at = row?.created_at ?? new Date(context.now).toISOString();
    const entry_id = state.overlays[id]?.access[user_id]?.entry_id ?? entry.entry_id;
    return { id: entry_id, overlay_id: id, user_id, user_name, user_avatar, role, granted_by, created_at };
  },
});

/** Removes a member's entry. */
export const revokeOverlayAccess = command({
  name: 'revokeOverlayAccess',
  summary: 'Lets a member do with an overlay what their role allows',
  rest: del('/v1/overlays/{id}/access/{user_id}'),
  guard: [OVERLAYS, permission('overlays:access-revoke')],
  input: z.object({ id: z.uuid(), user_id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'RevokeOverlayAccessResult' }),
  errors: { ...OVERLAY_NOT_FOUND, ENTRY_NOT_FOUND: notFound('Access entry not found') },
  async run({ input: { id, user_id }, caller: { account_id }, act }) {
    const command = { type: 'overlay:revoke_access' as const, overlay_id: id, user_id };
    await act(overlays, overlaysStream(account_id), command);
    return { success: true };
  },
});
