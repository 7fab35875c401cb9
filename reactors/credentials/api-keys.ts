import { reactor, type ReactionTools } from '../../app/reactor';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { API_KEY_EVENTS, apiKey, apiKeyStream } from '../../domain/credentials/api-keys';
import { DomainError } from '../../kernel/errors';

interface Membership {
  account_id: string;
  user_id: string;
}

/**
 * Revokes a member's keys at the end of the membership. Keys are recorded in the order of the log, so that a returned
 * member's new keys are distinguished from the old ones, however late this runs. Source: spec doc1 §5.4 rule 6.
 */
export const memberKeys = reactor({
  name: 'api-keys',
  from: 'beginning',
  events: [API_KEY_EVENTS, ACCOUNT_EVENTS],
  on: {
    'api_key:created': ({ key_id, account_id, user_id }, { keep }) =>
      keep(
        'insert into member_keys (key_id, account_id, user_id) values ($1, $2, $3) on conflict (key_id) do nothing',
        [key_id, account_id, user_id],
      ),
    'api_key:revoked'({ key_id }, { keep }) {
      keep('delete from member_keys where key_id = $1', [key_id]);
      keep('delete from credential_origins where credential_id = $1', [key_id]);
    },
    'account:member_removed': revokeAll,
    // A key created concurrently with the removal follows it in the log and must not become valid again.
    'account:member_added': revokeAll,
  },
});

async function revokeAll({ account_id, user_id }: Membership, { act, db, now }: ReactionTools): Promise<void> {
  const keys = await db.query<{ key_id: string }>(
    'select key_id from member_keys where account_id = $1 and user_id = $2 order by key_id',
    [account_id, user_id],
    'member-keys',
  );
  for (const { key_id } of keys) {
    try {
      await act(apiKey, apiKeyStream(key_id), { type: 'api_key:revoke', now });
    } catch (error) {
      // Its owner has revoked it meanwhile.
      if (!(error instanceof DomainError && error.reason === 'KEY_NOT_FOUND')) throw error;
    }
  }
}
