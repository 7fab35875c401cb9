import { randomUUID } from 'node:crypto';
import type { FakeOAuthCloud } from '../vendors/oauth-cloud';
import { finishedStreams } from './finished-streams';
import { uploadedImage } from './uploaded-image';
import { uploadedSound } from './uploaded-sound';
import type { DevCredentials } from './server';
import { ApiClient } from './vendor-cloud';

/** Ids, codes and tokens of what there is for commands to change, by what it is for. */
export type Made = Record<string, string>;

/** Tokens of those who call, by name; `nobody` has none. */
export type Callers = Record<string, string>;

export interface Call {
  /** Path parameters and body. */
  input?: (made: Made) => Record<string, unknown>;
  /** Who calls; default the owner of the account, who is an operator too. */
  as?: string;
  /** What the repetition answers, where that is not what the command answers. */
  repeated?: number;
  /** Commands that end what others are called with come last. */
  last?: boolean;
  /** Commands that end records of other commands come before the last. */
  later?: boolean;
}

const provider = (named: string, id: string) => ({
  provider: named,
  provider_id: id,
  access_token: `development:${id}`,
});
const EMITTED = { event_type: 'kick:follower', raw: { user_id: 'p' } };
const READS = { label: 'Bot', permissions: ['events:read'] };
const PLAN = {
  ...{ name: 'Walked', is_public: false, sort_order: 1, price_monthly: 1, price_yearly: 1, currency: 'EUR' },
  ...{ max_overlays: 1, max_storage_bytes: 1, max_upload_size_bytes: 1, max_integrations: 1 },
  chat_retention_days: 1,
};
const CLIENT = {
  ...{ name: 'Bot', client_type: 'confidential', redirect_uris: ['https://bot.example/back'] },
  ...{ scopes: ['events:read'], grant_types: ['authorization_code', 'client_credentials'] },
};
/** The site that people come back to from a vendor's login. */
export const WEB = 'https://app.example';
const BACK = `${WEB}/connections`;
const THEIR_APP = { client_id: 'their-app', client_secret: 'their-secret' };
const COMMAND = { response_type: 'text', response: 'Hi' };
/** Shown to nobody, and only its hash was kept. */
const NOT_SHOWN = { repeated: 409 };
const id =
  (name: string, more: Record<string, unknown> = {}) =>
  (made: Made) => ({ id: made[name], ...more });

/** How each command is called. */
export const CALLS: Readonly<Record<string, Call>> = {
  createUserApiKey: { input: () => READS, ...NOT_SHOWN },
  updateUserApiKey: { input: id('key', { label: 'Renamed' }) },
  deleteUserApiKey: { input: id('needless_key') },
  createAccountServiceKey: { input: () => READS, ...NOT_SHOWN },
  updateAccountServiceKey: { input: id('service_key', { label: 'Renamed' }) },
  deleteAccountServiceKey: { input: id('needless_service_key') },
  createSystemKey: { input: () => READS, ...NOT_SHOWN },
  deleteSystemKey: { input: id('system_key') },
  createPopoutToken: { input: () => READS, ...NOT_SHOWN },
  updatePopoutToken: { input: id('popout', { label: 'Renamed' }) },
  deletePopoutToken: { input: id('needless_popout') },
  exchangePopoutToken: { as: 'nobody', input: ({ popout_token }) => ({ token: popout_token }) },
  issuePopoutWsToken: { as: 'page' },

  emitEvent: { input: () => EMITTED },
  testEvent: { input: () => EMITTED },
  emitBotEvent: {
    as: 'system',
    input: ({ account }) => ({ ...EMITTED, platform: 'kick', username: 'ada', account_id: account }),
  },

  sendChatToPlatform: { input: () => ({ platform: 'twitch', message: 'once' }) },
  moderateChat: { input: () => ({ platform: 'twitch', action: 'BAN', user_id: '31', reason: 'spam' }) },
  unbanChatUser: { input: () => ({ platform: 'twitch', user_id: '31' }) },
  startRaid: { input: () => ({ platform: 'twitch', target_channel_id: '31' }) },
  cancelRaid: { input: () => ({ platform: 'twitch' }) },
  createPoll: { input: () => ({ platform: 'twitch', title: 'x', choices: ['a', 'b'], duration_secs: 15 }) },
  endPoll: { input: () => ({ id: 'poll-1' }) },
  cancelPoll: { input: () => ({ id: 'poll-1' }) },
  createPrediction: { input: () => ({ platform: 'twitch', title: 'x', outcomes: ['a', 'b'], window_secs: 30 }) },
  lockPrediction: { input: () => ({ id: 'prediction-1' }) },
  resolvePrediction: { input: () => ({ id: 'prediction-1', winning_outcome_id: 'o-1' }) },
  cancelPrediction: { input: () => ({ id: 'prediction-1' }) },
  setChatUserTreatment: { input: () => ({ platform: 'twitch', user_id: '31', user_treatment: 'restricted' }) },
  createPlatformUserNote: { input: () => ({ platform: 'kick', platform_user_id: '32', text: 'polite' }) },
  updatePlatformUserNote: {
    input: ({ note }) => ({ platform: 'kick', platform_user_id: '32', note_id: note, text: 'very polite' }),
  },
  deletePlatformUserNote: {
    input: ({ needless_note }) => ({ platform: 'kick', platform_user_id: '32', note_id: needless_note }),
  },
  // The cooldown is taken before the platform's call, and stays after a failure.
  refreshPlatformUserProfile: { input: () => ({ platform: 'kick', platform_user_id: '31' }), repeated: 429 },
  eraseChatSubjectData: { input: () => ({ platform: 'kick', user_id: '31' }) },
  eraseYoutubeMemberData: { input: () => ({ id: 'UCsomebody' }) },

  updateSound: { input: id('sound', { name: 'Renamed' }) },
  deleteSound: { input: id('needless_sound') },
  deleteUpload: { input: id('needless_upload') },
  playSound: { input: id('sound') },
  stopSound: { input: id('sound') },
  createOverlay: { input: () => ({}), ...NOT_SHOWN },
  updateOverlay: { input: id('overlay', { name: 'Renamed' }) },
  deleteOverlay: { input: id('needless_overlay') },
  duplicateOverlay: { input: id('overlay'), ...NOT_SHOWN },
  rotateOverlayToken: { input: id('overlay'), ...NOT_SHOWN },
  updateOverlayLayers: {
    input: ({ drawn_overlay }) => ({ overlay_id: drawn_overlay, revision: 0, layers: [{ type: 'chat' }] }),
  },
  patchOverlayLayers: {
    input: ({ overlay, layer }) => ({ overlay_id: overlay, revision: 1, layers: [{ id: layer, visible: false }] }),
  },
  ...Object.fromEntries(
    ['pause', 'resume', 'skip', 'mute', 'unmute'].map((action) => [`${action}OverlayAlerts`, { input: () => ({}) }]),
  ),
  replayOverlayAlerts: { input: ({ event }) => ({ event_id: event }) },
  createOverlayFolder: { input: () => ({ name: 'Scenes' }) },
  updateOverlayFolder: { input: id('folder', { name: 'Renamed' }) },
  deleteOverlayFolder: { input: id('needless_folder') },
  createOverlaySharedLink: {
    input: ({ overlay }) => ({ overlay_id: overlay, expires_at: '2999-01-01T00:00:00Z' }),
    ...NOT_SHOWN,
  },
  deleteOverlaySharedLink: { input: id('needless_overlay_link') },
  createOverlayEditorShare: { input: id('overlay'), ...NOT_SHOWN },
  grantOverlayAccess: { input: ({ overlay, member }) => ({ id: overlay, user_id: member, role: 'viewer' }) },
  revokeOverlayAccess: { input: ({ drawn_overlay, bound_member }) => ({ id: drawn_overlay, user_id: bound_member }) },
  createWidget: { input: () => ({ type: 'system-text' }), ...NOT_SHOWN },
  updateWidget: { input: id('widget', { name: 'Renamed' }) },
  deleteWidget: { input: id('needless_widget') },
  duplicateWidget: { input: id('widget'), ...NOT_SHOWN },
  rotateWidgetToken: { input: id('widget'), ...NOT_SHOWN },
  grantWidgetAccess: { input: ({ widget, member }) => ({ id: widget, user_id: member, role: 'viewer' }) },
  revokeWidgetAccess: { input: ({ bound_widget, bound_member }) => ({ id: bound_widget, user_id: bound_member }) },
  // Each changes something, in whatever order they are called.
  updateBotModule: { input: () => ({ module_name: 'timed_messages', exempt_roles: ['vips'] }) },
  adminUpdateBotModule: {
    input: ({ account }) => ({ account_id: account, module_name: 'timed_messages', config: { min_chat_lines: 2 } }),
  },
  deleteBotModule: { input: () => ({ module_name: 'timed_messages' }) },
  setAutomationVariable: { input: () => ({ name: 'walked', type: 'number', value: 1 }) },
  deleteAutomationVariable: { input: () => ({ name: 'needless' }) },
  rotateAutomationWebhookSecret: { input: id('automation'), ...NOT_SHOWN },
  createReward: { input: () => ({ platform: 'twitch', title: 'Hug' }) },
  updateReward: { input: id('reward', { title: 'Renamed' }) },
  deleteReward: { input: id('needless_reward') },
  createAutomation: { input: () => ({ name: 'walked' }) },
  updateAutomation: { input: id('automation', { name: 'renamed' }) },
  replaceAutomationGraph: { input: id('drawn_automation', { revision: 0, nodes: [], edges: [] }) },
  importAutomation: {
    input: () => ({ format: 'lumio:automation', version: 1, name: 'walked', nodes: [], edges: [] }),
  },
  dryRunAutomation: { input: id('run_automation') },
  runAutomation: { input: id('run_automation') },
  deleteAutomation: { input: id('needless_automation') },
  createBotCommand: { input: () => ({ ...COMMAND, name: 'walked' }) },
  updateBotCommand: { input: id('command', { name: 'renamed' }) },
  deleteBotCommand: { input: id('needless_command') },
  setBotCommandOverride: { input: id('global_command', { enabled: false }) },
  deleteBotCommandOverride: { input: id('overridden_command') },
  adminCreateBotCommand: { input: () => ({ ...COMMAND, name: 'walked' }) },
  adminUpdateBotCommand: { input: id('global_command', { name: 'renamed' }) },
  adminDeleteBotCommand: { input: id('needless_global_command') },
  updateCrawlerScope: { input: () => ({ enabled: false, platforms: ['kick'] }) },
  addToCrawlerWatchlist: { input: () => ({ platform: 'twitch', channel: 'somebody' }) },
  removeFromCrawlerWatchlist: { input: id('needless_watched') },
  setExternalOptOut: { input: () => ({ platform: 'twitch', channel: 'somebody_else', opted_out: true }) },
  updateChannelPublicSettings: { input: () => ({ platform: 'twitch', is_public: false }) },
  deleteHistoryReport: { input: id('needless_report') },
  createHistorySharedLink: { input: id('report', { duration_secs: 3_600 }), ...NOT_SHOWN },
  extendHistorySharedLink: { input: id('shared_link', { duration_secs: 3_600 }) },
  revokeHistorySharedLink: { input: id('needless_shared_link') },

  issueWsToken: {},
  exchangeToken: { as: 'nobody', input: () => provider('twitch', '7') },
  linkLoginConnection: { as: 'ada', input: () => provider('kick', '8') },
  disconnectLoginConnection: { as: 'ada', input: ({ needless_login }) => ({ login_connection_id: needless_login }) },
  clearLoginConnectionReconnectFlag: { as: 'ada', input: id('login') },
  deleteSession: { as: 'ada', input: id('session') },
  deleteAllOtherSessions: { as: 'ada', last: true },
  refreshToken: { as: 'nobody', input: ({ refresh_token }) => ({ refresh_token }) },
  logout: { as: 'nobody', input: ({ refresh_token }) => ({ refresh_token }), last: true },
  // The session that called is the one that has ended.
  logoutSession: { as: 'other', repeated: 401, last: true },
  updateMe: { as: 'ada', input: () => ({ display_name: 'Ada Renamed', streamer_mode: true }) },

  createAccount: { as: 'founder', input: () => ({ name: 'Founded' }) },
  updateAccount: { input: id('account', { name: 'Renamed' }) },
  // Whose account is gone is no member of it.
  dissolveAccount: { as: 'owner_of_one', input: id('other_account', { confirm_name: 'Needless' }), repeated: 403 },
  leaveAccount: { as: 'leaver', input: id('account'), repeated: 403 },
  updateMemberRole: { input: ({ account, member, role }) => ({ id: account, user_id: member, role_id: role }) },
  removeMember: { input: ({ account, needless_member }) => ({ id: account, user_id: needless_member }) },
  createInvite: { input: ({ account, role }) => ({ id: account, role_id: role }), ...NOT_SHOWN },
  deleteInvite: { input: ({ account, needless_invite }) => ({ id: account, invite_id: needless_invite }) },
  acceptInvite: { as: 'invited', input: ({ code }) => ({ code }) },
  createRole: { input: () => ({ name: 'Made', permissions: ['events:read'] }) },
  updateRole: { input: id('role', { name: 'Renamed' }) },
  deleteRole: { input: id('needless_role') },
  assignLoginConnection: { input: ({ own_login }) => ({ login_connection_id: own_login, provider: 'twitch' }) },
  removeLoginAssignment: { input: () => ({ provider: 'kick' }) },
  setPrimaryLoginConnection: { input: ({ own_login }) => ({ login_connection_id: own_login }) },

  adminCreateRole: { input: () => ({ name: 'Made', permissions: ['users:read'] }) },
  adminUpdateRole: { input: id('admin_role', { name: 'Renamed' }) },
  adminDeleteRole: { input: id('needless_admin_role') },
  adminAssignUserRole: { input: ({ admin_role, member }) => ({ role_id: admin_role, user_id: member }) },
  adminUnassignUserRole: { input: ({ held_admin_role, member }) => ({ role_id: held_admin_role, user_id: member }) },
  createUserRole: { input: () => ({ name: 'Made', permissions: ['ideas:read'] }) },
  updateUserRole: { input: id('user_role', { name: 'Renamed' }) },
  deleteUserRole: { input: id('needless_user_role') },
  assignUserRole: { input: ({ user_role, member }) => ({ role_id: user_role, user_id: member }) },
  unassignUserRole: { input: ({ held_user_role, needless_member: it }) => ({ role_id: held_user_role, user_id: it }) },
  adminUpdateUser: { input: id('member', { display_name: 'Renamed', max_accounts_override: 2 }) },
  adminDeleteUser: { input: id('needless_user') },
  adminClearLoginConnectionReconnectFlag: {
    input: ({ member, member_login }) => ({ user_id: member, login_connection_id: member_login }),
  },
  adminDisconnectLoginConnection: {
    input: ({ member, needless_member_login: it }) => ({ user_id: member, login_connection_id: it }),
  },

  adminUpdateAccount: { input: id('kept_account', { description: 'Told', plan: 'pro' }) },
  adminUpdateAccountOverrides: {
    input: id('kept_account', {
      features: [{ key: 'feature:apikeys', enabled: true }],
      limits: [{ name: 'max_sounds', value: 1 }],
    }),
  },
  adminDeleteAccount: { input: id('needless_account') },
  adminAddAccountMember: {
    input: ({ account, added, role }) => ({ account_id: account, user_id: added, role_id: role }),
  },
  adminUpdateAccountMember: {
    input: ({ account, demoted, role }) => ({ account_id: account, user_id: demoted, role_id: role }),
  },
  adminRemoveAccountMember: { input: ({ account, ousted }) => ({ account_id: account, user_id: ousted }) },

  adminCreatePlan: { input: () => ({ ...PLAN, slug: 'made' }) },
  adminUpdatePlan: { input: id('plan', PLAN) },
  adminSetPlanFeatures: { input: id('plan', { features: [] }) },
  adminDeletePlan: { input: id('needless_plan') },
  adminUpdateFeatureFlag: { input: id('flag', { enabled: true }) },
  adminUpdatePlatform: { input: () => ({ platform: 'trovo', enabled: false }) },
  adminUpdateProvider: { input: () => ({ platform: 'trovo', bot: false }) },

  startConnection: { input: () => ({ platform: 'discord', kind: 'bot', return_to: BACK }) },
  exchangeConnection: { input: ({ code_there, state }) => ({ platform: 'youtube', code: code_there, state }) },
  disconnectChannelConnection: { input: id('needless_channel') },
  clearChannelConnectionReconnectFlag: { input: id('channel') },
  setConnectionCredentials: { input: () => ({ platform: 'discord', ...THEIR_APP }) },
  deleteConnectionCredentials: { input: () => ({ platform: 'spotify' }) },
  disconnectBotConnection: { input: id('needless_bot') },
  clearBotConnectionReconnectFlag: { input: id('bot') },
  toggleBotForPlatform: { input: () => ({ platform: 'kick', enabled: false }) },
  rejoinBot: { input: () => ({ platform: 'twitch' }) },
  authorizeDiscordGuild: { input: () => ({ return_to: BACK }) },
  updateDiscordGuild: { input: () => ({ guild_id: '7', settings: { live_message: 'Live' } }) },
  setDiscordChannel: { input: () => ({ guild_id: '7', feature: 'event_feed', channel_id: '71' }) },
  deleteDiscordChannel: { input: () => ({ guild_id: '7', feature: 'chat_mirror' }) },
  saveSeToken: { input: () => ({ platform: 'twitch', token: 'tip-token' }) },
  deleteSeToken: { input: id('needless_tips') },
  updateSystemConnection: { input: () => ({ platform: 'trovo', ...THEIR_APP, bot_mode: 'account' }) },
  deleteSystemConnection: { input: () => ({ platform: 'spotify' }) },
  disconnectSystemBot: { input: () => ({ platform: 'kick' }) },
  adminDisconnectChannelConnection: {
    input: ({ account, detached_channel }) => ({ account_id: account, id: detached_channel }),
  },
  adminDisconnectBotConnection: { input: ({ account, detached_bot }) => ({ account_id: account, id: detached_bot }) },
  adminDeleteSeToken: { input: ({ account, detached_tips }) => ({ account_id: account, id: detached_tips }) },
  adminUpdateBotControl: {
    input: ({ account }) => ({ account_id: account, platform: 'kick', enabled: false }),
  },
  adminDeleteDiscordGuild: { input: () => ({ guild_id: '7' }), later: true },
  adminSetPrimaryLoginConnection: {
    input: ({ account, own_login }) => ({ account_id: account, login_connection_id: own_login }),
  },

  createOauthClient: { input: ({ account }) => ({ ...CLIENT, account_id: account }), ...NOT_SHOWN },
  updateOauthClient: { input: ({ client }) => ({ client_id: client, name: 'Renamed' }) },
  rotateOauthClientSecret: { input: ({ turned_client }) => ({ client_id: turned_client }), ...NOT_SHOWN },
  deleteOauthClient: { input: ({ needless_client }) => ({ client_id: needless_client }) },
  deleteAccountOauthClient: { input: ({ ended_client }) => ({ client_id: ended_client }) },
  authorizeOauthClient: {
    input: ({ client }) => ({
      ...{ client_id: client, redirect_uri: CLIENT.redirect_uris[0], response_type: 'code', scope: 'events:read' },
      ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'S256' },
    }),
  },
  issueOauthToken: {
    as: 'nobody',
    input: ({ client, client_secret }) => ({ grant_type: 'client_credentials', client_id: client, client_secret }),
  },
};

/** Makes what commands change, and logs in who calls them. */
export async function prepareCalls(
  base_url: string,
  credentials: DevCredentials,
  cloud: FakeOAuthCloud,
): Promise<{ made: Made; callers: Callers }> {
  const { account_id, access_token, other, system_key, refresh_token } = credentials;
  const owner = new ApiClient(base_url, access_token);
  const post = async (path: string, body: unknown, as: ApiClient = owner) => {
    const { status, body: answer } = await as.send('POST', path, body);
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(answer)}`);
    return answer.data ?? answer;
  };
  const nobody = new ApiClient(base_url, '');
  const logIn = async (person: string): Promise<{ token: string; api: ApiClient; user_id: string }> => {
    const { token } = await post('/v1/auth/token/exchange', provider('twitch', person), nobody);
    const api = new ApiClient(base_url, token);
    return { token, api, user_id: (await api.get('/v1/users/me')).body.data.id };
  };
  const link = async (api: ApiClient, named: string, person: string) =>
    (await post('/v1/auth/link', provider(named, person), api)).id as string;

  const made: Made = { account: account_id, refresh_token };
  const callers: Callers = { owner: access_token, other: other.access_token, system: system_key, nobody: '' };
  const keep = async (path: string, input: (name: string) => unknown, names: readonly string[]) => {
    for (const name of names) {
      const it = await post(path, input(name));
      made[name] = it.id ?? it.client_id;
      if (it.token) made[`${name}_token`] = it.token;
      if (it.client_secret) made[`${name}_secret`] = it.client_secret;
    }
  };
  await keep('/v1/api-keys', () => READS, ['key', 'needless_key']);
  await keep('/v1/service-keys', () => READS, ['service_key', 'needless_service_key']);
  await keep('/v1/admin/system-keys', () => READS, ['system_key']);
  await keep('/v1/tokens', () => READS, ['popout', 'needless_popout']);
  const about = '/v1/chat/users/kick/32/notes';
  await keep(about, () => ({ text: 'polite' }), ['note', 'needless_note']);
  const named = (name: string) => ({ name, permissions: [] });
  await keep('/v1/roles', named, ['role', 'needless_role']);
  await keep('/v1/admin/admin-roles', named, ['admin_role', 'needless_admin_role', 'held_admin_role']);
  await keep('/v1/user-roles', named, ['user_role', 'needless_user_role', 'held_user_role']);
  await keep('/v1/admin/plans', (slug) => ({ ...PLAN, slug: slug.replace('_', '-') }), ['plan', 'needless_plan']);
  const owned = { ...CLIENT, account_id };
  await keep('/v1/admin/oauth-clients', () => owned, ['client', 'turned_client', 'needless_client']);
  const machine = { ...owned, grant_types: ['client_credentials'] };
  await keep('/v1/admin/oauth-clients', () => machine, ['ended_client']);
  made.flag = (await owner.get('/v1/admin/feature-flags')).body.data[0].id;

  const invite = async () => post(`/v1/accounts/${account_id}/invites`, { role_id: made.role });
  const join = async (api: ApiClient) => post(`/v1/invites/${(await invite()).code}/accept`, {}, api);
  const [member, needless, leaver] = [await logIn('member'), await logIn('needless'), await logIn('leaver')];
  const [demoted, ousted] = [await logIn('demoted'), await logIn('ousted')];
  for (const { api } of [member, needless, leaver, demoted, ousted]) await join(api);
  [made.demoted, made.ousted] = [demoted.user_id, ousted.user_id];
  made.added = (await logIn('added')).user_id;
  made.member = member.user_id;
  made.member_login = await link(member.api, 'kick', 'member');
  made.needless_member_login = await link(member.api, 'trovo', 'member');
  made.needless_member = needless.user_id;
  made.needless_user = (await logIn('nobody')).user_id;
  const holds = async (path: string) => owner.send('PUT', path, {});
  await holds(`/v1/admin/admin-roles/${made.held_admin_role}/members/${made.member}`);
  await holds(`/v1/user-roles/${made.held_user_role}/members/${made.needless_member}`);
  made.needless_invite = (await invite()).id;
  made.code = (await invite()).code;
  const of_one = await logIn('owner-of-one');
  made.other_account = (await post('/v1/accounts', { name: 'Needless' }, of_one.api)).id;

  const closed = await logIn('owner-of-a-needless-one');
  made.kept_account = (await post('/v1/accounts', { name: 'Kept' }, (await logIn('owner-of-a-kept-one')).api)).id;
  made.needless_account = (await post('/v1/accounts', { name: 'Needless too' }, closed.api)).id;

  const begin = async (platform: string, kind: string, vendor_id: string) => {
    const { authorize_url } = await post(`/v1/connections/oauth/${platform}/start`, { kind, return_to: BACK });
    return cloud.login(authorize_url, vendor_id);
  };
  const connect = async (platform: string, kind: string) => {
    const { code, state } = await begin(platform, kind, '7');
    return (await post(`/v1/connections/oauth/${platform}/exchange`, { code, state })).connection_id as string;
  };
  made.bot = await connect('twitch', 'bot');
  made.needless_bot = await connect('kick', 'bot');
  made.detached_bot = await connect('trovo', 'bot');
  await connect('discord', 'bot');
  cloud.discord.channels.set('7', [{ id: '71', name: 'general', type: 0, position: 0 }]);
  await owner.send('PUT', '/v1/discord-guilds/7/channels/chat_mirror', { channel_id: '71' });
  await connect('kick', 'system_bot');
  type Connected = { id: string; platform: string; platform_channel_id: string };
  const connected = (await owner.get('/v1/connections/channel')).body.data as Connected[];
  // Connected again, so that its handle is known.
  const of_twitch = connected.find(({ platform }) => platform === 'twitch')!.platform_channel_id;
  const again = await begin('twitch', 'channel', of_twitch);
  await post('/v1/connections/oauth/twitch/exchange', { code: again.code, state: again.state });
  const channel = (of: string) => connected.find(({ platform }) => platform === of)!.id;
  made.channel = channel('kick');
  made.needless_channel = channel('youtube');
  made.detached_channel = channel('trovo');
  for (const app of ['/v1/connections/credentials/spotify', '/v1/admin/system-connections/spotify'])
    await owner.send('PUT', app, THEIR_APP);
  const tips = async (platform: string) => (await post('/v1/se-tokens', { platform, token: 'tip-token' })).id as string;
  made.needless_tips = await tips('kick');
  made.detached_tips = await tips('trovo');
  ({ code: made.code_there, state: made.state } = await begin('youtube', 'bot', '8'));

  const { access_token: own_token } = cloud.tokens.give('owner', []);
  const own = { provider: 'twitch', provider_id: 'owner', access_token: own_token };
  const plenty = { features: [], limits: [{ name: 'max_overlays', value: 10 }] };
  await owner.send('PATCH', `/v1/admin/accounts/${account_id}/overrides`, plenty);
  await keep('/v1/overlays', () => ({}), ['overlay', 'needless_overlay', 'drawn_overlay']);
  const drawn = { revision: 0, layers: [{ type: 'text' }] };
  made.event = (await post('/v1/events/emit', EMITTED)).event.id;
  made.layer = (await owner.send('PUT', `/v1/overlays/${made.overlay}/layers`, drawn)).body.data.layers[0].id;
  await keep('/v1/overlay-folders', (name) => ({ name }), ['folder', 'needless_folder']);
  const shared = { overlay_id: made.drawn_overlay, expires_at: '2999-01-01T00:00:00Z' };
  await keep('/v1/overlay-shared-links', () => shared, ['needless_overlay_link']);
  await keep('/v1/widgets', () => ({ type: 'system-text' }), ['widget', 'needless_widget', 'bound_widget']);
  made.bound_member = member.user_id;
  await owner.send('PUT', `/v1/overlays/${made.drawn_overlay}/access/${made.bound_member}`, { role: 'viewer' });
  await owner.send('PUT', `/v1/widgets/${made.bound_widget}/access/${made.bound_member}`, { role: 'viewer' });
  await owner.send('PUT', '/v1/bot-modules/timed_messages', { config: { min_chat_lines: 1 } });
  await owner.send('PUT', '/v1/automations/variables/needless', { type: 'number', value: 1 });
  await keep('/v1/rewards', (title) => ({ platform: 'twitch', title }), ['reward', 'needless_reward']);
  const automations = ['automation', 'drawn_automation', 'needless_automation'];
  await keep('/v1/automations', (name) => ({ name, enabled: true }), [...automations, 'run_automation']);
  const hand = { nodes: [{ id: randomUUID(), type: 'trigger:manual', config: {} }], edges: [] };
  await owner.send('PUT', `/v1/automations/${made.run_automation}/graph`, { revision: 0, ...hand });
  const commanded = (name: string) => ({ ...COMMAND, name });
  await keep('/v1/bot-commands', commanded, ['command', 'needless_command']);
  const of_all = ['global_command', 'overridden_command', 'needless_global_command'];
  await keep('/v1/admin/bot-commands', commanded, of_all);
  await owner.send('PUT', `/v1/bot-commands/${made.overridden_command}/override`, { enabled: false });
  for (const name of ['sound', 'needless_sound']) made[name] = await uploadedSound(base_url, access_token);
  made.needless_upload = await uploadedImage(base_url, access_token);
  made.needless_watched = (await post('/v1/watchlist', { platform: 'kick', channel: 'needless' })).id;
  [made.needless_report, made.report] = await finishedStreams(base_url, credentials);
  for (const name of ['shared_link', 'needless_shared_link']) {
    made[name] = (await post(`/v1/history/reports/${made.report}/shared-links`, { duration_secs: 3_600 })).id;
  }
  made.own_login = (await post('/v1/auth/link', own)).id;
  await post('/v1/accounts/login-assignments', {
    login_connection_id: await link(owner, 'kick', 'owner'),
    provider: 'kick',
  });
  // Somebody with two logins, and a session for each time that they logged in.
  await logIn('ada');
  const ada = await logIn('ada');
  made.login = await link(ada.api, 'kick', 'ada');
  made.needless_login = await link(ada.api, 'trovo', 'ada');
  const sessions = (await ada.api.get('/v1/users/me/sessions')).body.data as { id: string; current: boolean }[];
  made.session = sessions.find(({ current }) => !current)!.id;

  callers.ada = ada.token;
  callers.leaver = leaver.token;
  callers.owner_of_one = (await logIn('owner-of-one')).token;
  callers.founder = (await logIn('founder')).token;
  callers.invited = (await logIn('invited')).token;
  callers.page = (await post('/v1/auth/popout/exchange', { token: made.popout_token }, nobody)).token;
  return { made, callers };
}
