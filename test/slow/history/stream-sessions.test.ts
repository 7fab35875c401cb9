import { v7 as uuid } from 'uuid';
import { TOPICS, type RecordEnvelope } from '../../../domain/common/records';
import { engines, type Engines } from '../../support/projections';
import { chatRecord, message } from '../../support/chat-records';
import { Listener } from '../../support/listener';
import { startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';

const MASTER_KEY = `test:${Buffer.alloc(32, 7).toString('base64')}`;

let server: TestServer;
let on: Engines;
let owner: ApiClient;
let account_id: string;
beforeAll(async () => {
  server = await startServer({
    env: { LUMIO_SECRETS__KEYS: MASTER_KEY, LUMIO_HISTORY__COUNT_EVERY: '1s' },
  });
  on = await engines(server.database!.db as never);
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  ({ account_id } = server.credentials);
  await on.records.append(TOPICS.platform_events, [online(new Date(Date.now() - 300_000).toISOString())]);
});
afterAll(async () => {
  await on?.close();
  await server?.dispose();
});

/** A report of Kick: the channel is live. */
const online = (started_at: string): RecordEnvelope => ({
  ...{ id: uuid(), account_id, type: 'kick:stream_online', platform: 'kick', external_id: null },
  ...{ occurred_at: started_at, received_at: started_at, subject: null, trace: null },
  raw: JSON.stringify({
    broadcaster: { user_id: Number(server.credentials.connections.kick.platform_channel_id) },
    ...{ is_live: true, title: 'Still here', started_at, ended_at: null },
  }),
});

interface Session {
  id: string;
  status: string;
  [figure: string]: unknown;
}
const list = async () => (await owner.get('/v1/history')).body.data as Session[];
const living = () => eventually(async () => (await list()).find(({ status }) => status === 'live'), 'the live session');

describe('a session', () => {
  test('that goes on is announced with its figures, which the list shows', async () => {
    const { id } = await living();
    const listener = await Listener.to(server.ws_url, server.credentials.access_token, `history:${account_id}`);
    try {
      await on.records.append(TOPICS.chat_events, [
        chatRecord(message('1', 'hi', { platform: 'kick' }), { account_id, at: new Date().toISOString() }),
      ]);
      const updated: any = await listener.next(
        (one: any) => one.event_type === 'history:session_updated' && one.data.total_messages === 1,
      );
      expect(updated.data).toMatchObject({ session_id: id, id, status: 'live', platforms: ['kick'] });
      expect((await list()).find((one) => one.id === id)).toMatchObject({ total_messages: 1, unique_chatters: 1 });
    } finally {
      listener.close();
    }
  });
});
