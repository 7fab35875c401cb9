import { reactor, type ReactionTools } from '../access/reactor';
import { ACCOUNT_EVENTS } from '../domain/accounts';
import { API_KEY_EVENTS, apiKey, apiKeyStream } from '../domain/api-keys';
import { DomainError } from '../kernel/errors';

interface Membership {
  account_id: string;
  user_id: string;
}

/**
 * The keys that a membership leaves behind are revoked. Which there were is remembered in the order of the log, so that
 * keys of a member who came back are told from those before, however late this runs. Source: spec doc1 §5.4 rule 6.
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
    'api_key:revoked': ({ key_id }, { keep }) => keep('delete from member_keys where key_id = $1', [key_id]),
    'account:member_removed': revokeAll,
    // A key that was made beside the removal came after it in the log: it must not live again.
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
      // Its owner was faster.
      if (!(error instanceof DomainError && error.reason === 'KEY_NOT_FOUND')) throw error;
    }
  }
}
