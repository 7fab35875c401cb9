import { createIdempotency, type IdempotentCall } from '../../api/rest/idempotency';
import { MAX_DISPLAY_PAYLOAD } from '../../domain/events/display-payload';
import { silentLog } from '../support/log';

/** Whether an answer with this body is stored under its Idempotency-Key. */
async function isKept(body: string): Promise<boolean> {
  const queries: string[] = [];
  const query = async (text: string) => {
    queries.push(text);
    return text.startsWith('insert') ? [{ seed: Buffer.alloc(16), since: 0 }] : [];
  };
  const holder = { lock: 1, held: true };
  const db = { query } as never;
  const idempotency = createIdempotency({ db, log: silentLog, holder, awaitShown: async () => undefined });
  const call = {
    request: { method: 'POST', url: '/v1/events/test', body: {} },
    route: 'POST /v1/events/test',
    key: 'once',
    caller: { kind: 'service_key', credential_id: 'key', account_id: 'one', user_id: null },
    scope: null,
    context: {},
  };
  await idempotency.answerOnce(call as unknown as IdempotentCall, async () => ({ status: 200, headers: null, body }));
  idempotency.stop();
  return queries.some((text) => text.includes('set answer'));
}

test('the longest answer of an event that is only broadcast is kept, a longer one is not', async () => {
  const raw = JSON.stringify(Array<string>(MAX_DISPLAY_PAYLOAD / 3 - 1).fill(''));
  expect(raw.length).toBeGreaterThan(MAX_DISPLAY_PAYLOAD - 8);
  const record = { id: 'i'.repeat(36), type: 't'.repeat(100), external_id: '"'.repeat(255) };
  expect(await isKept(`{"success":true,"event":{"record":${JSON.stringify(record)},"raw":${raw}}}`)).toBe(true);
  expect(await isKept('x'.repeat(64 * 1024 + 1))).toBe(false);
});
