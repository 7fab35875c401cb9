import { performance } from 'node:perf_hooks';
import { createPostgresShares } from '../../engines/leases/shares';
import type { Campaign, Shares } from '../../engines/leases/port';
import { migrate } from '../../engines/postgres/migrate';
import { PostgresDatabase } from '../../engines/postgres/pool';
import type { Queryable } from '../../engines/postgres/port';
import { ProcessSession } from '../../engines/postgres/process-session';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { pause } from '../../lib/async/signal';
import { median, quiet, rounded, type TrackOptions } from '../harness';
import { type BenchPostgres, onPostgres } from '../postgres';
import { check, report } from '../report';
import { database } from '../system';

const MEMBERS = 4;
const HEARTBEAT_MS = 200;
const QUIET_MS = 2_000;

interface Round {
  ms: number;
  bytes: number;
}

/** Counts started pieces, over all members, and the statements of their rounds. */
class Tally {
  readonly doing = new Map<string, Member>();
  begun = 0;
  rounds: Round[] = [];

  measured(db: Queryable): Queryable {
    return {
      query: async (text: string, values?: unknown[], name?: string) => {
        const started = performance.now();
        const rows = await db.query(text, values, name);
        const bytes = JSON.stringify(values).length + JSON.stringify(rows).length;
        this.rounds.push({ ms: performance.now() - started, bytes });
        return rows;
      },
    } as Queryable;
  }
}

interface Member {
  shares: Shares;
  offer(name: string): Campaign;
  close(): Promise<void>;
}

/**
 * Work of one kind divided among processes: the cost of a round without changes, and the number of pieces that move
 * when a name or a member is added or removed.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const crowd = await measureCrowd(postgres);
  const count = options.smoke ? 400 : 30_000;
  const url = await database(postgres, 'shares');
  await migrate(url);
  const db = new PostgresDatabase({ url, name: 'shares', size: 8 });
  const tally = new Tally();
  const wakeups = createLocalWakeups();
  const names = Array.from({ length: count }, (_, n) => `twitch:${n}`);
  const join = async (): Promise<Member> => {
    const session = new ProcessSession({ connectionString: url }, quiet);
    await session.ready();
    const parts = { db: tally.measured(db), session, wakeups, log: quiet, heartbeat_ms: HEARTBEAT_MS };
    const shares = createPostgresShares(parts);
    const member: Member = {
      shares,
      offer: (name) =>
        shares.offer(name, async (signal) => {
          tally.begun += 1;
          tally.doing.set(name, member);
          await pause(2 ** 30, signal);
          tally.doing.delete(name);
        }),
      close: async () => {
        await shares.close();
        await session.close();
      },
    };
    for (const name of names) member.offer(name);
    return member;
  };
  const load = (member: Member) => [...tally.doing.values()].filter((one) => one === member).length;
  const begunBy = async (step: () => unknown, total = count) => {
    const before = tally.begun;
    await step();
    await settled(tally, total);
    return tally.begun - before;
  };

  const members: Member[] = [];
  try {
    while (members.length < MEMBERS) members.push(await join());
    await settled(tally, count);
    tally.rounds = [];
    await pause(QUIET_MS);
    const rounds = tally.rounds;
    const ms = median(rounds.map((round) => round.ms));
    const bytes = median(rounds.map((round) => round.bytes));
    let added: Campaign[] = [];
    const by_name = await begunBy(() => (added = members.map((member) => member.offer('twitch:new'))), count + 1);
    const without_name = await begunBy(() => Promise.all(added.map((campaign) => campaign.stop())));
    const by_member = await begunBy(async () => members.push(await join()));
    const last = members.pop()!;
    const share = load(last);
    const without_member = await begunBy(() => last.close());
    const figures = { names: count, members: MEMBERS, by_name, without_name, by_member, without_member, share };
    console.log('\nshares: a quiet round of one member', { ms: rounded(ms), bytes }, figures);
    const checks = [
      check('pieces begun for a name that comes', by_name, 1),
      check('pieces begun for a name that goes', without_name, 0),
      check('pieces begun for a member that joins', by_member, Math.ceil(count / (MEMBERS + 1))),
      check('pieces begun for a member that goes, above its own', without_member - share, 0),
      check('pieces not held', count - tally.doing.size, 0),
      check('bytes of a quiet round', bytes, 4_096),
      check('ms of one of 20 members in a quiet round, 100,000 names', crowd.quiet.ms, CROWD.most_ms),
      check('ms of the same when a name has changed', crowd.changed.ms, CROWD.most_ms),
      check('bytes of the same', Math.max(crowd.quiet.bytes, crowd.changed.bytes), CROWD.most_bytes),
    ];
    return report('shares', [], { ...figures, quiet_round: { ms: rounded(ms), bytes }, crowd, checks }, options);
  } finally {
    for (const member of members) await member.close();
    await db.close();
  }
}

/** Bounds for each round of a member. */
const CROWD = { members: 20, names: 100_000, rounds: 20, most_ms: 20, most_bytes: 100_000 };

/**
 * Measures a member among others that exist as rows alone: CPU of its rounds in this process, and bytes from the
 * database.
 */
async function measureCrowd(postgres: BenchPostgres): Promise<Record<'quiet' | 'changed', Round>> {
  const url = await database(postgres, 'shares_crowd');
  await migrate(url);
  const db = new PostgresDatabase({ url, name: 'crowd', size: 4 });
  const [others, own] = [0, 1].map(() => new ProcessSession({ connectionString: url }, quiet)) as [
    ProcessSession,
    ProcessSession,
  ];
  await Promise.all([others.ready(), own.ready()]);
  await db.query(
    `insert into work_members (member, session_lock, names, renewed_at, kinds)
     select gen_random_uuid(), $1, '{}', 'infinity', '{twitch}' from generate_series(2, $2)`,
    [others.lock, CROWD.members],
  );
  await db.query(
    `with others as (select array_agg(member) as all from work_members)
     insert into work_holds (name, member)
     select 'twitch:' || n, o.all[1 + n % $1] from others o, generate_series(0, $2 - 1) n where n % $1 < $1 - 1`,
    [CROWD.members, CROWD.names],
  );
  const tally = new Tally();
  const wakeups = createLocalWakeups();
  const parts = { db: tally.measured(db), session: own, wakeups, log: quiet, heartbeat_ms: HEARTBEAT_MS };
  const shares = createPostgresShares(parts);
  let held = 0;
  for (let n = 0; n < CROWD.names; n += 1)
    shares.offer(`twitch:${n}`, async (signal) => {
      held += 1;
      await pause(2 ** 30, signal);
    });
  try {
    while (held < CROWD.names / CROWD.members) await pause(HEARTBEAT_MS);
    const rounds = async (before: () => Promise<unknown>): Promise<Round> => {
      await pause(5 * HEARTBEAT_MS);
      const each: Round[] = [];
      while (each.length < CROWD.rounds) {
        await before();
        tally.rounds = [];
        const from = performance.eventLoopUtilization();
        while (tally.rounds.length === 0) await pause(HEARTBEAT_MS / 10);
        await pause(HEARTBEAT_MS / 4);
        const { active } = performance.eventLoopUtilization(from);
        each.push({ ms: active, bytes: tally.rounds.reduce((sum, { bytes }) => sum + bytes, 0) });
      }
      return { ms: rounded(median(each.map(({ ms }) => ms))), bytes: median(each.map(({ bytes }) => bytes)) };
    };
    const change = "update work_holds set change = nextval('work_changes') where name = 'twitch:0'";
    const crowd = { quiet: await rounds(async () => undefined), changed: await rounds(() => db.query(change)) };
    console.log(`\nshares: a round of one of ${CROWD.members} members, ${CROWD.names} names`, crowd);
    return crowd;
  } finally {
    await shares.close();
    await Promise.all([others.close(), own.close()]);
    await db.close();
  }
}

/** Waits until all pieces are held and none was started for some rounds. */
async function settled(tally: Tally, total: number): Promise<void> {
  for (let still = 0, last = -1; still < 8;) {
    await pause(HEARTBEAT_MS);
    still = tally.begun === last && tally.doing.size === total ? still + 1 : 0;
    last = tally.begun;
  }
}
