import { v7 } from 'uuid';
import { createRateLimiter } from '../../access/limits/rate-limiter';
import { createTokens, hashJti } from '../../access/authentication/tokens/jwt';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createLocalRateLimits } from '../../engines/rate-limits/local';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { median, quiet, rounded, type TrackOptions } from '../harness';
import { HttpLoad, requestBytes } from '../http-load';
import { type BenchPostgres, onPostgres } from '../postgres';
import { check, report } from '../report';
import { type Lumio, people, type Person, startLumio } from '../system';

const PATH = '/v1/plans';
const CREDENTIALS = ['anonymous', 'jwt', 'key'] as const;
type Credential = (typeof CREDENTIALS)[number];

/**
 * Cost of authentication: a public read with a JWT and with a personal key over the same read without a credential, one
 * request after the other, so that no request waits for another; and a unit of the limiter in the process. Limits stay
 * on: several people alternate, and anonymous requests come from many networks. Each caller makes more than one request
 * in the 0.9 s that a credential is cached; the first of them costs a look-up.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const [rounds, requests] = options.smoke ? [2, 50] : [40, 100];
  const lumio = await startLumio(postgres, 'lumio_access', { LUMIO_TRUSTED_PROXIES: '127.0.0.1' });
  const load = await HttpLoad.open(lumio.base_url, 1);
  try {
    const callers = await people(lumio, options.smoke ? 4 : 10);
    const bearer = (token: string) => requestBytes('GET', PATH, { authorization: `Bearer ${token}` });
    const prepared: Record<Credential, Buffer[]> = {
      anonymous: Array.from({ length: 5000 }, (_, n) => requestBytes('GET', PATH, { 'x-forwarded-for': network(n) })),
      jwt: (await tokensOf(lumio, callers)).map(bearer),
      key: callers.map(({ keys }) => bearer(keys[0]!)),
    };
    const asked: Record<Credential, number> = { anonymous: 0, jwt: 0, key: 0 };
    /** Microseconds of one request. */
    const once = async (as: Credential): Promise<number> => {
      const bytes = prepared[as][(asked[as] += 1) % prepared[as].length]!;
      const start = process.hrtime.bigint();
      const { status, body } = await load.request(bytes);
      const taken = Number(process.hrtime.bigint() - start) / 1000;
      if (status !== 200 || body.length < 50) throw new Error(`${PATH} as ${as}: ${status} ${body.toString()}`);
      return taken;
    };
    /** Alternates credentials per request, so that other work of the machine affects all alike. */
    const round = async (): Promise<Record<Credential, number>> => {
      const times: Record<Credential, number[]> = { anonymous: [], jwt: [], key: [] };
      for (let n = 0; n < requests; n += 1) for (const as of CREDENTIALS) times[as].push(await once(as));
      return { anonymous: median(times.anonymous), jwt: median(times.jwt), key: median(times.key) };
    };

    await round();
    const p50: Record<Credential, number[]> = { anonymous: [], jwt: [], key: [] };
    for (let n = 0; n < rounds; n += 1) {
      const taken = await round();
      for (const as of CREDENTIALS) p50[as].push(taken[as]);
    }
    /** The server's own CPU microseconds per request, which other work on the machine hardly affects. */
    const cpu: Record<Credential, number> = { anonymous: 0, jwt: 0, key: 0 };
    for (let n = 0; n < rounds / 4; n += 1) {
      for (const as of CREDENTIALS) {
        const before = lumio.cpu();
        for (let k = 0; k < requests; k += 1) await once(as);
        cpu[as] += (lumio.cpu() - before) / requests / (rounds / 4);
      }
    }
    const over = (as: Credential) => median(p50[as].map((taken, round) => taken / p50.anonymous[round]!));
    const unit = await unitOfLimiter(options.smoke ? 20_000 : 400_000);

    const each = (of: (as: Credential) => number) => Object.fromEntries(CREDENTIALS.map((as) => [as, rounded(of(as))]));
    const shown = { p50_us: each((as) => median(p50[as])), cpu_us: each((as) => cpu[as]) };
    console.log(`\naccess: GET ${PATH}, one request at a time`, shown);
    const checks = [
      check('p50 with a JWT over p50 of nobody', over('jwt'), 1.1),
      check('p50 with a personal key over p50 of nobody', over('key'), 1.1),
      check('a unit of the limiter in the process, microseconds', unit, 5),
    ];
    return report('access', [], { ...shown, checks }, options);
  } finally {
    load.close();
    await lumio.stop();
  }
}

/** Address of another network, because anonymous callers are counted by network. */
const network = (n: number): string => `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;

/** Creates a session of each caller on the demo account; returns the access tokens. */
async function tokensOf({ url, env, credentials }: Lumio, callers: readonly Person[]): Promise<string[]> {
  const db = new PostgresDatabase({ url, name: 'sessions', size: 1 });
  try {
    const secrets = createSecretBox(parseMasterKeys(env.LUMIO_SECRETS__KEYS!));
    const tokens = await createTokens({ db, secrets });
    const made: string[] = [];
    for (const { user_id } of callers) {
      const session_id = v7();
      await db.query(
        `insert into sessions (id, user_id, refresh_jti_hash, created_at, refreshed_at, expires_at)
         values ($1, $2, $3, now(), now(), now() + interval '1 day')`,
        [session_id, user_id, hashJti(session_id)],
      );
      const claims = { sub: user_id, account_id: credentials.account_id, session_id, use: 'access' } as const;
      made.push((await tokens.sign(claims, Date.now(), 3_600_000)).token);
    }
    return made;
  } finally {
    await db.close();
  }
}

/** Microseconds of a unit, over as many buckets as a busy node has callers. */
async function unitOfLimiter(units: number): Promise<number> {
  const limits = createLocalRateLimits();
  const counts = createRateLimiter({ limits, log: quiet, metrics: createPrometheusMetrics({}) });
  const buckets = Array.from({ length: 10_000 }, (_, n) => ({ rate_bucket: `user:${n}`, rate_limit: 600 }));
  const pass = async () => {
    const start = process.hrtime.bigint();
    for (let n = 0; n < units; n += 1) await counts.take(buckets[n % buckets.length]!);
    return Number(process.hrtime.bigint() - start) / 1000 / units;
  };
  try {
    const passes: number[] = [];
    for (let n = 0; n < 5; n += 1) passes.push(await pass());
    return median(passes);
  } finally {
    await limits.close();
  }
}
