import { TOPICS } from '../../domain/common/records';
import { createKafkaBroker } from '../../engines/broker/kafka/broker';
import { createRecordLog } from '../../engines/records/log';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { testDatabase, type TestDatabase } from '../support/database';
import { ACCOUNTS, createTally, engines, fold, record, rowsOf, runtimeOf, tally, until } from '../support/projections';
import { type Kafka, startKafka } from './support/kafka';

const MASTER = `test:${Buffer.alloc(32, 7).toString('base64')}`;

describe('projections on Kafka', () => {
  let kafka: Kafka;
  let t: TestDatabase;
  beforeAll(async () => {
    [kafka, t] = [await startKafka(), await testDatabase()];
    await createTally(t.db);
  });
  afterAll(async () => {
    await t.drop();
    await kafka.kill();
  });

  /** What a process of its own would have. */
  async function node() {
    const base = await engines(t.db);
    const broker = await createKafkaBroker({ url: kafka.url });
    const subject_keys = createSubjectKeys({ db: t.db, master_keys: parseMasterKeys(MASTER) });
    const close = async () => {
      await broker.close();
      await base.close();
    };
    return { ...base, broker, records: createRecordLog({ broker, subject_keys }), close };
  }

  test('row 8: a batch slower than its session, while its partitions go to another process: every record counts once', async () => {
    const [slow, fast] = [await node(), await node()];
    await slow.broker.ensureTopics([TOPICS.platform_events], 4);
    const sent: [string, string][] = [];
    const publish = async (count: number) => {
      for (let n = 0; n < count; n += 1) {
        const records = ACCOUNTS.map((account_id) => record(account_id, n));
        await slow.records.append(TOPICS.platform_events, records);
        for (const { account_id, id } of records) sent.push([account_id, id]);
      }
    };
    let holding = false;
    let held = false;
    const plain = tally();
    const dawdling = {
      ...plain,
      async apply(...given: Parameters<typeof plain.apply>) {
        const messages = await plain.apply(...given);
        if (!held) {
          held = holding = true;
          await new Promise((resume) => setTimeout(resume, 12_000)); // the session is 8 s
          holding = false;
        }
        return messages;
      },
    };
    const one = runtimeOf(t.db, slow, [dawdling]);
    const two = runtimeOf(t.db, fast, [plain]);
    await publish(20);
    await one.start();
    await until(() => holding);
    await two.start();
    await publish(20);
    const expected = () => fold(sent);
    await until(async () => {
      const rows = await rowsOf(t.db);
      return rows.reduce((sum, row) => sum + Number(row.n), 0) >= sent.length;
    });
    expect(held && !holding).toBe(true);
    expect(await rowsOf(t.db)).toEqual(expected());
    await Promise.all([one.stop(), two.stop()]);
    await Promise.all([slow.close(), fast.close()]);
  });
});
