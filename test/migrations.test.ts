import { migrate } from '../engines/postgres/migrate';
import { emptyDatabase, type TestDatabase } from './support/database';

describe('migrations', () => {
  let target: TestDatabase;
  beforeAll(async () => {
    target = await emptyDatabase();
  });
  afterAll(() => target.drop());

  test('twelve starts at once migrate once', async () => {
    const starts = await Promise.allSettled(Array.from({ length: 12 }, () => migrate(target.url)));
    expect(starts.filter((start) => start.status === 'rejected')).toEqual([]);
    const applied = starts.map((start) => (start.status === 'fulfilled' ? start.value.length : 0));
    expect(applied.filter((count) => count > 0)).toHaveLength(1);
  });

  test('a second run applies nothing', async () => {
    expect(await migrate(target.url)).toEqual([]);
  });
});
