import { v7 } from 'uuid';
import { generateKey } from '../../access/authentication/keys';
import { accountStream } from '../../domain/accounts/accounts';
import { apiKeyStream } from '../../domain/credentials/api-keys';
import type { EventStore, StoredEvent } from '../../engines/event-store/port';
import type { TestServer } from './server';
import { ApiClient } from './vendor-cloud';

/** The demo account's second member, who comes and goes by events, as other processes would append them. */
export interface Member {
  join(): Promise<void>;
  /** Gives them a key; answers its id and a client that uses it. */
  createKey(): Promise<{ key_id: string; bot: ApiClient }>;
  leave(): Promise<StoredEvent>;
  /** What the key's stream tells. */
  story(key_id: string): Promise<StoredEvent[]>;
}

export async function memberOf(server: TestServer, store: EventStore): Promise<Member> {
  const { account_id, other } = server.credentials;
  const person = { account_id, user_id: other.user_id };
  const now = () => new Date().toISOString();
  const [role] = await server.database!.db.query(
    `select id from account_roles where account_id = $1 and slug = 'administrator'`,
    [account_id],
  );
  async function append(stream: string, type: string, data: StoredEvent['data']): Promise<void> {
    const events = [{ id: v7(), type, data }];
    await store.append([{ stream, expected: 'any', events }], { actor_kind: 'test', account_id });
  }
  return {
    join: () =>
      append(accountStream(account_id), 'account:member_added', {
        ...person,
        membership_id: v7(),
        role_id: role!.id as string,
        added_at: now(),
      }),
    async createKey() {
      const [key_id, made] = [v7(), generateKey('user_api_key')];
      await append(apiKeyStream(key_id), 'api_key:created', {
        key_id,
        ...person,
        key_hash: made.hash,
        key_prefix: made.prefix,
        label: 'Bot',
        permissions: ['events:read'],
        expires_at: null,
        created_at: now(),
      });
      return { key_id, bot: new ApiClient(server.base_url, made.key) };
    },
    async leave() {
      const stream = accountStream(account_id);
      await append(stream, 'account:member_removed', { ...person, membership_id: v7(), removed_at: now() });
      const stored = await store.read(stream);
      return stored.filter(({ type }) => type === 'account:member_removed').at(-1)!;
    },
    story: (key_id) => store.read(apiKeyStream(key_id)),
  };
}
