import { isDeepStrictEqual } from 'node:util';
import { type CaseResult, compare, type Contender } from '../comparison';
import type { TrackOptions } from '../harness';
import { closedLoop, openLoop } from '../loops';
import { type BenchPostgres, onPostgres } from '../postgres';
import { report } from '../report';
import { HttpLoad, requestBytes } from '../http-load';
import { EXPECTED, QUERIES } from '../peers/graphql-sample';
import { startLumio, startPeer } from '../system';

const CONNECTIONS = 32;

/**
 * Reads of an object, and of a list of 25 with nested objects and lists, from memory. Lumio's front door authenticates
 * the caller (a system key on an account), checks feature flag and permission, measures and limits the document and
 * validates the input; the peers do none of it.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  // The product itself creates the demo data, and with it the caller.
  const product = await startLumio(postgres);
  const { account_id, system_key } = product.credentials;
  const system = { authorization: `Bearer ${system_key}`, 'x-lumio-account': account_id };
  const names = ['apollo', 'yoga', 'mercurius'];
  const servers = [
    { name: 'lumio', headers: system, program: await startPeer('graphql-lumio', [], product.env) },
    ...(await Promise.all(
      names.map(async (name) => ({ name, headers: {}, program: await startPeer('graphql', [name]) })),
    )),
  ];
  const loads = await Promise.all(servers.map(({ program }) => HttpLoad.open(program.base_url, CONNECTIONS)));
  try {
    const [rounds, ms] = options.smoke ? [1, 400] : [5, 3000];
    const results: CaseResult[] = [];
    const latencies = [];
    for (const kind of ['one', 'list'] as const) {
      const body = JSON.stringify(QUERIES[kind]);
      const sends = await Promise.all(
        servers.map(async ({ name, headers }, index) => {
          const bytes = requestBytes('POST', '/v1/gql', { accept: 'application/json', ...headers }, body);
          const first = await loads[index]!.request(bytes);
          const { data } = JSON.parse(first.body.toString()) as { data: unknown };
          if (first.status !== 200 || !isDeepStrictEqual(data, EXPECTED[kind])) {
            throw new Error(`${name} answers ${first.status} ${first.body.toString()}`);
          }
          const { length } = first.body;
          return async () => {
            const { status, body: answer } = await loads[index]!.request(bytes);
            if (status !== 200 || answer.length !== length) throw new Error(`${name}: ${status} ${answer.toString()}`);
          };
        }),
      );
      const result = await compare({
        name: kind === 'one' ? 'one object (requests a second)' : 'list of 25 with nesting (requests a second)',
        contenders: servers.map(({ name, program }, index): Contender => ({
          name,
          cpu: program.cpu,
          run: (duration) => closedLoop(CONNECTIONS, duration, sends[index]!),
        })),
        subject: 'lumio',
        floors: kind === 'one' ? { apollo: 1.2 } : { apollo: 2.5, mercurius: 1 },
        rounds,
        ms,
        engineCpu: () => 0,
        cpu_of: 'engine',
      });
      results.push(result);
      for (const share of [0.25, 0.5, 0.75]) {
        const rate = result.measured[0]!.median * share;
        latencies.push({ kind, share, ...(await openLoop(rate, ms, sends[0]!)) });
      }
    }
    console.log('\ngraphql: latency in an open loop, from the intended send time, at shares of the ceiling');
    console.table(latencies);
    return report('graphql', results, { latencies }, options);
  } finally {
    for (const load of loads) load.close();
    for (const { program } of servers) await program.stop();
    await product.stop();
  }
}
