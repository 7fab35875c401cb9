import type { Services } from '../../app/services';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import type { ChatLogin } from '../../vendors/chat/port';
import { HttpFailed } from '../../vendors/http/port';
import { COSTS } from '../../vendors/youtube/port';
import { identityHash, identityHasher } from '../identity/identities';

/** Rows of one statement. */
const TOGETHER = 5_000;
const UNHASHED = `
  select account_id, person_key, platform, platform_user_id from platform_users
  where identity_hash is null and platform_user_id is not null order by account_id, person_key limit ${TOGETHER}`;
const HASH = `
  update platform_users u set identity_hash = h.identity_hash
  from (select unnest($1::uuid[]) as account_id, unnest($2::uuid[]) as person_key, unnest($3::text[]) as identity_hash) h
  where u.account_id = h.account_id and u.person_key = h.person_key and u.platform_user_id is not null`;

/**
 * Keeps the identity hash with each person of the chats who has none yet. The projection cannot: its rows depend on no
 * secret. Returns the number of persons.
 */
export async function keepIdentities(
  services: Pick<Services, 'db' | 'secrets'>,
  signal?: AbortSignal,
): Promise<number> {
  const hash = await identityHasher(services);
  let all = 0;
  for (let some = TOGETHER; some === TOGETHER && !signal?.aborted; all += some) {
    const people =
      await services.db.query<Record<'account_id' | 'person_key' | 'platform' | 'platform_user_id', string>>(UNHASHED);
    some = people.length;
    if (some === 0) break;
    await services.db.query(HASH, [
      people.map(({ account_id }) => account_id),
      people.map(({ person_key }) => person_key),
      people.map(({ platform, platform_user_id }) => hash(platform, platform_user_id)),
    ]);
  }
  return all;
}

type ChannelServices = Pick<Services, 'db' | 'secrets' | 'chat' | 'spendYoutube'>;

/** Login with Google. */
interface GoogleLogin {
  user_id: string;
  login_connection_id: string;
}

/**
 * Asks YouTube for the channel of a login with Google, and keeps its identity hash with the user. Returns the hash;
 * null where the login has no channel, or YouTube does not name it now.
 */
export async function keepChannel(
  services: ChannelServices,
  { user_id, login_connection_id }: GoogleLogin,
  by: ChatLogin,
): Promise<string | null> {
  const { db, chat } = services;
  const channel = chat.get('youtube')?.ownChannel;
  if (!channel || !(await services.spendYoutube(by.client_id, COSTS.list))) return null;
  const channel_id = await channel(by).catch((error: unknown) => {
    if (error instanceof HttpFailed || error instanceof NotSent || error instanceof OutcomeUnknown) return null;
    throw error;
  });
  if (channel_id === null) return null;
  const identity_hash = await identityHash(services, 'youtube', channel_id);
  await db.query(
    `insert into user_channels (user_id, identity_hash, login_connection_id) values ($1, $2, $3)
     on conflict (user_id, identity_hash) do update
       set login_connection_id = excluded.login_connection_id, kept_at = clock_timestamp()`,
    [user_id, identity_hash, login_connection_id],
    'user-channel-keep',
  );
  return identity_hash;
}

/** Identity hash of the channel of a login with Google: the kept one, else as {@link keepChannel}. */
export async function channelOf(services: ChannelServices, login: GoogleLogin, by: ChatLogin): Promise<string | null> {
  const [kept] = await services.db.query<{ identity_hash: string }>(
    'select identity_hash from user_channels where login_connection_id = $1 order by kept_at desc limit 1',
    [login.login_connection_id],
    'user-channel',
  );
  return kept?.identity_hash ?? keepChannel(services, login, by);
}
