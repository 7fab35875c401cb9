import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { type Topic, TOPICS } from '../../domain/common/records';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import type { Broker } from '../../engines/broker/port';
import { createRecordLog } from '../../engines/records/log';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { pause } from '../../lib/async/signal';
import { TEST_KEYS } from './parked';
import { until } from './projections';
import { TestConnections } from './twitch';
import type { VendorChildGiven } from './vendor-child';
import { FakeDiscord } from '../vendors/discord-cloud';
import { FakeKick } from '../vendors/kick-cloud';
import { FakeSpotify } from '../vendors/spotify-cloud';
import { FakeStreamElements } from '../vendors/streamelements-cloud';
import { FakeTrovo } from '../vendors/trovo-cloud';
import { FakeTwitch } from '../vendors/twitch-cloud';
import { FakeYoutube } from '../vendors/youtube-cloud';

const CHILD = join(__dirname, '../../dist/test/support/vendor-child.js');
const TWITCH_CHANNELS = ['1', '2', '3', '4'];
const EVERY_MS = 50;
/** Difference of the two times that Twitch gives to one event for two sessions. */
const APART_MS = 400;
/** Cheers of each channel that show an overlap of two sessions. */
const ENOUGH = 5;
const READ_EVERY_MS = 400;
/** What a worker received within such a time of its kill may be lost with it, on a busy machine. */
const IN_HAND_MS = 2_000;
/** A vendor's words carry a number of nine digits that begins so, by which they are known in what is stored. */
const FIRST_WORD = 900_000_000;
const WORD = /"(9\d{8})"/;
const ROOM = '5ad23dcc18fff500d78c5348';
const GUILD = '1132079436691415100';
const KICK_CHANNEL = '7';
const RECORDED: readonly Topic[] = [TOPICS.platform_events, TOPICS.chat_events];

/** How one vendor speaks. */
interface Speaker {
  name: string;
  /** Whether it repeats to a successor whatever was missed: then every word arrives, whoever was killed. */
  repeats: boolean;
  /** True when somebody can receive it: a socket is open, or it will be repeated. */
  say(word: string): boolean;
}

interface Word {
  speaker: Speaker;
  /** Unix milliseconds. */
  at: number;
}

/**
 * Fakes of all vendors that speak without a pause, processes that hold connections to them over one database, and the
 * judge of what is stored: every word that could be received, once.
 */
export class VendorWorkers {
  readonly twitch = new FakeTwitch();
  private readonly youtube = new FakeYoutube();
  private readonly trovo = new FakeTrovo();
  private readonly streamelements = new FakeStreamElements();
  readonly discord = new FakeDiscord();
  private readonly spotify = new FakeSpotify();
  private readonly kick = new FakeKick();
  private readonly clouds = [
    this.twitch,
    this.youtube,
    this.trovo,
    this.streamelements,
    this.discord,
    this.spotify,
    this.kick,
  ];
  private readonly connections = new TestConnections(this.twitch);
  private readonly account_id = uuid();
  private readonly db: PostgresDatabase;
  private readonly broker: Broker;
  private given!: Omit<VendorChildGiven, 'url'>;
  private speakers: readonly Speaker[] = [];
  private talking: NodeJS.Timeout | undefined;
  private following: Promise<void> | undefined;
  private readonly closing = new AbortController();
  private readonly workers: ChildProcess[] = [];
  /** What could be received, by its number. */
  private readonly told = new Map<string, Word>();
  /** What counts of it, by its number: what the ledger takes for one event has one id. */
  private readonly stored = new Map<string, Set<string>>();
  private readonly read_to = new Map<string, number>();
  /** Number of cheers that two sessions of a channel received. */
  private readonly doubled = new Map<string, number>();
  private readonly lost: [from: number, to: number][] = [];
  private words = FIRST_WORD;

  private constructor(private readonly url: string) {
    this.db = new PostgresDatabase({ url, name: 'judge', size: 4 });
    this.broker = createPostgresBroker({ pool: this.db.pool, wakeups: createLocalWakeups() });
  }

  /** On a migrated database. */
  static async start(url: string): Promise<VendorWorkers> {
    const made = new VendorWorkers(url);
    await made.broker.ensureTopics([...RECORDED, TOPICS.stream_samples], 2);
    for (const cloud of made.clouds) await cloud.start();
    made.speakers = await made.vendors();
    made.talking = setInterval(() => made.speakers.forEach((speaker) => made.speak(speaker)), EVERY_MS);
    made.following = made.follow();
    return made;
  }

  async close(): Promise<void> {
    this.silence();
    this.closing.abort();
    await this.following;
    for (const worker of this.workers) worker.kill('SIGKILL');
    for (const cloud of this.clouds) await cloud.close();
    await this.broker.close();
    await this.db.close();
  }

  /** The vendors say no more. */
  silence(): void {
    clearInterval(this.talking);
  }

  /** What a killed worker has in hand at this moment is lost with it, where the vendor sends nothing again. */
  kill(worker: ChildProcess): void {
    this.lost.push([Date.now() - IN_HAND_MS, Date.now() + IN_HAND_MS]);
    worker.kill('SIGKILL');
  }

  /** Connects an account to every vendor; answers with how each of them speaks. */
  private async vendors(): Promise<Speaker[]> {
    const { twitch, youtube, trovo, streamelements, discord, spotify, kick, connections, account_id } = this;
    for (const id of TWITCH_CHANNELS) connections.connect(id);
    const connection = (channel_id: string) => ({ connection_id: uuid(), account_id, channel_id, client_id: 'app' });
    const of = { youtube: connection('UCa'), trovo: connection('100'), streamelements: connection('twitch') };
    const bot = { connection_id: 'discord-bot', account_id: null, channel_id: 'bot' };
    youtube.quota = 1_000_000;
    const broadcast = youtube.goLive('UCa');
    await this.db.query(
      `insert into channel_status
         (account_id, platform, broadcast_id, channel_id, is_online, live_chat_id, updated_at)
       values ($1, 'youtube', $2, 'UCa', true, $3, clock_timestamp())`,
      [account_id, broadcast.video_id, broadcast.live_chat_id],
    );
    trovo.channel('100');
    streamelements.channels.set('tips-token', ROOM);
    discord.bot_tokens.add('bot-token');
    const music = connection('listener');
    const watched = { ...connection(KICK_CHANNEL), platform: 'kick', kind: 'channel' } as const;
    const { base_url, eventsub_url } = twitch;
    this.given = {
      twitch: { base_url, eventsub_url },
      youtube: { base_url: youtube.base_url },
      trovo: { base_url: trovo.base_url, chat_url: trovo.chat_url },
      streamelements: { base_url: streamelements.base_url, astro_url: streamelements.astro_url },
      discord: { base_url: discord.base_url, account_id },
      spotify: { base_url: spotify.base_url },
      kick: {
        base_url: kick.base_url,
        watched: [
          { ...watched, platform_channel_id: KICK_CHANNEL, bot_enabled: true, since: new Date().toISOString() },
        ],
      },
      connections: {
        twitch: connections.all,
        youtube: [of.youtube],
        trovo: [of.trovo],
        streamelements: [of.streamelements],
        discord: [bot],
        spotify: [music],
      },
      tokens: {
        ...Object.fromEntries(connections.tokens),
        [of.youtube.connection_id]: youtube.tokens.give('UCa').access_token,
        [of.trovo.connection_id]: trovo.tokens.give('100').access_token,
        [of.streamelements.connection_id]: 'tips-token',
        [bot.connection_id]: 'bot-token',
        [music.connection_id]: spotify.tokens.give('listener').access_token,
        [watched.connection_id]: kick.tokens.give(KICK_CHANNEL).access_token,
      },
    };
    let tipped = false;
    // A cheer has another id and time in each session, so that one which two workers store counts twice.
    const cheered = (broadcaster_user_id: string): Speaker => ({
      name: `twitch ${broadcaster_user_id}`,
      repeats: false,
      say: (user_id) => {
        const first = Number(user_id) % 2;
        let sessions = 0;
        const times = () => {
          const late_ms = (first + sessions) % 2 === 0 ? 0 : APART_MS;
          sessions += 1;
          return { message_timestamp: new Date(Date.now() - late_ms).toISOString() };
        };
        const sent = twitch.notify(broadcaster_user_id, 'channel.cheer', { user_id, broadcaster_user_id }, times);
        if (sent > 1) this.doubled.set(broadcaster_user_id, (this.doubled.get(broadcaster_user_id) ?? 0) + 1);
        return sent > 0;
      },
    });
    return [
      ...TWITCH_CHANNELS.map(cheered),
      { name: 'youtube', repeats: true, say: (word) => Boolean(youtube.text(broadcast, 'UCviewer', word)) },
      {
        name: 'trovo',
        repeats: false,
        say(content) {
          trovo.say('100', { content, sender_id: 'v', user_name: 'viewer' });
          return trovo.listening('100').size > 0;
        },
      },
      {
        name: 'streamelements',
        repeats: true,
        say(username) {
          // What was paid before anybody has listened is asked for by nobody.
          tipped ||= streamelements.listening(ROOM).length > 0;
          streamelements.tip(ROOM, { donation: { user: { username }, amount: 4.2, currency: 'USD' } });
          return tipped;
        },
      },
      {
        name: 'discord',
        repeats: true,
        say(id) {
          const joined_at = new Date().toISOString();
          discord.say('GUILD_MEMBER_ADD', { guild_id: GUILD, user: { id, username: `user-${id}` }, joined_at });
          return discord.identified > 0;
        },
      },
      this.playing(spotify),
      this.onAir(kick),
    ];
  }

  /**
   * What is looked at shows its last state alone: another track is played when the one before is known. Of the first
   * look nothing is known to have changed.
   */
  private playing(spotify: FakeSpotify): Speaker {
    const play = (word: string) => spotify.players.set('listener', playerWith(word));
    play(String(FIRST_WORD));
    let last: string | undefined;
    const say = (word: string): boolean => {
      const looked = last === undefined ? spotify.asked('/v1/me/player') > 0 : this.stored.has(last);
      if (looked) play((last = word));
      return looked;
    };
    return { name: 'spotify', repeats: true, say };
  }

  /** Another broadcast, in the same way; one is known from another by the second in which it began. */
  private onAir(kick: FakeKick): Speaker {
    const channel = kick.channel(Number(KICK_CHANNEL));
    let last: string | undefined;
    const say = (title: string): boolean => {
      const another = Date.parse(channel.started_at) + 1_000 <= Date.now();
      const looked = another && (last === undefined || this.stored.has(last));
      if (looked) kick.goLive(Object.assign(channel, { title: (last = title) }));
      return looked;
    };
    return { name: 'kick', repeats: true, say };
  }

  private speak(speaker: Speaker): void {
    const word = String((this.words += 1));
    const at = Date.now();
    if (speaker.say(word)) this.told.set(word, { speaker, at });
  }

  /** Every answer of a vendor takes this time. */
  slow(ms: number): void {
    for (const cloud of this.clouds) cloud.slow_ms = ms;
  }

  /** One more process. */
  begin(options: Partial<Pick<VendorChildGiven, 'url' | 'timings' | 'stop_within_ms'>> = {}): ChildProcess {
    const text = JSON.stringify({ url: this.url, ...this.given, ...options });
    const worker = spawn(process.execPath, [CHILD, text], { stdio: ['ignore', 'ignore', 'inherit'] });
    this.workers.push(worker);
    return worker;
  }

  /** How many connections there are: Kick is looked at, and holds none. */
  private get held(): number {
    return this.speakers.filter(({ name }) => name !== 'kick').length;
  }

  /** Holders of the connections that are open and whose state is kept. */
  private async holders(): Promise<string[]> {
    const rows = await this.db.query<{ holder: string }>(
      `select holder from adapter_links where status = 'connected' and state_token = token`,
    );
    return rows.map(({ holder }) => holder);
  }

  /** Waits until everything is held by others than those; answers with who they are. */
  async allHeld(before: readonly string[] = []): Promise<string[]> {
    return until(async () => {
      const now = await this.holders();
      return now.length === this.held && now.every((one) => !before.includes(one)) && [...new Set(now)];
    });
  }

  /** Waits until something that each vendor sends from now on is stored. */
  async eachStored(): Promise<void> {
    const from = this.words;
    const names = () =>
      new Set([...this.told].filter(([word]) => Number(word) > from && this.stored.has(word)).map(nameOf));
    await until(() => names().size === this.speakers.length);
  }

  /** Waits until two sessions of each channel at Twitch have received some cheers from now on. */
  async twoReaders(): Promise<void> {
    const before = new Map(this.doubled);
    await until(() => TWITCH_CHANNELS.every((id) => (this.doubled.get(id) ?? 0) >= (before.get(id) ?? 0) + ENOUGH));
  }

  /** Ids of the sessions at Twitch that receive channels. */
  sessionsAtTwitch(): string[] {
    return TWITCH_CHANNELS.flatMap((channel_id) => this.twitch.of(channel_id).map(({ id }) => id));
  }

  /** Waits until so many processes hold open connections. */
  async divided(processes: number): Promise<void> {
    await until(async () => {
      const now = await this.holders();
      return now.length === this.held && new Set(now).size === processes;
    });
  }

  /** Knows what is stored, as it comes. */
  private async follow(): Promise<void> {
    const { signal } = this.closing;
    while (!signal.aborted) {
      await this.readStored();
      await pause(READ_EVERY_MS, signal);
    }
  }

  /** Reads on in the log. */
  private async readStored(): Promise<void> {
    const log = createRecordLog({
      broker: this.broker,
      subject_keys: createSubjectKeys({ db: this.db, master_keys: TEST_KEYS }),
    });
    for (const topic of RECORDED) {
      for (const partition of (await this.broker.bounds(topic)).keys()) {
        const place = `${topic} ${partition}`;
        for await (const page of this.broker.read(topic, partition, this.read_to.get(place) ?? 0)) {
          for (const { id, external_id, raw, offset } of (await log.decode(page)).records) {
            this.read_to.set(place, offset + 1);
            const word = WORD.exec(raw)?.[1] ?? raw;
            this.stored.set(word, (this.stored.get(word) ?? new Set()).add(external_id ?? id));
          }
        }
      }
    }
  }

  /** Everything that could be received until now is stored, and counts once. */
  async nothingMissingOrTwice(): Promise<void> {
    const now = Date.now();
    const missing = () => {
      const at = new Map<string, number[]>();
      for (const [word, one] of this.told) {
        if (one.at >= now || !this.certain(one) || this.stored.has(word)) continue;
        at.set(one.speaker.name, [...(at.get(one.speaker.name) ?? []), now - one.at]);
      }
      return [...at].map(([name, ms]) => `${name}: ${ms.length}, ${ms[0]} to ${ms.at(-1)} ms ago`);
    };
    await until(() => missing().length === 0).catch(() => undefined);
    expect(missing()).toEqual([]);
    expect(this.stored.size).toBeGreaterThan(50);
    expect(new Set([...this.told.values()].map(({ speaker }) => speaker)).size).toBe(this.speakers.length);
    expect([...this.stored].filter(([, ids]) => ids.size > 1)).toEqual([]);
  }

  /** A worker that stops hands everything over. */
  async stop(worker: ChildProcess): Promise<void> {
    const ended = once(worker, 'exit');
    worker.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  }

  /** Waits until nobody holds a channel beside its new holder. */
  oneReader(): Promise<boolean> {
    return until(() => TWITCH_CHANNELS.every((id) => this.twitch.of(id).length === 1));
  }

  private certain({ speaker, at }: Word): boolean {
    return speaker.repeats || !this.lost.some(([from, to]) => at > from && at < to);
  }
}

const nameOf = ([, { speaker }]: [string, Word]): string => speaker.name;

/** So short that the next one is no skip. */
const TRACK_MS = 1_000;

function playerWith(word: string) {
  const item = { type: 'track', id: word, uri: `spotify:track:${word}`, name: 'A track', duration_ms: TRACK_MS };
  const device = { id: 'd', name: 'A speaker', type: 'speaker', volume_percent: 50 };
  return { item, is_playing: true, progress_ms: 1, currently_playing_type: 'track', device };
}
