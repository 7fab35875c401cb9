import { createPostgresShares } from '../../engines/leases/shares';
import type { Campaign, Shares } from '../../engines/leases/port';
import { migrate } from '../../engines/postgres/migrate';
import { PostgresDatabase } from '../../engines/postgres/pool';
import type { Queryable } from '../../engines/postgres/port';
import { ProcessSession } from '../../engines/postgres/process-session';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { pause } from '../../kernel/signal';
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

/** Pieces that are begun, over all members, and the statements of their rounds. */
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
 * Work of one kind divided among processes: what a round costs while nothing changes, and how many pieces a name or a
 * member moves that comes or goes.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
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
    ];
    return report('shares', [], { ...figures, quiet_round: { ms: rounded(ms), bytes }, checks }, options);
  } finally {
    for (const member of members) await member.close();
    await db.close();
  }
}

/** Waits until all pieces are held and none has been begun for some rounds. */
async function settled(tally: Tally, total: number): Promise<void> {
  for (let still = 0, last = -1; still < 8;) {
    await pause(HEARTBEAT_MS);
    still = tally.begun === last && tally.doing.size === total ? still + 1 : 0;
    last = tally.begun;
  }
}
