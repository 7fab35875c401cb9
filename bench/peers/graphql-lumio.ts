import { createAccessChanges } from '../../access/authentication/access-invalidation';
import { createRateLimiter } from '../../access/limits/rate-limiter';
import { createFeatureFlags } from '../../access/authorization/features';
import { createCallerResolver } from '../../access/authentication/resolve';
import { createRevocationTail } from '../../access/authentication/revocations';
import { createTokens } from '../../access/authentication/tokens/jwt';
import { createApi } from '../../api/server';
import { openEngines } from '../../bin/engines';
import { readSettings } from '../../bin/read-settings';
import { createProfileBreakers } from '../../services/chat/profile-breakers';
import { createServices } from '../../bin/services';
import { createLog } from '../../engines/log/pino';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { createReadModels } from '../../projections/runtime/status/read-models';
import { SAMPLE_OPERATIONS } from './graphql-sample';

/** No operation of the sample calls a chat. */
const noCall = () => Promise.reject(new Error('nothing is called here'));
const NO_CHAT = {
  chat: new Map(),
  connection_tokens: { token: () => Promise.reject(new Error('there are no connections here')) },
  emotes: {
    of: () => Promise.resolve([]),
    badges: () => Promise.resolve([]),
    known: () => ({ any: false, emote: () => undefined, badge: () => null }),
  },
  discord: {
    textChannels: noCall,
    post: noCall,
    roles: noCall,
    applicationId: noCall,
    registerCommands: noCall,
    acknowledge: noCall,
    refuse: noCall,
    answerInteraction: noCall,
  },
  profile_breakers: createProfileBreakers(),
  spendYoutube: async () => false,
};

/** Lumio's front door with everything it does for a request, over the sample operations instead of the product's. */
async function main(): Promise<void> {
  const settings = readSettings();
  const { log } = createLog(settings.log_level);
  const metrics = createPrometheusMetrics({});
  const engines = await openEngines({ settings, log, metrics, onLost: (reason) => log.error({ reason }, 'lost') });
  const { db, relay, events, wakeups } = engines;
  const tokens = await createTokens({ db, secrets: engines.secrets });
  const features = createFeatureFlags({ db });
  const counts = createRateLimiter({ limits: engines.rate_limits, log, metrics });
  const resolver = createCallerResolver({ db, tokens, log, counts, system_keys: settings.auth.system_keys });
  const tail = createRevocationTail({ db, log });
  const access = createAccessChanges({ relay, tail, forget: [resolver.forget, features.forget] });
  const read_models = createReadModels({ db, events, wakeups });
  const outside = { logins: new Map(), oauth: new Map(), chat: NO_CHAT };
  const services = createServices({
    settings,
    engines,
    metrics,
    db,
    read_models,
    features,
    tokens,
    ...outside,
    jobs: { enqueueNamed: noCall, wake: () => undefined },
    access,
  });
  const api = await createApi({
    settings,
    operations: SAMPLE_OPERATIONS,
    services,
    resolveCaller: ({ headers, ip }) => {
      const account = headers['x-lumio-account'];
      return resolver.resolve({
        authorization: headers.authorization,
        query_token: undefined,
        on_upgrade: false,
        account_header: Array.isArray(account) ? account[0] : account,
        ip,
        now: Date.now(),
      });
    },
    holder: engines.session,
    rate_limits: engines.rate_limits,
    webhooks: [],
    health: { checks: [], websocket: () => ({ sessions: 0, channels: 0 }) },
    metrics,
    log,
    version: '0',
  });
  process.stdout.write(`lumio ready at ${await api.listen()}\n`);
  process.once('SIGTERM', () => {
    const close = async () => {
      await api.close();
      await tail.stop();
      access.close();
      await resolver.close();
      await engines.close();
    };
    close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
}

void main();
