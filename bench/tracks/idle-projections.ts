import { setTimeout as sleep } from 'node:timers/promises';
import { v7 } from 'uuid';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { migrate } from '../../engines/postgres/migrate';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import { median, rounded, type TrackOptions } from '../harness';
import { openLoop } from '../loops';
import { type BenchPostgres, onPostgres } from '../postgres';
import { check, report } from '../report';
import { database, startPeer } from '../system';

const APPENDS_A_SECOND = 200;
const MANY = 40;

/**
 * Cost of idle projections, while 200 events per second are appended that none of them reads: a projector process with
 * one of them and another with forty alternate. The figures are shares of a core, of the process and its database.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const [rounds, ms] = options.smoke ? [1, 1500] : [5, 10_000];
  const used: Record<'one' | 'many', number[]> = { one: [], many: [] };
  const above: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const one = await cores(postgres, `one_${round}`, 1, ms);
    const many = await cores(postgres, `many_${round}`, MANY, ms);
    used.one.push(one);
    used.many.push(many);
    above.push(many - one);
  }
  const cost = Object.fromEntries(Object.entries(used).map(([name, all]) => [name, all.map(rounded)]));
  console.log('\nidle-projections: cores used, each round', cost);
  const checks = [check(`cores that ${MANY} projections cost above one`, median(above), 0.1)];
  return report('idle-projections', [], { cost, appends_a_second: APPENDS_A_SECOND, checks }, options);
}

/** Cores that the process and its database use while events are appended, including the appends' own cost. */
async function cores(postgres: BenchPostgres, name: string, projections: number, ms: number): Promise<number> {
  const url = await database(postgres, name);
  await migrate(url);
  const db = new PostgresDatabase({ url, name: 'appender', size: 4 });
  const wakeups = createPostgresWakeups({ url });
  const events = await createPostgresEventStore({ pool: db.pool, wakeups });
  const append = async (n: number) => {
    const event = { id: v7(), type: 'bench:happened', data: { n } };
    await events.append([{ stream: `bench-${n % 100}`, expected: 'any', events: [event] }], {});
  };
  const projector = await startPeer('idle-projections', [url, String(projections)]);
  try {
    await openLoop(APPENDS_A_SECOND, 1000, append);
    const [own, engine, started] = [projector.cpu(), postgres.engineCpu(), performance.now()];
    await openLoop(APPENDS_A_SECOND, ms, append);
    const seconds = (performance.now() - started) / 1000;
    return (projector.cpu() - own + postgres.engineCpu() - engine) / 1e6 / seconds;
  } finally {
    await projector.stop();
    await events.close();
    await wakeups.close();
    await db.close();
    await sleep(100);
  }
}
