import { v7 } from 'uuid';
import { readSeToken } from '../../services/connections/se-tokens';
import { SERVICE_CALLER, withoutReadYourWrites } from '../../app/service-calls';
import type { Services } from '../../app/services';
import { prepare } from '../../api/rest/invoke';
import { deleteSeToken, saveSeToken } from '../../commands/connections/se-tokens';
import { seTokensStream } from '../../domain/connections/se-tokens';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { testDatabase } from '../support/database';

test('a token that is saved while it is deleted keeps its secret, and gets another id', async () => {
  const t = await testDatabase();
  const store = await createPostgresEventStore({ pool: t.db.pool, wakeups: createLocalWakeups() });
  const secrets = createSecretBox(parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`));
  const account_id = v7();
  const plain = { db: t.db, secrets, ...withoutReadYourWrites(store, () => ({})) } as unknown as Services;
  const caller = { ...SERVICE_CALLER, account_id };
  const context = { correlation_id: v7(), trace: null, ip: '', now: Date.now(), idempotency_seed: null };
  const save = (token: string, services = plain) =>
    prepare(saveSeToken, services).run(
      { caller, input: { platform: 'twitch', token, label: '' } },
      context,
    ) as Promise<{ id: string }>;
  const first = await save('first token');
  let deleted = false;
  const racing: Services = {
    ...plain,
    async commit(...args) {
      if (!deleted) {
        deleted = true;
        await prepare(deleteSeToken, plain).run({ caller, input: { id: first.id } }, context);
      }
      return plain.commit(...args);
    },
  };
  const second = await save('second token', racing);
  expect(second.id).not.toBe(first.id);
  const tokenOf = async (id: string) => (await readSeToken({ db: t.db, secrets }, id))?.token;
  expect([await tokenOf(first.id), await tokenOf(second.id)]).toEqual([undefined, 'second token']);
  const types = (await store.read(seTokensStream(account_id))).map(({ type }) => type);
  expect(types).toEqual(['se_token:saved', 'se_token:deleted', 'se_token:saved']);
  const third = await save('third token');
  expect([third.id, await tokenOf(second.id)]).toEqual([second.id, 'third token']);
  await store.close();
  await t.drop();
});
