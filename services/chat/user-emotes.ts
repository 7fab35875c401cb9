import type { Services } from '../../app/services';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import type { Emote } from '../../vendors/emotes/port';
import { HttpFailed } from '../../vendors/http/port';
import { actingLogin } from '../identity/acting-login';
import { readLoginGrant } from '../oauth/login-grants';

/** Emotes of Twitch that a user may write by their login; none without a login, and while Twitch refuses or fails. */
export async function userEmotesOf(
  services: Pick<Services, 'db' | 'secrets' | 'chat'>,
  { account_id, user_id }: { account_id: string | null; user_id: string | null },
): Promise<Emote[]> {
  if (user_id === null) return [];
  const login = await actingLogin(services.db, { account_id, user_id, platform: 'twitch' });
  const kept = login === null || login.reconnect_required ? null : await readLoginGrant(services, login.id);
  const vendor = services.chat.get('twitch');
  if (!kept?.client_id || !vendor?.userEmotes) return [];
  const { provider_account_id, access_token: token, client_id } = kept;
  try {
    return await vendor.userEmotes({ user_id: provider_account_id, token, client_id });
  } catch (error) {
    if ([HttpFailed, NotSent, OutcomeUnknown].some((kind) => error instanceof kind)) return [];
    throw error;
  }
}
