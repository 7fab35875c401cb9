import { listedAtTwitch } from '../../ingest/twitch/conduit/listed';

const one = (n: number, conduit_id: string, enabled: boolean) => ({
  ...{ id: `s-${n}`, type: 'channel.update', condition: { broadcaster_user_id: '1337' } },
  ...{ conduit_id, enabled, created_at: '2026-11-25T10:00:00Z' },
});

test('finds a subscription behind pages of ended ones', async () => {
  const all = [
    ...Array.from({ length: 200 }, (_, n) => one(n, n % 2 ? 'former' : 'own', false)),
    one(200, 'own', true),
  ];
  const twitch = {
    subscriptions: (_app: unknown, { after = '0' }: { after?: string }) => {
      const to = Number(after) + 100;
      return Promise.resolve({
        subscriptions: all.slice(Number(after), to),
        after: to < all.length ? String(to) : null,
      });
    },
  };
  const app = { client_id: 'a', client_secret: 'b' };
  const found = await listedAtTwitch(twitch, { app, conduit: { id: 'own', shard_count: 1 } }, '1337');
  expect([...found.values()].map(({ subscription_id }) => subscription_id)).toEqual(['s-200']);
});
