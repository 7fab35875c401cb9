import { randomInt } from 'node:crypto';
import { Client } from './realtime';
import type { DevCredentials } from './server';
import { ApiClient, eventually, VendorCloud } from './vendor-cloud';

/** A running server with its development credentials. */
export interface Doors {
  base_url: string;
  ws_url: string;
  credentials: DevCredentials;
}

/**
 * Drives a server through each of its doors: a command and a query over REST, GraphQL, a webhook that becomes a frame
 * of a socket, a socket that resumes, and a reactor whose job runs. Once for each installation. Leaves two events of
 * Kick in the account, no key, and no connection to Twitch.
 * @returns the id at Kick of the person whom both events are about
 */
export async function driveAllDoors({ base_url, ws_url, credentials }: Doors): Promise<number> {
  const { account_id, access_token } = credentials;
  const api = new ApiClient(base_url, access_token);
  const vendors = new VendorCloud(base_url, credentials);
  const channel = `events:${account_id}`;
  const person = randomInt(1_000_000_000, 2_000_000_000);

  const socket = await Client.open(ws_url, access_token);
  expect(await socket.subscribe(channel)).toMatchObject({ type: 'subscribed', channel });
  expect(await vendors.kickFollow(person)).toMatchObject({ status: 200 });
  const first = await socket.next((message) => message.event_type === 'kick:follower', 'the frame of a webhook');
  expect(first).toMatchObject({ channel, data: { account_id, payload: { follower: { user_id: person } } } });
  socket.end();
  await socket.closed();

  expect(await vendors.kickFollow(person)).toMatchObject({ status: 200 });
  const second = await eventually(async () => {
    const { body } = await api.get('/v1/events?types=kick:follower&limit=2');
    return body.data.find(({ id, raw }: any) => raw.follower?.user_id === person && id !== first.data!.id);
  }, 'the second webhook in REST');
  const resumed = await Client.open(ws_url, access_token);
  const answer = await resumed.subscribe(channel, first.id);
  expect(answer).toMatchObject({ type: 'subscribed', recovered: true });
  await resumed.next(({ data }) => data?.id === second.id, 'the frame that was missed');
  resumed.end();

  const found = await api.gql(`{ event(id: "${second.id}") { id accountId } }`);
  expect(found).toEqual({ data: { event: { id: second.id, accountId: account_id } } });
  const made = await api.send('POST', '/v1/api-keys', { label: 'doors', permissions: ['events:read'] });
  expect(made.status).toBe(201);
  const { key, id } = made.body.data as { key: string; id: string };
  expect((await new ApiClient(base_url, key).get(`/v1/events/${second.id}`)).status).toBe(200);
  expect((await api.send('DELETE', `/v1/api-keys/${id}`, undefined)).status).toBe(204);
  await disconnectTwitch(api, credentials.metrics_url);
  return person;
}

/** A reactor follows the event with a job, which runs in a worker. */
async function disconnectTwitch(api: ApiClient, metrics_url: string): Promise<void> {
  const ended = async () => {
    const text = await (await fetch(metrics_url)).text();
    const count = /^lumio_jobs_run_seconds_count\{(?=[^}]*name="end-connection")(?=[^}]*outcome="done")[^}]*\} (\d+)$/m;
    return Number(count.exec(text)?.[1] ?? 0);
  };
  const before = await ended();
  const { body } = await api.get('/v1/connections/channel');
  const { id } = body.data.find(({ platform }: { platform: string }) => platform === 'twitch');
  expect((await api.send('DELETE', `/v1/channel-connections/${id}`, undefined)).status).toBe(204);
  await eventually(async () => (await ended()) > before || undefined, 'the job that a reactor asked for');
}
