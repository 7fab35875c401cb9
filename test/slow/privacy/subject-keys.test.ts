import { parseMasterKeys } from '../../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../../privacy/subject-keys/postgres';
import { testDatabase, type TestDatabase } from '../../support/database';

describe('subject keys', () => {
  let target: TestDatabase;
  const key = (fill: number) => Buffer.alloc(32, fill).toString('base64');
  beforeAll(async () => {
    target = await testDatabase();
  });
  afterAll(() => target.drop());

  test('a database that is away is waited for, and while it stays away its own reason is told', async () => {
    const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    let refusals = 10;
    const db = new Proxy(target.db, {
      get(on, member) {
        if (member !== 'query') return Reflect.get(on, member).bind?.(on) ?? Reflect.get(on, member);
        return async (text: string, values?: unknown[], name?: string) => {
          if (name === 'subject-keys-make' && (refusals -= 1) >= 0) throw away;
          return on.query(text, values, name);
        };
      },
    });
    const keys = createSubjectKeys({ db, master_keys: parseMasterKeys(`m1:${key(1)}`) });
    expect([...(await keys.forWriting(['kick:patient'])).keys()]).toEqual(['kick:patient']);
    refusals = Number.POSITIVE_INFINITY;
    await expect(keys.forWriting(['kick:given-up'])).rejects.toBe(away);
  });
});
