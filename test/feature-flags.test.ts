import type { Services } from '../access/services';
import { adoptFeatureFlags } from '../maintenance/feature-flag-adoption';
import { featureFlag, featureFlagStream } from '../domain/feature-flags';
import { asOperator } from '../cli/admin/operator';
import { featureFlags } from '../projections/feature-flags';
import { decider } from './support/decider';
import { type TestDatabase, testDatabase } from './support/database';
import { feed } from './support/identity';
import { engines, type Engines } from './support/projections';

const now = '2026-01-02T03:04:05.000Z';
type Needs = Pick<Services, 'db' | 'events' | 'commit'>;
const flag = 'feature:events';
const switched = (enabled: boolean) => ({ type: 'feature_flag:switched', flag, enabled, switched_at: now }) as const;

describe('a global feature flag', () => {
  const given = decider(featureFlag);
  const turn = (enabled: boolean) => ({ type: 'feature_flag:switch', flag, enabled, now }) as const;
  const adopt = { type: 'feature_flag:adopt', flag, enabled: false, now } as const;

  test('is switched, and once', () => {
    given([]).when(turn(false)).then(switched(false));
    given([switched(false)])
      .when(turn(false))
      .thenNothing();
    given([switched(false)])
      .when(turn(true))
      .then(switched(true));
  });
  test('must be one that code asks about', () =>
    given([])
      .when({ ...turn(false), flag: 'feature:none' })
      .thenFails('UNKNOWN_FLAG'));
  test('is adopted only where nothing was said since', () => {
    given([]).when(adopt).then(switched(false));
    given([switched(true)])
      .when(adopt)
      .thenNothing();
  });
});

describe('flags in the database', () => {
  let t: TestDatabase;
  let on: Engines;
  beforeEach(async () => {
    t = await testDatabase();
    on = await engines(t.db);
  });
  afterEach(async () => {
    await on.close();
    await t.drop();
  });
  const rows = () => t.db.query('select key, enabled from feature_flags order by key');

  test('the last switch counts, also when a page comes twice', async () => {
    await feed(t.db, featureFlags, [switched(false), switched(true), switched(false)], 2);
    expect(await rows()).toEqual([{ key: flag, enabled: false }]);
  });

  test('what operators had set before is appended once, cut off and by two at a time', async () => {
    // As step 0032 leaves it. No code asks about the second any more; it was said all the same.
    await t.db.query(`insert into feature_flags_before_events values
      ('feature:events', false, '2026-01-02T03:04:05Z'), ('feature:gone', true, '2026-01-02T03:04:05Z')`);
    const { events } = on;
    const services: Needs = { db: t.db, events, commit: (_request, writes) => events.append(writes, {}) };
    const dying: Needs = {
      ...services,
      async commit(_request, writes) {
        await events.append(writes, {});
        throw new Error('the process died here');
      },
    };
    await expect(adoptFeatureFlags(dying, asOperator('upgrade'))).rejects.toThrow('died');
    const adopt = () => adoptFeatureFlags(services, asOperator('upgrade'));
    expect(Math.max(...(await Promise.all([adopt(), adopt()])))).toBe(2);
    expect(await adopt()).toBe(0);

    const stored = await events.read(featureFlagStream(flag));
    expect(stored.map(({ data }) => data)).toEqual([{ flag, enabled: false, switched_at: now }]);
    expect(await events.read(featureFlagStream('feature:gone'))).toHaveLength(1);
  });
});
