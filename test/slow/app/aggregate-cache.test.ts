import { v7 as uuid } from 'uuid';
import { account, type AccountEvent } from '../../../domain/accounts/accounts';
import { fold } from '../../../kernel/decider';

describe('an account of ten thousand members', () => {
  const account_id = uuid();
  const roles = account.decide(account.initial, {
    type: 'account:create',
    account_id,
    name: 'Large',
    owner_id: uuid(),
    membership_id: uuid(),
    role_ids: [uuid(), uuid(), uuid(), uuid()],
    now: '2026-01-01T00:00:00.000Z',
  });
  const role_id = (roles[0] as Extract<AccountEvent, { type: 'account:created' }>).roles[3]!.role_id;
  const joined = (): AccountEvent => ({
    type: 'account:member_added',
    account_id,
    membership_id: uuid(),
    user_id: uuid(),
    role_id,
    added_at: '2026-01-01T00:00:00.000Z',
  });
  const history = (members: number): AccountEvent[] => [...roles, ...Array.from({ length: members }, joined)];

  test('is folded in a time that grows with its members', () => {
    const [small, large] = [history(1_000), history(10_000)];
    const cpu = (work: () => void) => {
      const started = process.cpuUsage();
      work();
      const { user, system } = process.cpuUsage(started);
      return user + system;
    };
    fold(account, large);
    const least = { small: Infinity, large: Infinity };
    for (let round = 0; round < 5; round += 1) {
      least.small = Math.min(
        least.small,
        cpu(() => Array.from({ length: 10 }, () => fold(account, small))),
      );
      least.large = Math.min(
        least.large,
        cpu(() => fold(account, large)),
      );
    }
    // The same number of steps; a copy of all members at each would make it ten times as much.
    expect(least.large / least.small).toBeLessThan(4);
  });
});
