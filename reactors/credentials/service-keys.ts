import { reactor, type ReactionTools } from '../../app/reactor';
import { account, ACCOUNT_EVENTS, accountStream } from '../../domain/accounts/accounts';
import { SERVICE_KEY_EVENTS, serviceKey, serviceKeyStream } from '../../domain/credentials/service-keys';
import { DomainError } from '../../kernel/errors';

/**
 * Ends what a service key made when the key is revoked: its invites and further service keys. Keys are recorded in the
 * order of the log, so that anything made concurrently with the revocation ends too. Source: spec rulings, "keys and
 * what they make".
 */
export const serviceKeyEnds = reactor({
  name: 'service-keys',
  from: 'beginning',
  events: [SERVICE_KEY_EVENTS, ACCOUNT_EVENTS],
  on: {
    async 'account:service_key_created'({ key_id, account_id, made_with }, tools) {
      tools.keep(
        `insert into active_service_keys (key_id, account_id, made_with) values ($1, $2, $3) on conflict do nothing`,
        [key_id, account_id, made_with],
      );
      if (made_with !== null && !(await isActive(tools, made_with))) await revoke(tools, key_id);
    },
    async 'account:service_key_revoked'({ key_id, account_id }, tools) {
      tools.keep('delete from active_service_keys where key_id = $1', [key_id]);
      const made = await tools.db.query<{ key_id: string }>(
        'select key_id from active_service_keys where made_with = $1 order by key_id',
        [key_id],
        'service-keys-made',
      );
      for (const one of made) await revoke(tools, one.key_id);
      await deleteInvites(tools, account_id, key_id);
    },
    async 'account:invite_created'({ account_id, made_with }, tools) {
      if (made_with !== null && !(await isActive(tools, made_with))) await deleteInvites(tools, account_id, made_with);
    },
    'account:dissolved': ({ account_id }, { keep }) =>
      keep('delete from active_service_keys where account_id = $1', [account_id]),
  },
});

async function isActive({ db }: ReactionTools, key_id: string): Promise<boolean> {
  const found = await db.query('select 1 from active_service_keys where key_id = $1', [key_id], 'service-key-active');
  return found.length > 0;
}

const revoke = ({ act, now }: ReactionTools, key_id: string) =>
  unless('KEY_NOT_FOUND', act(serviceKey, serviceKeyStream(key_id), { type: 'service_key:revoke', now }));

const deleteInvites = ({ act, now }: ReactionTools, account_id: string, key_id: string) =>
  unless(
    'ACCOUNT_NOT_FOUND',
    act(account, accountStream(account_id), { type: 'account:delete_invites_of_key', key_id, now }),
  );

/** Ignores the refusal of a command whose target has ended already. */
async function unless(reason: string, acted: Promise<unknown>): Promise<void> {
  try {
    await acted;
  } catch (error) {
    if (!(error instanceof DomainError && error.reason === reason)) throw error;
  }
}
