import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { TOPICS } from '../../domain/common/records';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import type { Broker } from '../../engines/broker/port';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createRecordLog } from '../../engines/records/log';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { createLocalWakeups } from '../../engines/wakeups/local';
import type { LinkedConnection } from '../../ingest/runtime/connection/adapter';
import { FakeSpotify } from '../vendors/spotify-cloud';
import { FakeTwitch, TWITCH_CLIENT } from '../vendors/twitch-cloud';
import { TEST_KEYS } from './parked';
import { until } from './projections';
import type { VendorChildGiven, VendorChildMessage } from './vendor-child';

const CHILD = join(__dirname, '../../dist/test/support/vendor-child.js');
const MESSAGE = /:message-(\d+)$/;

export interface FleetLink {
  link: string;
  vendor: string;
  token: number;
  holder: string;
  status: string;
  missed_detail: string | null;
}

/** Worker processes that hold many Twitch channels and now and then a Spotify player, and the chat of the channels. */
export class LinkFleet {
  readonly workers: ChildProcess[] = [];
  private readonly twitch = new FakeTwitch();
  private readonly spotify = new FakeSpotify();
  private readonly channels: LinkedConnection[] = [];
  private readonly tokens: Record<string, string> = {};
  private readonly db: PostgresDatabase;
  private readonly broker: Broker;
  private players: LinkedConnection[] = [];
  private talking: NodeJS.Timeout | undefined;
  /** By number of the message: when it was sent, Unix milliseconds. */
  private readonly sent = new Map<number, number>();
  /** The same when it was stored first. */
  private readonly stored = new Map<number, number>();
  private readonly read_to = new Map<number, number>();
  /** Messages that no open subscription received. */
  unheard = 0;

  private constructor(
    private readonly url: string,
    private readonly stop_within_ms?: number,
  ) {
    this.db = new PostgresDatabase({ url, name: 'fleet', size: 4 });
    this.broker = createPostgresBroker({ pool: this.db.pool, wakeups: createLocalWakeups() });
  }

  /** On a migrated database. */
  static async start(
    url: string,
    { workers, channels, stop_within_ms }: { workers: number; channels: number; stop_within_ms?: number },
  ): Promise<LinkFleet> {
    const fleet = new LinkFleet(url, stop_within_ms);
    await fleet.broker.ensureTopics([TOPICS.platform_events, TOPICS.chat_events, TOPICS.stream_samples], 2);
    await Promise.all([fleet.twitch.start(), fleet.spotify.start()]);
    while (fleet.workers.length < workers) fleet.workers.push(await fleet.begin());
    for (let n = 0; n < channels; n += 1) {
      const connection = { ...fleet.connection(String(1_000_000 + n)), client_id: TWITCH_CLIENT };
      fleet.tokens[connection.connection_id] = fleet.twitch.tokens.give(connection.channel_id).access_token;
      fleet.twitch.channel(connection.channel_id);
      fleet.channels.push(connection);
    }
    fleet.tell();
    return fleet;
  }

  async close(): Promise<void> {
    clearInterval(this.talking);
    for (const worker of this.workers) worker.kill('SIGKILL');
    await Promise.all([this.twitch.close(), this.spotify.close()]);
    await this.broker.close();
    await this.db.close();
  }

  links(): Promise<FleetLink[]> {
    return this.db.query<FleetLink & Record<string, unknown>>(
      'select link, vendor, token, holder, status, missed_detail from adapter_links order by link',
    );
  }

  /** Connects one more player. */
  connectPlayer(): void {
    const connection = this.connection('listener');
    this.tokens[connection.connection_id] = this.spotify.tokens.give('listener').access_token;
    this.players = [connection];
    this.tell();
  }

  disconnectPlayer(): void {
    this.players = [];
    this.tell();
  }

  /** Sends chat messages over all channels in turn. */
  talk(per_second: number): void {
    const every_ms = 20;
    let next = 0;
    this.talking = setInterval(() => {
      for (let n = 0; n < (per_second * every_ms) / 1000; n += 1, next += 1) {
        const { channel_id } = this.channels[next % this.channels.length]!;
        const event = { message_id: `message-${next}`, broadcaster_user_id: channel_id, chatter_user_id: '5' };
        const message = { text: 'hello', fragments: [{ type: 'text', text: 'hello' }] };
        const chat = { ...event, chatter_user_login: 'viewer', chatter_user_name: 'Viewer', message };
        if (this.twitch.notify(channel_id, 'channel.chat.message', chat) > 0) this.sent.set(next, Date.now());
        else this.unheard += 1;
      }
    }, every_ms);
  }

  silence(): void {
    clearInterval(this.talking);
  }

  /** Every answer of Twitch takes this time. */
  slow(ms: number): void {
    this.twitch.slow_ms = ms;
  }

  /** Starts one more worker; resolves when it has a part in the division of the channels. */
  async join(): Promise<void> {
    const worker = await this.begin();
    this.workers.push(worker);
    this.tell();
    const members = () =>
      this.db.query("select 1 as one from work_members where 'twitch' = any (kinds) limit $1", [this.workers.length]);
    await until(async () => (await members()).length === this.workers.length);
  }

  /** Open Twitch links, and the processes that hold them. */
  async open(): Promise<{ links: number; holders: number }> {
    const [row] = await this.db.query<{ links: number; holders: number }>(
      `select count(*)::int as links, count(distinct holder)::int as holders from adapter_links
       where vendor = 'twitch' and status = 'connected'`,
    );
    return row!;
  }

  /** Number of Twitch links that are open in another process than the former holder. */
  async moved(former: string): Promise<number> {
    const [row] = await this.db.query<{ links: number }>(
      `select count(*)::int as links from adapter_links
       where vendor = 'twitch' and status = 'connected' and holder <> $1`,
      [former],
    );
    return row!.links;
  }

  /** Whether a player is held. */
  async playing(): Promise<boolean> {
    const rows = await this.db.query("select 1 as one from adapter_links where vendor = 'spotify'");
    return rows.length > 0;
  }

  /** Messages that could be received so far, those not yet stored, and the longest time from sending to storing. */
  async judge(): Promise<{ sent: number; missing: number; latest_ms: number }> {
    await this.readStored();
    let [missing, latest_ms] = [0, 0];
    for (const [n, at] of this.sent) {
      const stored = this.stored.get(n);
      if (stored === undefined) missing += 1;
      else latest_ms = Math.max(latest_ms, stored - at);
    }
    return { sent: this.sent.size, missing, latest_ms };
  }

  /** Messages so far count no more. */
  forget(): void {
    this.sent.clear();
  }

  /** Reads on in the log. */
  private async readStored(): Promise<void> {
    const { broker, db } = this;
    const log = createRecordLog({ broker, subject_keys: createSubjectKeys({ db, master_keys: TEST_KEYS }) });
    for (const partition of (await broker.bounds(TOPICS.chat_events)).keys()) {
      for await (const page of broker.read(TOPICS.chat_events, partition, this.read_to.get(partition) ?? 0)) {
        const appended = new Map(page.map(({ offset, appended_at }) => [offset, Date.parse(appended_at)]));
        for (const { external_id, offset } of (await log.decode(page)).records) {
          const n = Number(MESSAGE.exec(external_id ?? '')?.[1]);
          if (!this.stored.has(n)) this.stored.set(n, appended.get(offset)!);
          this.read_to.set(partition, offset + 1);
        }
      }
    }
  }

  private connection(channel_id: string): LinkedConnection {
    return { connection_id: uuid(), account_id: uuid(), channel_id };
  }

  /** Resolves when the process runs. */
  private async begin(): Promise<ChildProcess> {
    const { base_url, eventsub_url } = this.twitch;
    const unused = { base_url };
    const given: VendorChildGiven = {
      url: this.url,
      twitch: { base_url, eventsub_url },
      spotify: { base_url: this.spotify.base_url },
      ...{ youtube: unused, trovo: { ...unused, chat_url: eventsub_url } },
      ...{ streamelements: { ...unused, astro_url: eventsub_url }, discord: { ...unused, account_id: uuid() } },
      kick: { ...unused, watched: [] },
      connections: {},
      tokens: {},
      stop_within_ms: this.stop_within_ms,
    };
    const worker = spawn(process.execPath, [CHILD, JSON.stringify(given)], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    await once(worker.stdout!, 'data');
    return worker;
  }

  private tell(): void {
    const connections = { twitch: this.channels, spotify: this.players };
    const message: VendorChildMessage = { connections, tokens: this.tokens };
    for (const worker of this.workers) if (worker.connected) worker.send(message);
  }
}
