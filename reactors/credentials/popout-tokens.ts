import { reactor, type ReactionTools } from '../../app/reactor';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { POPOUT_TOKEN_EVENTS, popoutToken, popoutTokenStream } from '../../domain/credentials/popout-tokens';

/**
 * Revokes popout tokens at the end of a membership: those that the member made, and those that act for them. Source:
 * spec doc1 §5.5.
 */
export const memberTokens = reactor({
  name: 'tokens',
  from: 'beginning',
  events: [POPOUT_TOKEN_EVENTS, ACCOUNT_EVENTS],
  on: {
    'popout_token:created': ({ token_id, account_id, user_id, created_by }, { keep }) =>
      keep(
        `insert into member_tokens (token_id, account_id, user_id)
         select $1, $2, unnest($3::uuid[]) on conflict do nothing`,
        [token_id, account_id, [...new Set([user_id, created_by])]],
      ),
    'popout_token:revoked'({ token_id }, { keep }) {
      keep('delete from member_tokens where token_id = $1', [token_id]);
      keep('delete from credential_origins where credential_id = $1', [token_id]);
    },
    'account:member_removed': revokeAll,
    // A token created concurrently with the removal follows it in the log and must not become valid again.
    'account:member_added': revokeAll,
    // A dissolved account's recorded tokens are deleted, and so are bound tokens, which are rows without events.
    'account:dissolved': ({ account_id }, { keep }) => {
      keep('delete from member_tokens where account_id = $1', [account_id]);
      keep('delete from bound_tokens where account_id = $1', [account_id]);
      keep('delete from credential_origins where account_id = $1', [account_id]);
    },
  },
});

interface Membership {
  account_id: string;
  user_id: string;
}

async function revokeAll({ account_id, user_id }: Membership, { act, db, now }: ReactionTools): Promise<void> {
  const tokens = await db.query<{ token_id: string }>(
    'select token_id from member_tokens where account_id = $1 and user_id = $2 order by token_id',
    [account_id, user_id],
    'member-tokens',
  );
  for (const { token_id } of tokens)
    await act(popoutToken, popoutTokenStream(token_id), { type: 'popout_token:revoke', now });
}
