import { z } from 'zod';
import { Invite, InvitePreview, inviteOfCode, invitesOf } from '../../views/accounts/invites';
import { account, get, notFound, numbered, permission, publicAccess, query } from '../../app/operation';

export const invites = query({
  name: 'invites',
  // Source: spec extra-facts §4.
  summary: 'Invites into an account, newest first; their codes are shown only when they are made',
  rest: get('/v1/accounts/{id}/invites'),
  pages: numbered('PaginatedInviteResult'),
  guard: [account('id'), permission('members:read')],
  input: z.object({ id: z.uuid() }),
  output: Invite,
  run: ({ caller, page }, { db }) => invitesOf(db, caller.account_id, page),
});

export const inviteByCode = query({
  name: 'inviteByCode',
  // Source: spec extra-facts §4, rulings "paths left open".
  summary: 'What an invite is for, to whoever has its code',
  rest: get('/v1/invites/{code}'),
  per_minute: 30,
  guard: [publicAccess],
  input: z.object({ code: z.string().min(1).max(100) }),
  output: InvitePreview,
  errors: { INVITE_NOT_FOUND: notFound('Invite not found') },
  async run({ input, refuse }, { db }) {
    const found = await inviteOfCode(db, input.code);
    if (found === null) throw refuse('INVITE_NOT_FOUND');
    return found;
  },
});
