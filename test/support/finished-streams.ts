import type { DevCredentials } from './server';
import { ApiClient, eventually, VendorCloud } from './vendor-cloud';

/**
 * Two streams of the owner that have ended, an hour apart, as Kick reports them; returns the ids of their reports. The
 * grace must be shorter than an hour, and have passed.
 */
export async function finishedStreams(
  base_url: string,
  credentials: DevCredentials,
  title = 'A stream',
): Promise<[string, string]> {
  const vendors = new VendorCloud(base_url, credentials);
  const owner = new ApiClient(base_url, credentials.access_token);
  const user_id = Number(credentials.connections.kick.platform_channel_id);
  const before = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
  for (const [started_at, ended_at] of [
    [before(240), before(180)],
    [before(120), before(60)],
  ]) {
    for (const is_live of [true, false]) {
      const turn = {
        ...{ broadcaster: { user_id }, is_live, title, started_at },
        ended_at: is_live ? null : ended_at,
      };
      const { status, text } = await vendors.kick('livestream.status.updated', Buffer.from(JSON.stringify(turn)));
      if (status !== 200) throw new Error(`kick: ${status} ${text}`);
    }
  }
  return eventually(async () => {
    const { body } = await owner.get('/v1/history');
    const ended = (body.data as { status: string; id: string }[]).filter(({ status }) => status === 'finalized');
    return ended.length === 2 ? [ended[0]!.id, ended[1]!.id] : undefined;
  }, 'the finished streams');
}
