import { openSession } from '../../web/session';

/** Storage of a tab, and the calls that the page makes. */
const kept = new Map<string, string>();
const calls: string[] = [];
let made = 0;

const answer = (method: string, path: string): object => {
  if (path === '/v1/users/me') return { active_account_id: 'account' };
  if (method === 'POST' && path === '/v1/tokens') return { id: `id-${(made += 1)}`, token: `lm_pop_${made}` };
  return { token: 'session', account_id: 'account' };
};

beforeAll(() => {
  const globals = globalThis as unknown as Record<string, unknown>;
  globals['sessionStorage'] = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
  };
  globals['fetch'] = async (path: string, { method }: { method: string }) => {
    calls.push(`${method} ${path}`);
    return { ok: true, json: async () => ({ data: answer(method, path) }) };
  };
});

test('a tab that is opened with another token revokes the one that it made before', async () => {
  for (const token of ['first', 'second', 'third']) await openSession(token);
  expect(calls.filter((call) => call.startsWith('DELETE'))).toEqual([
    'DELETE /v1/tokens/id-1',
    'DELETE /v1/tokens/id-2',
  ]);
  // A reload goes on with what the tab has.
  await openSession(kept.get('lumio-token')!);
  expect(made).toBe(3);
});
