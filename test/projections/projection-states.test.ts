import { Command } from 'commander';
import { register } from '../../cli/projections';
import { projectionStates } from '../../projections/runtime/status/states';
import type { CliContext } from '../../cli/runtime/context';
import type { TestDatabase } from '../support/database';
import { silentLog } from '../support/log';
import { type Engines, eventTally, runtimeOf, tally, until } from '../support/projections';
import { talliedDatabase } from '../support/tallied';

let t: TestDatabase;
let on: Engines;

const { publish } = talliedDatabase((database, embedded) => ([t, on] = [database, embedded]), 10);

const states = () => projectionStates({ db: t.db, ...on, projections: [tally(), eventTally()] });

test('what every projection does is read from the tables, while a process runs and after it ended', async () => {
  expect(await states()).toMatchObject([
    { name: 'tally', version: null, program_version: 1, state: 'not running', behind: null, rate: 0 },
    { name: 'event_tally', version: null, state: 'not running', behind: null },
  ]);
  const runtime = runtimeOf(t.db, on, [tally(), eventTally()], { observe_ms: 30 });
  await runtime.start();
  // A rate is of the moment before it was observed, which a busy machine's look may miss: records go on coming.
  await until(async () => {
    await publish(1);
    return (await states())[0]!.rate > 0;
  });
  const [running] = await states();
  expect(running).toMatchObject({ version: 1, state: 'running', built: null });
  await publish(1, 'bug:js');
  await until(async () => (await states())[0]!.state === 'stopped');
  await runtime.stop();
  expect(await states()).toMatchObject([
    { name: 'tally', version: 1, state: 'not running', behind: 1, behind_seconds: expect.any(Number) },
    { name: 'event_tally', version: 1, state: 'not running', behind: 0 },
  ]);
});

test('the command prints them, and as JSON', async () => {
  const printed: string[] = [];
  const out = jest.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0);
  const context = { ...on, db: t.db, projections: [tally('tally', 2)], log: silentLog, close: async () => undefined };
  const run = async (...args: string[]) => {
    const program = new Command();
    register(program, async () => context as unknown as CliContext);
    await program.parseAsync(['node', 'lumio', 'projections', ...args]);
    return printed.splice(0).join('');
  };
  try {
    const runtime = runtimeOf(t.db, on, [tally()]);
    await runtime.start();
    await runtime.stop();
    expect(await run()).toMatch(/^name +version +state +lag +rate\ntally +1, to be 2 +not running +0 +0\.0\/s\n$/);
    expect(JSON.parse(await run('--json'))).toMatchObject({ name: 'tally', version: 1, program_version: 2 });
  } finally {
    out.mockRestore();
  }
});
