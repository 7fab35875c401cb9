import { appendHistory } from '../history';
import { type CaseResult, compare, type Contender } from '../comparison';
import type { TrackOptions } from '../harness';
import { closedLoop, openLoop } from '../loops';
import { type BenchPostgres, onPostgres } from '../postgres';
import { report } from '../report';
import { HttpLoad, requestBytes } from '../http-load';
import { people, type Program, startLumio, startPeer } from '../system';
import { projected } from './webhook';

const CONNECTIONS = 32;

/**
 * Two reads through the real server (credential, limits, feature flag, permission, validation, links) against bare
 * Fastify and pg that run the same SQL for a fixed account and check nothing.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const lumio = await startLumio(postgres);
  const { account_id, system_key } = lumio.credentials;
  const callers = await people(lumio, options.smoke ? 4 : 20);
  const other = await startPeer('rest', [lumio.url, account_id, callers[0]!.user_id]);
  const loads = [
    await HttpLoad.open(lumio.base_url, CONNECTIONS),
    await HttpLoad.open(other.base_url, CONNECTIONS),
  ] as const;
  try {
    await appendHistory(lumio.url, lumio.env.LUMIO_SECRETS__KEYS!, [account_id], options.smoke ? 1000 : 50_000);
    await projected(lumio);
    const system = { authorization: `Bearer ${system_key}`, 'x-lumio-account': account_id };
    const routes = [
      { path: '/v1/events?limit=25', rows: 25, headers: [system] },
      // Personal keys are limited to 1,200 requests a minute each, so there are many, of people with five keys each.
      {
        path: '/v1/api-keys',
        rows: 5,
        headers: callers.flatMap(({ keys }) => keys.map((key) => ({ authorization: `Bearer ${key}` }))),
      },
    ];
    const [rounds, ms] = options.smoke ? [1, 500] : [5, 3000];
    const results: CaseResult[] = [];
    const latencies = [];
    for (const { path, rows, headers } of routes) {
      const ours = headers.map((one) => requestBytes('GET', path, one));
      const theirs = [requestBytes('GET', path, {})];
      let asked = 0;
      const get = async (load: HttpLoad, requests: readonly Buffer[]) => {
        const { status, body } = await load.request(requests[(asked += 1) % requests.length]!);
        // Every answer's size and shape, and every hundredth in full.
        if (status !== 200 || body.length < 100 * rows) throw new Error(`${path}: ${status} ${body.toString()}`);
        if (asked % 100 === 0) {
          const { data } = JSON.parse(body.toString()) as { data: unknown[] };
          if (data.length !== rows) throw new Error(`${path}: ${data.length} rows`);
        }
      };
      const contender = (name: string, load: HttpLoad, requests: readonly Buffer[], { cpu }: Program): Contender => ({
        name,
        cpu,
        run: (duration) => closedLoop(CONNECTIONS, duration, () => get(load, requests)),
      });
      const result = await compare({
        name: `GET ${path} (requests a second)`,
        contenders: [contender('lumio', loads[0], ours, lumio), contender('fastify + pg', loads[1], theirs, other)],
        subject: 'lumio',
        floors: { 'fastify + pg': 0.75 },
        rounds,
        ms,
        engineCpu: postgres.engineCpu,
        cpu_of: 'engine',
      });
      results.push(result);
      for (const share of [0.25, 0.5, 0.75]) {
        const rate = result.measured[0]!.median * share;
        latencies.push({ path, share, ...(await openLoop(rate, ms, () => get(loads[0], ours))) });
      }
    }
    console.log('\nrest: latency in an open loop, from the intended send time, at shares of the ceiling');
    console.table(latencies);
    return report('rest', results, { latencies }, options);
  } finally {
    for (const load of loads) load.close();
    await lumio.stop();
    await other.stop();
  }
}
