import { z } from 'zod';
import { actorOf } from '../../access/authentication/caller';
import { generateKey } from '../../access/authentication/keys';
import { command, conflict, del, invalid, notFound, permission, post } from '../../app/operation';
import { MAX_LINKS, overlays, overlaysStream } from '../../domain/studio/overlays';
import { linksOf, overlayOf, OverlaySharedLink } from '../../views/studio/overlays';
import { editableOverlay, NOT_AN_EDITOR, OVERLAY_NOT_FOUND, OVERLAYS } from './overlay-parts';

const LINK_NOT_SHOWN = {
  LINK_NOT_SHOWN: conflict('The link was created by an earlier request and is not shown again'),
};
/** Time that an editor sees an overlay before the editor asks again. */
const EDITOR_MS = 15 * 60_000;
/** A later end has no RFC 3339 text in UTC. */
const LAST_YEAR = 9999;
const access_token = z.string().describe('It is never shown again');

/** Shares an overlay for a time. */
export const createOverlaySharedLink = command({
  name: 'createOverlaySharedLink',
  summary: 'Shares an overlay until a time, and shows the token of the link once',
  rest: post('/v1/overlay-shared-links', { status: 201 }),
  per_minute: 60,
  graphql: { argument: 'input' },
  guard: [OVERLAYS, permission('overlays:edit')],
  input: z
    .object({
      overlay_id: z.uuid(),
      expires_at: z.iso
        .datetime({ offset: true })
        .refine((end) => new Date(end).getUTCFullYear() <= LAST_YEAR, `is after the year ${LAST_YEAR} in UTC`),
    })
    .meta({ id: 'CreateOverlaySharedLinkInput' }),
  output: z.object({ ...OverlaySharedLink.shape, access_token }).meta({ id: 'OverlaySharedLinkCreated' }),
  errors: {
    ...OVERLAY_NOT_FOUND,
    ...NOT_AN_EDITOR,
    ...LINK_NOT_SHOWN,
    ENDS_IN_THE_PAST: invalid('expires_at is in the past'),
    TOO_MANY_LINKS: conflict(`An overlay has at most ${MAX_LINKS} active links`),
  },
  async run({ input, caller, context, act, refuse, newId }, services) {
    const { overlay_id } = input;
    const expires_at = new Date(input.expires_at);
    if (expires_at.getTime() <= context.now) throw refuse('ENDS_IN_THE_PAST');
    await editableOverlay(services, caller, overlay_id, refuse);
    const token = generateKey('shared_overlay');
    const link_id = newId('overlay-link');
    const { events } = await act(overlays, overlaysStream(caller.account_id), {
      type: 'overlay:share',
      ...{ overlay_id, link_id, token_hash: token.hash, is_listed: true, created_by: actorOf(caller).user_id },
      expires_at: expires_at.toISOString(),
    });
    const shared = events.find((event) => event.type === 'overlay:shared');
    if (shared?.token_hash !== token.hash) throw refuse('LINK_NOT_SHOWN');
    const { created_at } = shared;
    return { id: link_id, overlay_id, created_at, expires_at: shared.expires_at, access_token: token.key };
  },
});

/** Ends a link. */
export const deleteOverlaySharedLink = command({
  name: 'deleteOverlaySharedLink',
  summary: 'Ends a shared link',
  rest: del('/v1/overlay-shared-links/{id}'),
  guard: [OVERLAYS, permission('overlays:edit')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteOverlaySharedLinkResult' }),
  errors: { ...NOT_AN_EDITOR, LINK_NOT_FOUND: notFound('Shared link not found') },
  async run({ input: { id }, caller: { account_id, user_id }, act, refuse }, { db }) {
    const [link] = await linksOf(db, { account_id, user_id }, id);
    if (link?.role === 'viewer') throw refuse('NOT_AN_EDITOR');
    // A repetition finds no row any more, and is answered by its own event.
    const given = () => link === undefined && refuse('LINK_NOT_FOUND');
    await act(overlays, overlaysStream(account_id), { type: 'overlay:unshare', link_id: id }, { precondition: given });
    return { success: true };
  },
});

/** Shows an overlay to an editor for a quarter of an hour: a session opens no channel of an overlay. */
export const createOverlayEditorShare = command({
  name: 'createOverlayEditorShare',
  summary: 'A token that shows an overlay to its editor for 15 minutes',
  rest: post('/v1/overlays/{id}/editor-share', { status: 201 }),
  per_minute: 60,
  guard: [OVERLAYS, permission('overlays:read')],
  input: z.object({ id: z.uuid() }),
  output: z
    .object({ access_token, expires_at: z.string().meta({ format: 'date-time' }) })
    .meta({ id: 'OverlayEditorShare' }),
  errors: { ...OVERLAY_NOT_FOUND, ...LINK_NOT_SHOWN },
  async run({ input: { id }, caller, context, act, refuse, newId }, { db }) {
    const { account_id, user_id } = caller;
    if ((await overlayOf(db, { account_id, user_id }, id)) === undefined) throw refuse('OVERLAY_NOT_FOUND');
    const token = generateKey('shared_overlay');
    const { events } = await act(overlays, overlaysStream(account_id), {
      type: 'overlay:share',
      ...{ overlay_id: id, link_id: newId('editor-share'), token_hash: token.hash, is_listed: false },
      created_by: actorOf(caller).user_id,
      expires_at: new Date(context.now + EDITOR_MS).toISOString(),
    });
    const shared = events.find((event) => event.type === 'overlay:shared');
    if (shared?.token_hash !== token.hash) throw refuse('LINK_NOT_SHOWN');
    return { access_token: token.key, expires_at: shared.expires_at };
  },
});
