import { PostgresDatabase } from '../../engines/postgres/pool';
import { testDatabase, type TestDatabase } from '../support/database';

describe.each([false, true])('transactions, statements sent ahead of answers: %s', (pipeline) => {
  let target: TestDatabase;
  let db: PostgresDatabase;
  beforeAll(async () => {
    target = await testDatabase();
    db = new PostgresDatabase({ url: target.url, name: 'transactions', size: 1, pipeline });
    await db.query('create table notes (id int primary key)');
  });
  afterAll(async () => {
    await db.close();
    await target.drop();
  });
  beforeEach(() => db.query('truncate notes'));

  const note = (id: number) => `insert into notes values (${id})`;
  const notes = async () => (await db.query<{ id: number }>('select id from notes order by id')).map(({ id }) => id);

  test('the last statement is given the result and committed with the rest', async () => {
    const result = await db.transaction(
      async (tx) => {
        await Promise.all([tx.query(note(1)), tx.query(note(2))]);
        return 3;
      },
      (three) => ({ text: note(three) }),
    );
    expect(result).toBe(3);
    expect(await notes()).toEqual([1, 2, 3]);
  });

  test('a failing last statement undoes everything, and says why', async () => {
    const failing = db.transaction(
      (tx) => tx.query(note(1)),
      () => ({ text: note(1) }),
    );
    await expect(failing).rejects.toMatchObject({ code: '23505' });
    expect(await notes()).toEqual([]);
  });

  test('a last step that throws before it sends anything undoes everything', async () => {
    const failing = db.transaction(
      (tx) => tx.query(note(1)),
      () => {
        throw new Error('nothing to say');
      },
    );
    await expect(failing).rejects.toThrow('nothing to say');
    expect(await notes()).toEqual([]);
  });

  test('a commit that fails is told', async () => {
    await db.query('create table replies (id int references notes deferrable initially deferred)');
    const failing = db.transaction(
      (tx) => tx.query(note(1)),
      () => ({ text: 'insert into replies values (7)' }),
    );
    await expect(failing).rejects.toMatchObject({ code: '23503' });
    expect(await notes()).toEqual([]);
    await db.query('drop table replies');
  });

  test('a connection cut in the transaction is replaced', async () => {
    const failing = db.transaction(
      (tx) => tx.query(note(1)),
      () => ({ text: 'select pg_terminate_backend(pg_backend_pid())' }),
    );
    await expect(failing).rejects.toThrow();
    expect(await notes()).toEqual([]);
  });
});
