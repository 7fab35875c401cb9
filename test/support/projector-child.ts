import { PostgresDatabase } from '../../engines/postgres/pool';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { asking, jobNode, noting } from './jobs';
import { engines, eventTally, runtimeOf, tally } from './projections';

/**
 * A process of its own that drives the test projections (or rebuilds one, or drives the one that asks for jobs), to be
 * killed by a test.
 * Usage: node projector-child.js run|rebuild|asking URL
 */
async function main([how, url]: string[]): Promise<void> {
  const db = new PostgresDatabase({ url: url!, name: 'child', size: 8, pipeline: true });
  const on = await engines(db);
  const projections = [tally(), eventTally()];
  if (how === 'asking') {
    const { jobs } = await jobNode(url!, [noting()], { outside: '/dev/null' }, { start: false });
    await runtimeOf(db, on, [asking], { jobs, batch_events: 5 }).start();
    process.stdout.write('running\n');
    return;
  }
  if (how === 'run') {
    // Small batches: more transactions to die in.
    await runtimeOf(db, on, projections, { batch_records: 7, batch_events: 5 }).start();
    process.stdout.write('running\n');
    return;
  }
  let said = false;
  await rebuild({
    db,
    ...on,
    projections,
    name: 'tally',
    batch_records: 20,
    onProgress: () => {
      if (!said) process.stdout.write('running\n');
      said = true;
    },
  });
  process.stdout.write('done\n');
  process.exit(0);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exit(1);
});
