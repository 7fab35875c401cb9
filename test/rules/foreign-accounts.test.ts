import { randomUUID } from 'node:crypto';
import WebSocket from 'ws';
import type { Operation } from '../../app/operation';
import { shapeOf } from '../../api/openapi/schema-shape';
import { OPERATIONS } from '../../bin/areas';
import { KNOWN_FLAGS } from '../../domain/operators/feature-flags';
import { SUPER_ADMIN } from '../../domain/operators/admin-roles';
import { type Asking, asking, membersOf } from '../support/asking';
import { finishedStreams } from '../support/finished-streams';
import { uploadedImage } from '../support/uploaded-image';
import { uploadedSound } from '../support/uploaded-sound';
import { startServer, type TestServer } from '../support/server';
import { FakeOAuthCloud } from '../vendors/oauth-cloud';
import { ApiClient, eventually } from '../support/vendor-cloud';

/**
 * Every operation, on both protocols, called by those who belong to another account or to none, with the ids of an
 * account that is not theirs: they learn nothing of it, change nothing in it, and nothing reaches its channel. New
 * operations are walked as soon as they are in the list.
 */
interface Answer {
  operation: string;
  /** The operation was given the id of something that the caller does not own. */
  aimed: boolean;
  protocol: 'REST' | 'GraphQL';
  caller: string;
  status: number;
  text: string;
}

const REFUSALS: ReadonlySet<unknown> = new Set(['UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND']);

/** What is wrong with an answer to a stranger; `owned` are texts that only the owner may see. */
function faultsOf(answer: Answer, owned: readonly string[]): string[] {
  const { operation, aimed, protocol, caller, status, text } = answer;
  const at = `${operation} on ${protocol} by ${caller}`;
  const faults = owned.filter((secret) => text.includes(secret)).map((secret) => `${at} shows ${secret}`);
  if (status >= 500) faults.push(`${at} fails with ${status}`);
  if (!aimed) return faults;
  const body = text === '' ? {} : JSON.parse(text);
  const code = protocol === 'REST' ? body.error : body.errors?.[0]?.extensions?.code;
  if (!REFUSALS.has(code)) faults.push(`${at} is not refused: ${status} ${text.slice(0, 200)}`);
  return faults;
}

describe('the judge of answers', () => {
  const owned = ['0197f3a0-aaaa'];
  const refusal = '{"error":"NOT_FOUND","message":"Event not found"}';
  const good: Answer = {
    operation: 'event',
    aimed: true,
    protocol: 'REST',
    caller: 'x',
    status: 404,
    text: refusal,
  };
  const twin = '{"errors":[{"message":"Event not found","extensions":{"code":"NOT_FOUND"}}],"data":{"event":null}}';
  test('lets refusals pass, and pages without anything of the owner', () => {
    expect(faultsOf(good, owned)).toEqual([]);
    expect(faultsOf({ ...good, protocol: 'GraphQL', status: 200, text: twin }, owned)).toEqual([]);
    expect(faultsOf({ ...good, aimed: false, status: 200, text: '{"data":[]}' }, owned)).toEqual([]);
  });
  test.each<[string, Partial<Answer>]>([
    ['something of the owner in a page', { aimed: false, status: 200, text: '{"data":[{"id":"0197f3a0-aaaa"}]}' }],
    ['something of the owner in a refusal', { text: refusal.replace('Event', '0197f3a0-aaaa') }],
    ['an effect without a body', { status: 204, text: '' }],
    ['an effect', { status: 200, text: '{"data":{"success":true}}' }],
    ['a validation that came before', { status: 400, text: '{"error":"VALIDATION_ERROR","message":"x"}' }],
    ['a GraphQL field that was answered', { protocol: 'GraphQL', status: 200, text: '{"data":{"event":{}}}' }],
    ['a failure of ours', { aimed: false, status: 503, text: '{"error":"DATABASE_ERROR","message":"x"}' }],
  ])('sees %s', (_what, change) => {
    expect(faultsOf({ ...good, ...change }, owned)).not.toEqual([]);
  });
});

const cursorOf = (...key: unknown[]) => Buffer.from(JSON.stringify(key)).toString('base64url');

describe('every operation, called from another account', () => {
  let server: TestServer;
  let cloud: FakeOAuthCloud;
  let owner: ApiClient;
  let ask: Asking;
  /** What the owner has, by the path that its id stands behind. */
  let things: Record<string, string>;
  let owned: string[];
  let examples: Record<string, unknown>;
  /** Of an operation that means something else by a member than the others do. */
  let own_examples: Record<string, Record<string, unknown>>;
  const heard: string[] = [];
  let socket: WebSocket;
  let alive: NodeJS.Timeout;

  beforeAll(async () => {
    cloud = await new FakeOAuthCloud().start();
    server = await startServer({
      env: {
        ...cloud.env(),
        LUMIO_HOSTS__WEB: 'https://app.example',
        LUMIO_TRUSTED_PROXIES: 'loopback',
        LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true',
        LUMIO_HISTORY__SESSION_GRACE: '0s',
        LUMIO_HISTORY__COUNT_EVERY: '1s',
      },
    });
    const { credentials, base_url } = server;
    owner = new ApiClient(base_url, credentials.access_token);
    ask = await asking(base_url, example);
    const secret = `secret-${randomUUID()}`;
    const viewer = `viewer-${randomUUID()}`;
    const emitted = await owner.send('POST', '/v1/events/emit', {
      event_type: 'kick:follower',
      raw: { secret, user_id: viewer },
      external_id: secret,
    });
    const key = await owner.send('POST', '/v1/api-keys', { label: secret, permissions: ['events:read'] });
    const made = { label: secret, permissions: ['events:read'] };
    const service = (await owner.send('POST', '/v1/service-keys', made)).body.data;
    const popout = (await owner.send('POST', '/v1/tokens', made)).body.data;
    const system = (await owner.send('POST', '/v1/admin/system-keys', made)).body.data;
    const { account_id, user_id } = credentials;
    const role = await owner.send('POST', '/v1/roles', { name: secret, permissions: [] });
    const role_id = role.body.data.id;
    const invite = await owner.send('POST', `/v1/accounts/${account_id}/invites`, { role_id });
    const invite_id = invite.body.data.id;
    things = { '/v1/events': emitted.body.event.id, '/v1/api-keys': key.body.data.id };
    things['/v1/roles'] = role_id;
    things['/v1/service-keys'] = service.id;
    things['/v1/tokens'] = popout.id;
    things['/v1/admin/system-keys'] = system.id;
    const admin_role = await owner.send('POST', '/v1/admin/admin-roles', { name: secret, permissions: [] });
    things['/v1/admin/admin-roles'] = admin_role.body.data.id;
    const user_role = await owner.send('POST', '/v1/user-roles', { name: secret, permissions: [] });
    things['/v1/user-roles'] = user_role.body.data.id;
    const login = { provider: 'twitch', provider_id: secret, access_token: `development:${secret}` };
    const linked = await owner.send('POST', '/v1/auth/link', login);
    await owner.send('POST', '/v1/auth/link', { ...login, provider: 'kick' });
    await owner.send('POST', '/v1/auth/token/exchange', login);
    const sessions = (await owner.get('/v1/users/me/sessions')).body.data as { id: string; current: boolean }[];
    things['/v1/login-connections'] = linked.body.data.id;
    things['/v1/users/me/sessions'] = sessions.find(({ current }) => !current)!.id;
    const bots: string[] = [];
    for (const platform of ['twitch', 'kick']) {
      const of = { kind: 'bot', return_to: 'https://app.example/' };
      const begun = await owner.send('POST', `/v1/connections/oauth/${platform}/start`, of);
      const { code, state } = cloud.login(begun.body.authorize_url, '4004');
      const done = await owner.send('POST', `/v1/connections/oauth/${platform}/exchange`, { code, state });
      bots.push(done.body.connection_id);
    }
    const channels = (await owner.get('/v1/connections/channel')).body.data.map(({ id }: { id: string }) => id);
    const tip = async (platform: string) =>
      (await owner.send('POST', '/v1/se-tokens', { platform, token: secret })).body.data.id;
    things['/v1/channel-connections'] = channels[0];
    things['/v1/bot-connections'] = bots[0]!;
    things['/v1/se-tokens'] = await tip('twitch');
    [things['/v1/history/reports']] = await finishedStreams(server.base_url, credentials, secret);
    const link = await owner.send('POST', `/v1/history/reports/${things['/v1/history/reports']}/shared-links`, {
      duration_secs: 3600,
    });
    things['/v1/uploads'] = await uploadedImage(base_url, credentials.access_token, `${secret}.png`);
    things['/v1/sounds'] = await uploadedSound(base_url, credentials.access_token, `${secret}.wav`);
    const made_widget = await owner.send('POST', '/v1/widgets', { type: 'system-text', name: secret });
    things['/v1/widgets'] = made_widget.body.data.id;
    const made_overlay = await owner.send('POST', '/v1/overlays', { name: secret });
    things['/v1/overlays'] = made_overlay.body.data.id;
    const ends = new Date(Date.now() + 3_600_000).toISOString();
    const made_link = await owner.send('POST', '/v1/overlay-shared-links', {
      overlay_id: made_overlay.body.data.id,
      expires_at: ends,
    });
    things['/v1/overlay-shared-links'] = made_link.body.data.id;
    const made_folder = await owner.send('POST', '/v1/overlay-folders', { name: secret });
    things['/v1/overlay-folders'] = made_folder.body.data.id;
    await owner.send('PUT', '/v1/automations/variables/kept', { type: 'text', value: secret });
    const rewarded = await owner.send('POST', '/v1/rewards', { platform: 'twitch', title: secret });
    things['/v1/rewards'] = rewarded.body.data.id;
    things['/v1/automations'] = (await owner.send('POST', '/v1/automations', { name: secret })).body.data.id;
    const hand = { nodes: [{ id: randomUUID(), type: 'trigger:manual', config: {} }], edges: [] };
    await owner.send('PUT', `/v1/automations/${things['/v1/automations']}/graph`, { revision: 0, ...hand });
    await owner.send('PATCH', `/v1/automations/${things['/v1/automations']}`, { enabled: true });
    const begun_run = await owner.send('POST', `/v1/automations/${things['/v1/automations']}/run`, {});
    const commanded = { response_type: 'text', response: secret };
    for (const [name, path] of [
      ['secret', '/v1/bot-commands'],
      ['secret-2', '/v1/admin/bot-commands'],
    ] as const)
      things[path] = (await owner.send('POST', '/v1/bot-commands', { ...commanded, name })).body.data.id;
    things['/v1/history/shared-links'] = link.body.data.id;
    const watched = await owner.send('POST', '/v1/watchlist', { platform: 'twitch', channel: 'watched' });
    things['/v1/watchlist'] = watched.body.data.id;
    owned = [credentials.account_id, credentials.user_id, secret, key.body.data.key, ...Object.values(things)];
    owned.push(invite_id, invite.body.data.code);
    owned.push(service.key, popout.token, system.key, link.body.data.token, made_widget.body.data.access_token);
    owned.push(made_link.body.data.access_token, made_overlay.body.data.key, made_overlay.body.data.access_token);
    // What is no secret, and is an operator's to change.
    things['/v1/accounts'] = credentials.account_id;
    things['/v1/admin/feature-flags'] = KNOWN_FLAGS[0]!.id;
    const offer = {
      ...{ slug: 'walked', is_public: false, sort_order: 1, price_monthly: 1, price_yearly: 1, currency: 'EUR' },
      ...{ max_overlays: 1, max_storage_bytes: 1, max_upload_size_bytes: 1, max_integrations: 1 },
      chat_retention_days: 1,
    };
    const plan = await owner.send('POST', '/v1/admin/plans', { ...offer, name: 'Walked' });
    things['/v1/admin/plans'] = plan.body.data.id;
    // A person for the operator to delete, who owns no account.
    const person = { ...login, provider_id: `${secret}-2`, access_token: `development:${secret}-2` };
    const entered = await owner.send('POST', '/v1/auth/token/exchange', person);
    const dissolved = { ...login, provider_id: `${secret}-3`, access_token: `development:${secret}-3` };
    const founder = (await owner.send('POST', '/v1/auth/token/exchange', dissolved)).body.token;
    const founded = await new ApiClient(base_url, founder).send('POST', '/v1/accounts', {});
    things['/v1/admin/accounts'] = founded.body.data.id;
    [things['/v1/chat/polls'], things['/v1/chat/predictions']] = ['poll-secret', 'prediction-secret'];
    things['/v1/admin/users'] = (await new ApiClient(base_url, entered.body.token).get('/v1/users/me')).body.data.id;
    examples = {
      account_creation_override: 'DEFAULT',
      max_accounts_override: 1,
      override: 'DEFAULT',
      category: 'FEATURE',
      status: 'ACTIVE',
      guild_id: '900',
      ...{ feature: 'event_feed', settings: {} },
      enabled: true,
      ...offer,
      limits: [{ name: 'max_sounds', value: 1 }],
      features: [],
      connection_type: 'login',
      ...{ login: true, channel: true, bot: true },
      stripe_product_id: null,
      stripe_monthly_price_id: null,
      stripe_yearly_price_id: null,
      account_id: credentials.account_id,
      role_id: SUPER_ADMIN.role_id,
      user_id: viewer,
      event_type: 'kick:follower',
      type: 'kick:follower',
      types: ['kick:follower'],
      platform: 'kick',
      external_id: `stranger-${randomUUID()}`,
      username: 'ada',
      raw: { stranger: true },
      label: 'stranger',
      // Of the accounts' registry and the operators'.
      permissions: ['audit-log:read'],
      search: 'secret-',
      live_chat_id: 'live-secret',
      message: 'a message',
      message_id: 'message-secret',
      reply_to_message_id: 'message-secret',
      for_source_only: false,
      platform_user_id: '1',
      target_channel_id: '1',
      channel_id: '1',
      note_id: randomUUID(),
      event_id: randomUUID(),
      text: 'a text',
      title: 'a title',
      choices: ['a', 'b'],
      outcomes: ['a', 'b'],
      window_secs: 60,
      winning_outcome_id: 'outcome-secret',
      user_treatment: 'none',
      lumio_user_id: null,
      reason: 'a reason',
      platforms: ['kick'],
      moderator_id: '1',
      purpose: 'overlay',
      around: '01900000-0000-7000-8000-00000000c4a7',
      deleted: false,
      paid: false,
      from: '2020-01-01T00:00:00Z',
      to: '2999-01-01T00:00:00Z',
      created_at: new Date().toISOString(),
      expires_at: null,
      refresh_token: 'made up',
      token: 'made up',
      client_id: randomUUID(),
      client_secret: 'made up',
      client_type: 'confidential',
      code_challenge: 'a'.repeat(43),
      code_challenge_method: 'S256',
      code_verifier: 'made up',
      grant_type: 'authorization_code',
      grant_types: ['authorization_code'],
      redirect_uri: 'https://stranger.example/',
      redirect_uris: ['https://stranger.example/'],
      response_type: 'code',
      scope: 'events:read',
      scopes: ['events:read'],
      state: 'stranger',
      login_connection_id: linked.body.data.id,
      provider: 'twitch',
      provider_id: 'stranger',
      access_token: 'made up',
      profile: null,
      page: 1,
      limit: 100,
      name: 'Stranger',
      description: 'Stranger',
      color: '#000000',
      display_name: 'Stranger',
      email: 'stranger@example.com',
      active_account_id: credentials.account_id,
      clear_active_account: false,
      streamer_mode: true,
      extension_dev_mode: true,
      code: 'made up',
      plan: 'free',
      duration_secs: 3600,
      query: 'stranger',
      max_uses: 1,
      password: 'made up',
      allow_export: true,
      session_type: 'single',
      sort_by: 'started_at',
      sort_dir: 'asc',
      per_page: 100,
      format: 'json',
      channel: 'stranger',
      broadcast_id: 'b-1',
      range: 'DAYS_30',
      is_public: false,
      show_top_chatters: true,
      offset: 0,
      family: 'inter',
      config: {},
      role: 'viewer',
      overlay_id: made_overlay.body.data.id,
      parent_id: null,
      ...{ width: 1, height: 1, background: 'transparent', folder_id: null, revision: 0, layers: [] },
      volume: 1,
      target: null,
      duration_ms: 1,
      waveform: null,
      signature: 'made up',
      expires: 4_000_000_000,
      file: 'none',
      weight: 400,
      weights: '400',
      subset: 'latin',
      action: 'account:created',
      actor_id: randomUUID(),
      target_id: randomUUID(),
      after: randomUUID(),
      return_to: 'https://stranger.example/',
      kind: 'CHANNEL',
      channel_mode: 'SYSTEM',
      bot_mode: 'SYSTEM',
      alias: 'strange',
      exempt_roles: ['vips'],
      platform_reward_id: '1',
      template: '{{user.name}}',
      cost: 1,
      response: 'Hi',
      automation_id: null,
      min_role: 'vip',
      custom_bot_allowed: null,
      cooldown_global: 1,
      cooldown_user: 1,
      discord_form: 'both',
      ...{ second_run: 'skip', nodes: [], edges: [] },
      cursor: Buffer.from(JSON.stringify(['2999-01-01T00:00:00Z', 1, randomUUID()])).toString('base64url'),
    };
    own_examples = {
      updateUserRole: { permissions: ['ideas:read'] },
      replaceAutomationGraph: { revision: 1 },
      dryRunAutomation: { event_id: null, event_type: null },
      importAutomation: { format: 'lumio:automation', version: 1 },
      updateMemberRole: { user_id, role_id },
      removeMember: { user_id },
      createInvite: { role_id },
      deleteInvite: { invite_id },
      accountLoginAssignments: { user_id: credentials.other.user_id },
      assignLoginConnection: { user_id },
      removeLoginAssignment: { user_id },
      adminDisconnectChannelConnection: { id: channels[1] },
      adminDisconnectBotConnection: { id: bots[1] },
      adminDeleteSeToken: { id: await tip('kick') },
      createOverlaySharedLink: { expires_at: ends },
      createWidget: { type: 'text' },
      setAutomationVariable: { name: 'strange', type: 'number', value: 1 },
      deleteAutomationVariable: { name: 'kept' },
      automationRun: { run_id: begun_run.body.data.id },
      automationRuns: { status: 'failed', cursor: cursorOf('2999-01-01T00:00:00Z', randomUUID()) },
      ...{ createReward: { action: {} }, updateReward: { action: {} } },
      createBotCommand: { response_type: 'text' },
      updateBotCommand: { response_type: 'text', name: 'Odd', alias: 'odder' },
      adminCreateBotCommand: { response_type: 'text' },
      adminUpdateBotCommand: { response_type: 'text' },
      ...Object.fromEntries(
        ['botModule', 'updateBotModule', 'deleteBotModule', 'adminUpdateBotModule'].map((name) => [
          name,
          { module_name: 'timed_messages' },
        ]),
      ),
      adminBotCommands: { scope: 'global' },
      grantWidgetAccess: { user_id },
      revokeWidgetAccess: { user_id },
      grantOverlayAccess: { user_id },
      revokeOverlayAccess: { user_id },
      moderateChat: { action: 'BAN' },
      createPoll: { duration_secs: 60 },
      channelHistoryReportStats: { cursor: cursorOf('2020-01-01T00:00:00Z', 'kick', 'b') },
      ...Object.fromEntries(['channelHistory'].map((name) => [name, { cursor: cursorOf(0, 25) }])),
      setExternalOptOut: { opted_out: true },
      publicChannelBrowse: { sort_by: 'peak_viewers', sort_dir: 'asc' },
      publicGames: { sort_by: 'peak_viewers', sort_dir: 'asc' },
      publicEmotes: { sort_by: 'channel_count', sort_dir: 'asc' },
      eraseYoutubeMemberData: { id: 'UCnobody' },
      // It is called so by then.
      dissolveAccount: { confirm_name: 'Stranger' },
    };
    socket = new WebSocket(`${server.ws_url}?token=${encodeURIComponent(credentials.access_token)}`);
    socket.on('message', (data: Buffer) => heard.push(data.toString()));
    await new Promise((open, fail) => socket.once('open', open).once('error', fail));
    socket.send(JSON.stringify({ type: 'subscribe', channel: `events:${credentials.account_id}` }));
    // A socket that says nothing is closed after a while, and on a busy machine the walk is long.
    alive = setInterval(() => socket.send('{"type":"ping"}'), 10_000);
    await eventually(async () => heard.find((text) => text.includes('"subscribed"')), 'the subscription');
  });
  afterAll(async () => {
    clearInterval(alive);
    socket?.close();
    await server?.dispose();
    await cloud?.close();
  });

  const example = (operation: Operation, member: string): unknown => {
    const path = operation.rest?.path.split('/{')[0];
    const common = member === 'id' && path !== undefined ? things[path] : examples[member];
    const own = own_examples[operation.name]?.[member];
    const value = own === undefined ? common : own;
    if (value === undefined) throw new Error(`${operation.name}: there is no example of ${member} for the walk`);
    return value;
  };
  const aims = (operation: Operation, members: readonly string[]) =>
    members.some(
      (member) =>
        member === 'id' ||
        member === 'login_connection_id' ||
        operation.guard.some((one) => one.kind === 'account' && one.member === member),
    );
  test('learns nothing, changes nothing, and is heard by nobody there', async () => {
    const { other, account_id } = server.credentials;
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    const { permissions } = (await new ApiClient(server.base_url, other.access_token).get('/v1/tokens/me')).body.data;
    // One key may not ask everything in a minute.
    const keyed = async () => {
      const made = await ask.send(bearer(other.access_token), 'POST', '/v1/api-keys', { label: 'all', permissions });
      return bearer(JSON.parse(made.text).data.key);
    };
    const callers: Record<string, Record<string, string>> = {
      'another account': bearer(other.access_token),
      "another account's key": await keyed(),
      "another account's second key": await keyed(),
      "another account's key that names this one": { ...(await keyed()), 'x-lumio-account': account_id },
      "another account's second key that names this one": { ...(await keyed()), 'x-lumio-account': account_id },
      nobody: {},
    };
    const snapshot = async () => [
      (await owner.get('/v1/events?limit=100')).text,
      (await owner.get('/v1/api-keys')).body.data.map((one: object) => ({ ...one, last_used_at: null })),
      (await owner.gql('{ myPermissions }')).data,
      (await owner.get('/v1/roles')).body.data,
      ...(await Promise.all(
        ['', '/members', '/invites'].map((part) => owner.get(`/v1/accounts/${account_id}${part}`)),
      )),
    ];
    const before = await snapshot();
    heard.length = 0;

    const faults: string[] = [];
    let answers = 0;
    let aimed = 0;
    // The session of the stranger goes on to the end.
    const operations = [...OPERATIONS].sort(
      (a, b) => Number(a.name === 'logoutSession') - Number(b.name === 'logoutSession'),
    );
    for (const [caller, headers] of Object.entries(callers)) {
      for (const [index, operation] of operations.entries()) {
        if (operation.name === 'logoutSession' && caller !== 'nobody') continue;
        if (caller.includes('key') && caller.includes('second') !== (index % 2 === 0)) continue;
        const needed = membersOf(operation, 'needed');
        for (const members of [needed, membersOf(operation, 'all')]) {
          const asked: [Answer['protocol'], Asking['overRest']][] = [];
          if (operation.graphql !== null) asked.push(['GraphQL', ask.overGraphql]);
          if (operation.rest) asked.push(['REST', ask.overRest]);
          const few = members === needed;
          for (const [protocol, over] of asked) {
            // A session may ask less in a minute than a key, which asks everything.
            const is_turn = few === (index % 2 === 0) && (asked.length === 1 || (protocol === 'REST') === few);
            if (caller === 'another account' && !is_turn) continue;
            const answer = await over(operation, members, headers);
            const facts = { operation: operation.name, aimed: aims(operation, members), protocol, caller, ...answer };
            faults.push(...faultsOf(facts, owned));
            // A refusal of the document would say nothing about the account.
            if (/Unknown argument|Unknown type|Cannot query field|GRAPHQL|Rate limit/.test(answer.text)) {
              faults.push(`${operation.name} was not asked: ${answer.text}`);
            }
            answers += 1;
            aimed += Number(facts.aimed);
          }
        }
      }
      const alive = await ask.send(headers, 'GET', '/v1/tokens/me');
      expect([caller, alive.status]).toEqual([caller, caller === 'nobody' ? 401 : 200]);
    }
    expect(faults).toEqual([]);
    expect(answers).toBeGreaterThan(OPERATIONS.length * 8);
    expect(aimed).toBeGreaterThan(40);
    expect(await snapshot()).toEqual(before);

    // The owner's own event is heard after all that: nothing was on the way before it.
    await owner.send('POST', '/v1/events/test', { event_type: 'walk:over' });
    await eventually(async () => heard.find((text) => text.includes('walk:over')), "the owner's own event");
    expect(heard.filter((text) => !text.includes('walk:over') && !text.includes('"pong"'))).toEqual([]);
  });

  test('the owner is answered by each of the operations that were aimed at what is theirs', async () => {
    const headers = { authorization: `Bearer ${server.credentials.access_token}` };
    // An owner neither leaves nor is sent away, nor given another role; only commands of all accounts have overrides.
    const refused = ['leaveAccount', 'removeMember', 'updateMemberRole'];
    refused.push('setBotCommandOverride', 'deleteBotCommandOverride');
    const aimed = OPERATIONS.filter(
      ({ name, input, graphql }) => graphql !== null && 'id' in shapeOf(input, 'input') && !refused.includes(name),
    );
    expect(aimed.map(({ name }) => name)).toEqual(expect.arrayContaining(['event', 'deleteUserApiKey']));
    // Deletions come last, since what they remove is asked for by the others.
    const rank = ({ name }: Operation) => (name === 'dissolveAccount' ? 2 : Number(/delete|disconnect/i.test(name)));
    for (const operation of aimed.sort((a, b) => rank(a) - rank(b))) {
      // Each list answers cursors of its own.
      const members = membersOf(operation, 'all').filter((member) => member !== 'cursor');
      const answer = await ask.overGraphql(operation, members, headers);
      expect([operation.name, answer.text]).toEqual([operation.name, expect.not.stringContaining('"errors"')]);
    }
  });
});
