import { z } from 'zod';
import { job } from '../../../kernel/job';
import { type TestDatabase, testDatabase } from '../../support/database';
import { EFFECTS, jobNode, type JobNode } from '../../support/jobs';
import { eventually } from '../../support/vendor-cloud';

const WAITING = 10_000;
const WITHIN_MS = 2_000;

let t: TestDatabase;
let node: JobNode<Calls>;

interface Calls {
  /** Settles when the hanging platform answers. */
  answered: Promise<void>;
}

const call = job({
  name: 'call',
  payload: { account: z.string() },
  after_unknown: 'repeat',
  lane: ({ account }) => account,
  async run({ account }, _attempt, { answered }: Calls) {
    if (account === 'busy') await answered;
    return (tx) => tx.query('insert into job_effects (key, note) values ($1, $1)', [account]);
  },
});

let answer: () => void;
beforeAll(async () => {
  t = await testDatabase();
  await t.db.query(EFFECTS);
  const answered = new Promise<void>((resolve) => (answer = resolve));
  node = await jobNode(t.url, [call], { answered }, { poll_ms: WITHIN_MS });
});
afterAll(async () => {
  answer?.();
  await node?.close();
  await t?.drop();
});

test('while 10,000 calls of a lane wait behind hanging ones, those of other lanes are made', async () => {
  const enqueue = async (...accounts: string[]) => {
    const jobs = accounts.map((account, n) => ({ key: `${account}-${n}`, payload: { account } }));
    await node.db.transaction((tx) => node.jobs.enqueue(tx, call, ...jobs));
    node.jobs.wake();
  };
  await enqueue(...Array.from({ length: WAITING }, () => 'busy'));
  const running = async () => (await node.queue.counts()).find(({ state }) => state === 'running')?.count;
  await eventually(async () => ((await running()) === 4 ? true : undefined), 'a full lane');
  for (const account of ['one', 'two', 'three']) {
    await enqueue(account);
    await eventually(
      async () =>
        (await t.db.query('select 1 from job_effects where key = $1', [account])).length === 1 ? true : undefined,
      `the call of ${account}`,
      WITHIN_MS,
    );
  }
  expect(await running()).toBe(4);
});
