import type { Platform } from '../../domain/common/vendors';
import { user, userStream } from '../../domain/identity/users';
import { actAsService } from '../../app/service-calls';
import type { Services } from '../../app/services';
import type { Settings } from '../../kernel/settings/settings';
import { DomainError } from '../../kernel/errors';
import { type ChatLogin, ChatRefused } from '../../vendors/chat/port';
import { ProviderUnavailable, TokenRefused } from '../../vendors/login/port';
import { customBotAllowed } from '../automation/custom-bots';
import { actingLogin } from '../identity/acting-login';
import { type KeptGrant, readGrant } from '../connections/connection-grants';
import { ReconnectRequired } from '../connections/connection-tokens';
import { readLoginGrant } from '../oauth/login-grants';

/** Remaining lifetime that a login's token needs for a call. */
const USABLE_MS = 5_000;
/** Service name recorded for the flags of logins. */
const SERVICE = 'chat';

export type SpeakerDeps = Pick<
  Services,
  'db' | 'events' | 'secrets' | 'texts' | 'settings' | 'connection_tokens' | 'logins'
>;

/** Speaker on a platform: a member by their login, or a bot by its connection. */
export interface Speaker {
  /** Id of the login or connection. */
  id: string;
  kind: 'login' | 'bot';
  /** The platform's id of the speaker; null for a login with Google, which does not name its channel. */
  user_id: string | null;
  username: string | null;
  scopes: readonly string[];
  /** App that the speaker's tokens were given to. */
  client_id: string;
  /**
   * Makes a call with the speaker's token; a bot's is renewed after a refusal, a login's is flagged.
   * @throws LoginRefused, and the errors of the call
   */
  speak<T>(call: (by: ChatLogin) => Promise<T>): Promise<T>;
}

/** The speaker has no login there, or the platform does not take its token: somebody must log in there again. */
export class LoginRefused extends Error {
  override readonly name = 'LoginRefused';
}

/** The account, and the member that acts; null for a credential without one, for which the bot speaks. */
export interface Speaking {
  account_id: string;
  user_id: string | null;
  platform: Platform;
}

/**
 * The speaker for a caller: the acting user's login, or the bot for a credential without a user; never the owner of the
 * account by default.
 * @throws LoginRefused without one, or when its token has ended
 */
export const speakerFor = (deps: SpeakerDeps, { account_id, user_id, platform }: Speaking): Promise<Speaker> =>
  user_id === null ? botSpeaker(deps, account_id, platform) : loginSpeaker(deps, { account_id, user_id, platform });

async function loginSpeaker(
  deps: SpeakerDeps,
  acting: { account_id: string; user_id: string; platform: Platform },
): Promise<Speaker> {
  const login = await actingLogin(deps.db, acting);
  if (login === null || login.reconnect_required) throw new LoginRefused();
  const kept = await readLoginGrant(deps, login.id);
  if (kept === null) throw new LoginRefused();
  const flag = async (): Promise<never> => {
    await flagLogin(deps, acting.user_id, login.id, kept.access_token);
    throw new LoginRefused();
  };
  if (kept.expires_at !== null && kept.expires_at - Date.now() < USABLE_MS) return flag();
  const { provider_account_id, access_token: token, username, scopes } = kept;
  const client_id = kept.client_id ?? clientOf(deps.settings, acting.platform);
  return {
    ...{ id: login.id, kind: 'login', username: username ?? kept.display_name, scopes, client_id },
    user_id: acting.platform === 'youtube' ? null : provider_account_id,
    async speak(call) {
      try {
        return await call({ user_id: provider_account_id, token, client_id });
      } catch (error) {
        if (isUnauthorised(error) && (await isDead(deps, acting.platform, kept.access_token))) return flag();
        throw error;
      }
    },
  };
}

/** The account's own bot, else the installation's where the account lets it act. */
async function botSpeaker(deps: SpeakerDeps, account_id: string, platform: Platform): Promise<Speaker> {
  const [bot] = await deps.db.query<{ id: string }>(
    `select id from (
       select id, 0 as place from bot_connections where account_id = $1 and platform = $2 and not reconnect_required
         and ${customBotAllowed('$1::uuid')}
       union all
       select s.bot_connection_id, 1 from system_connections s
         join channel_connections c on c.account_id = $1 and c.platform = $2 and c.bot_enabled
       where s.platform = $2 and s.bot_connection_id is not null and not s.reconnect_required) bots
     order by place limit 1`,
    [account_id, platform],
    'chat-bot',
  );
  const grant = bot === undefined ? null : await readGrant(deps, bot.id);
  if (grant === null) throw new LoginRefused();
  return connectionSpeaker(deps, grant);
}

/** A bot, or a channel itself, by the tokens of its connection; a dead token is renewed once. */
export function connectionSpeaker(deps: SpeakerDeps, grant: KeptGrant): Speaker {
  const { connection_id: id, platform_user_id: user_id, username, scopes, client_id } = grant;
  const token = (refused?: string) =>
    deps.connection_tokens.token(id, refused).catch((error: unknown) => {
      throw error instanceof ReconnectRequired ? new LoginRefused() : error;
    });
  return {
    ...{ id, kind: 'bot', user_id, username, scopes, client_id },
    async speak(call) {
      const first = await token();
      try {
        return await call({ user_id, token: first, client_id });
      } catch (error) {
        const of_installation = grant.app === 'system';
        if (!isUnauthorised(error) || (of_installation && !(await isDead(deps, grant.platform as Platform, first))))
          throw error;
        return call({ user_id, token: await token(first), client_id });
      }
    },
  };
}

const isUnauthorised = (error: unknown): boolean => error instanceof ChatRefused && error.status === 401;

/**
 * Whether the platform rejects this token of the installation's app: Twitch answers 401 for a missing scope, too. False
 * while it does not answer.
 */
async function isDead({ logins }: SpeakerDeps, platform: Platform, token: string): Promise<boolean> {
  const provider = logins.get(platform === 'youtube' ? 'google' : platform);
  if (provider === undefined) return true;
  try {
    await provider.identify(token);
    return false;
  } catch (error) {
    if (error instanceof TokenRefused) return true;
    if (error instanceof ProviderUnavailable) return false;
    throw error;
  }
}

/** The installation's app at a platform, for logins that were stored before they named theirs. */
export const clientOf = ({ twitch, google, kick, trovo }: Settings, platform: Platform): string =>
  ({ twitch, youtube: google, kick, trovo })[platform].client_id[0] ?? '';

/** Flags the login, unless its person has logged in again meanwhile. */
async function flagLogin(deps: SpeakerDeps, user_id: string, login_connection_id: string, token: string) {
  const act = actAsService(SERVICE, deps.events);
  const say = (type: 'user:require_login_reconnect' | 'user:clear_login_reconnect') =>
    act(user, userStream(user_id), { type, login_connection_id });
  try {
    await say('user:require_login_reconnect');
    const kept = await readLoginGrant(deps, login_connection_id);
    if (kept !== null && kept.access_token !== token) await say('user:clear_login_reconnect');
  } catch (error) {
    const gone = error instanceof DomainError && ['USER_NOT_FOUND', 'LOGIN_NOT_FOUND'].includes(error.reason);
    if (!gone) throw error;
  }
}
