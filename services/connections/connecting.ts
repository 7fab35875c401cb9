import { connections, connectionsStream, integrationsOf, type Connections } from '../../domain/connections/connections';
import { systemConnection, systemConnectionStream, type AppPlatform } from '../../domain/operators/system-connections';
import type { BotPlatform, ChannelPlatform } from '../../domain/common/vendors';
import {
  badRequest,
  conflict,
  featureDisabled,
  forbidden,
  invalid,
  planLimit,
  type Refuse,
} from '../../kernel/operations/errors';
import { ApiError } from '../../kernel/errors';
import {
  AppRefused,
  GrantRefused,
  VendorUnavailable,
  type GrantKind,
  type OAuthVendor,
} from '../../vendors/oauth/port';
import type { Caller } from '../../access/authentication/caller';
import { NO_APP } from './credential-modes';
import { hasPermission } from '../../access/authorization/permission-check';
import type { OAuthState } from '../oauth/oauth-states';
import { limitOf } from '../../access/authorization/plan-limits';
import { mayHaveBots } from '../automation/custom-bots';
import { PROVIDER_DISABLED, blockingFlag } from '../../access/authorization/provider-switches';
import type { Services } from '../../app/services';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';

/** Errors of connecting by a vendor's login, at its start and at its end. */
export const connectingErrors = {
  ...PROVIDER_DISABLED,
  ...NO_APP,
  NO_ACCOUNT: badRequest('An account is required: switch to one first'),
  NOT_CONNECTED_FOR: invalid('{platform} is not connected for {kind}'),
  NOT_ALLOWED: forbidden('Missing permission: {permission}'),
  CONNECTIONS_OFF: featureDisabled('Feature not enabled: feature:connections'),
  UNKNOWN_RETURN: invalid('return_to must be an address of this service'),
  UNKNOWN_STATE: badRequest('This login was not begun here, is over, or was used: begin again'),
  PLATFORM_ALREADY_CONNECTED: conflict('Another {platform} account is connected: disconnect it first'),
  REFUSED_CODE: badRequest('{platform} refuses this login: begin again'),
  APP_REFUSED: badRequest('{platform} does not take the app credentials'),
  PLAN_LIMIT_REACHED: planLimit('Plan limit reached: {limit}'),
};
type RefuseConnecting = Refuse<typeof connectingErrors>;

const PERMISSIONS = {
  channel: 'connections:create',
  bot: 'bot-connections:create',
  system_bot: 'system-connections:edit',
} as const satisfies Record<GrantKind, string>;

/** Seconds, where the vendor gives no delay. */
const RETRY_AFTER = 10;

/**
 * Checks that the caller may connect this kind, and returns the account that it is for. Called at the start and again
 * at the end, because ten minutes may pass in between.
 */
export async function authorizeConnect(
  services: Services,
  { caller, platform, kind }: { caller: Caller; platform: string; kind: GrantKind },
  refuse: RefuseConnecting,
): Promise<{ account_id: string | null; vendor: OAuthVendor }> {
  const system = kind === 'system_bot';
  const account_id = system ? null : caller.account_id;
  if (!system && account_id === null) throw refuse('NO_ACCOUNT');
  if (account_id !== null && !(await services.features.enabled('feature:connections', account_id)))
    throw refuse('CONNECTIONS_OFF');
  const permission = PERMISSIONS[kind];
  if (!hasPermission(caller, system ? caller.admin_permissions : caller.permissions, permission))
    throw refuse('NOT_ALLOWED', { permission });
  const vendor = services.oauth.get(platform);
  if (vendor?.kinds.includes(kind) !== true) throw refuse('NOT_CONNECTED_FOR', { platform, kind });
  const flag = await blockingFlag(services.features, platform, system ? 'bot' : kind, account_id);
  if (flag !== null) throw refuse('PROVIDER_DISABLED', { flag });
  // A bot of Discord is always the installation's.
  const is_own_bot = kind === 'bot' && platform !== 'discord' && account_id !== null;
  if (is_own_bot && !(await mayHaveBots(services.db, account_id)))
    throw refuse('PROVIDER_DISABLED', { flag: 'custom_bot_allowed' });
  return { account_id, vendor };
}

/**
 * Checks `max_integrations`: throws when the plan is full, and returns the same check for the decider's state. A
 * platform that is already connected may be connected again whatever the plan.
 */
export async function requireIntegrationQuota(
  services: Services,
  { account_id, platform, kind }: { account_id: string | null; platform: string; kind: GrantKind },
  refuse: RefuseConnecting,
): Promise<(state: Connections) => ReturnType<RefuseConnecting> | false> {
  if (account_id === null || kind !== 'channel') return () => false;
  const limit = 'max_integrations';
  const most = await limitOf(services.db, account_id, limit);
  const full = (state: Connections) =>
    !state.channels.has(platform as ChannelPlatform) &&
    integrationsOf(state) >= most &&
    refuse('PLAN_LIMIT_REACHED', { limit });
  const { state } = await aggregateCacheOf(services.events).load(connections, connectionsStream(account_id));
  const refusal = full(state);
  if (refusal) throw refusal;
  return full;
}

/** The existing connection: its id, and the vendor's id of the channel or bot. */
export async function findExistingConnection(
  services: Pick<Services, 'events'>,
  { account_id, platform, kind }: Pick<OAuthState, 'account_id' | 'platform' | 'kind'>,
): Promise<{ connection_id: string; platform_user_id: string } | null> {
  const states = aggregateCacheOf(services.events);
  if (account_id === null)
    return (await states.load(systemConnection, systemConnectionStream(platform as AppPlatform))).state.bot;
  const { state } = await states.load(connections, connectionsStream(account_id));
  if (kind === 'bot') return state.bots.get(platform as BotPlatform) ?? null;
  const channel = state.channels.get(platform as ChannelPlatform);
  return channel ? { connection_id: channel.connection_id, platform_user_id: channel.platform_channel_id } : null;
}

/** Awaits the vendor's answer and translates its refusals into errors of this service. */
export async function withVendorErrors<T>(platform: string, asked: Promise<T>, refuse: RefuseConnecting): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof GrantRefused) throw refuse('REFUSED_CODE', { platform });
    if (error instanceof AppRefused) throw refuse('APP_REFUSED', { platform });
    if (!(error instanceof VendorUnavailable)) throw error;
    const retry_after_seconds = Math.ceil((error.retry_after_ms ?? RETRY_AFTER * 1000) / 1000);
    throw new ApiError('INTERNAL_SERVER_ERROR', error.message, { status: 503, retry_after_seconds, cause: error });
  }
}
