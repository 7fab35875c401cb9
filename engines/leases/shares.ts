import { randomUUID } from 'node:crypto';
import { pause } from '../../lib/async/signal';
import type { Logger } from '../log/port';
import type { Queryable } from '../postgres/port';
import type { ProcessSession } from '../postgres/process-session';
import type { Wakeups } from '../wakeups/port';
import type { Division } from './division';
import { type ChangedHold, KindView, kindOf, type LiveMembers } from './kind-view';
import { type Campaign, type Shares, WORK_CHANGED } from './port';

export interface SharesOptions {
  db: Queryable;
  /** Shows the other processes that this one is alive. */
  session: Pick<ProcessSession, 'lock' | 'ready'>;
  wakeups: Wakeups;
  log: Logger;
  /** Interval of the rounds without a wake-up. Default 3 s. */
  heartbeat_ms?: number;
}

/** Age of a view after which all holds are read again; ended holds stay readable for two minutes. */
const REMEMBERED_MS = 30_000;
const LOOK = 'select work_look($1, $2, $3, $4, $5) as seen';
const CHANGE = 'select name from work_change($1, $2, $3, $4, $5, $6)';
const BEGIN_AGAIN_MS = 1000;
const LEAVE_WITHIN_MS = 2000;
/** Names in a line of the log; the others are counted. */
const NAMED = 5;

interface OfferedLease {
  work: (signal: AbortSignal) => Promise<void>;
  /** Present while the piece is held: `end` ends the work, `ended` resolves when it has ended. */
  held?: { ending: AbortController; ended: Promise<void> };
  /** The offer is withdrawn; the piece is given back when the work in hand has ended. */
  stopping?: boolean;
}

interface Seen {
  /** This process was not a member before. */
  joined: boolean;
  /** A process of the previous release is a member; it divides by the names that all rows list. */
  older: boolean;
  members: [member: string, kinds: string[]][];
  holds: ChangedHold[];
}

/**
 * Divides work over the tables `work_members` and `work_holds`: one statement per process every few seconds, which
 * reads the changes, and one for each kind of work in which this process takes or gives back. {@link KindView} chooses
 * in the process. The pieces of a killed process are free as soon as its session has ended.
 */
export function createPostgresShares(options: SharesOptions): Shares {
  const { db, session, wakeups, log, heartbeat_ms = 3000 } = options;
  const member = randomUUID();
  const offers = new Map<string, OfferedLease>();
  const kinds = new Map<string, KindView>();
  let balancing: Promise<void> = Promise.resolve();
  /** A round waits already; further calls share it. */
  let waits = false;
  /** A heartbeat has passed since the last round. */
  let regular = false;
  let looked_at = -Infinity;
  let older = false;
  /** The active members of the last look, as text. */
  let known_members = '';
  /** Names in the row of this process for members of the previous release. */
  let listed = '';
  /** Kinds in the row of this process. */
  let announced: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let off: (() => void) | undefined;
  let closed = false;

  function balance(): Promise<void> {
    if (waits) return balancing;
    waits = true;
    balancing = balancing.then(async () => {
      waits = false;
      if (closed) return;
      try {
        await session.ready();
        if (!closed) await round();
      } catch (error) {
        log.warn({ err: error }, 'work could not be divided among the processes; it is tried again');
      }
    });
    return balancing;
  }

  function viewOf(name: string): KindView {
    const kind = kindOf(name);
    const view = kinds.get(kind) ?? new KindView(kind, member);
    kinds.set(kind, view);
    return view;
  }

  async function round(): Promise<void> {
    const [views, whole] = [[...kinds.values()], regular];
    regular = false;
    const before = announced;
    const { joined, living } = await look(views.filter(({ active }) => active));
    // The others leave free names of a kind to each member whose row lists the kind.
    const left = before.some((kind) => !announced.includes(kind));
    let gave = false;
    for (const view of views) {
      for (const name of view.lost(living)) giveUp(name, offers.get(name));
      const plan = view.plan(living, whole && !older);
      if (await change(view, plan)) gave = true;
      for (const name of view.mine) if (!view.working.has(name)) take(view, name);
      report(view);
    }
    if (joined || left || gave) wakeups.notify(WORK_CHANGED);
  }

  /** Brings the views up to date. */
  async function look(views: readonly KindView[]): Promise<{ joined: boolean; living: LiveMembers }> {
    // A member of the previous release changes holds without a number.
    if (older || performance.now() - looked_at > REMEMBERED_MS) for (const view of views) view.reset();
    const asked_at = performance.now();
    const names = older ? views.flatMap(({ offered }) => [...offered]).sort() : [];
    const text = names.join('\n');
    const listed_kinds = views.map(({ kind }) => kind);
    const values = [
      member,
      session.lock,
      listed_kinds,
      views.map(({ since }) => since),
      text === listed ? null : names,
    ];
    const [row] = await db.query<{ seen: Seen }>(LOOK, values, 'work-look');
    const { seen } = row!;
    announced = listed_kinds;
    if (seen.joined && views.some(({ since }) => since > 0)) {
      // The others had removed this process meanwhile: its view may be outdated.
      looked_at = -Infinity;
      return { ...(await look(views)), joined: true };
    }
    [older, listed, looked_at] = [seen.older, text, asked_at];
    for (const hold of seen.holds) kinds.get(hold[0])!.apply(hold);
    const members = JSON.stringify(seen.members.sort(([one], [other]) => (one < other ? -1 : 1)));
    if (members !== known_members) for (const view of views) view.membersChanged();
    known_members = members;
    return { joined: seen.joined, living: liveMembersOf(seen.members) };
  }

  /** Whether something was given back, or is wanted from another member. */
  async function change(view: KindView, { take: free, want }: Pick<Division, 'take' | 'want'>): Promise<boolean> {
    const give = [...view.release];
    if (give.length + free.length + want.length === 0) return false;
    const values = [member, view.kind, give, free, want, view.since];
    const taken = await db.query<{ name: string }>(CHANGE, values, 'work-change');
    for (const name of give) {
      view.release.delete(name);
      view.given(name);
    }
    for (const { name } of taken) view.taken(name);
    return give.length + want.length > 0;
  }

  function report(view: KindView): void {
    const { taken, taken_over, returned: given } = view.takeMoves();
    if (taken.length + given.length === 0) return;
    const counts = { taken: taken.length, taken_over, given: given.length, held: view.mine.size };
    log.info({ kind: view.kind, member, ...counts, names: [...taken, ...given].slice(0, NAMED) }, 'work changed hands');
  }

  function take(view: KindView, name: string): void {
    const offered = offers.get(name);
    if (offered === undefined) {
      // The offer was withdrawn while the piece was being taken.
      view.release.add(name);
      void balance();
      return;
    }
    if (offered.held || offered.stopping || view.release.has(name)) return;
    const ending = new AbortController();
    view.working.add(name);
    offered.held = { ending, ended: doWork(name, offered, ending.signal) };
  }

  async function doWork(name: string, { work }: OfferedLease, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await work(signal);
      } catch (error) {
        if (!signal.aborted) log.error({ err: error, work: name }, 'a piece of work failed; it begins again');
      }
      if (!signal.aborted) await pause(BEGIN_AGAIN_MS, signal);
    }
  }

  /** Ends the work of a piece that another process should have, or has; then gives the piece back. */
  function giveUp(name: string, offered: OfferedLease | undefined): void {
    const held = offered?.held;
    if (!held || held.ending.signal.aborted) return;
    held.ending.abort();
    void held.ended.then(() => {
      offered!.held = undefined;
      endWork(viewOf(name), name);
      return balance();
    });
  }

  function endWork(view: KindView, name: string): void {
    view.working.delete(name);
    view.release.add(name);
  }

  function begin(): void {
    if (timer !== undefined) return;
    regular = true;
    timer = setInterval(() => {
      regular = true;
      void balance();
    }, heartbeat_ms);
    timer.unref();
    off = wakeups.on(WORK_CHANGED, () => void balance());
  }

  return {
    offer(name, work) {
      if (closed) throw new Error('the division of work is closed');
      if (offers.has(name)) throw new Error(`the piece of work ${name} is offered twice`);
      const offered: OfferedLease = { work };
      offers.set(name, offered);
      viewOf(name).offer(name);
      begin();
      // Deferred, so that offers of the same turn are divided in one round.
      setImmediate(() => void balance());
      const campaign: Campaign = {
        async stop() {
          if (offers.get(name) !== offered) return;
          offered.stopping = true;
          const view = viewOf(name);
          view.withdraw(name);
          offered.held?.ending.abort();
          await offered.held?.ended;
          // Another call has withdrawn the offer meanwhile, and the name may be offered again already.
          if (offers.get(name) !== offered) return;
          if (offered.held) endWork(view, name);
          offers.delete(name);
          if (!closed) void balance();
        },
      };
      return campaign;
    },
    async close() {
      closed = true;
      clearInterval(timer);
      off?.();
      const held = [...offers.values()].flatMap((offered) => offered.held ?? []);
      offers.clear();
      for (const { ending } of held) ending.abort();
      await Promise.all(held.map(({ ended }) => ended));
      if (timer === undefined) return;
      // Best effort: the other processes detect one that could not leave.
      const left = balancing
        .then(() => db.query('select work_leave($1)', [member]))
        .then(() => wakeups.notify(WORK_CHANGED))
        .catch((error: unknown) => log.debug({ err: error }, 'a process could not say that it leaves its work'));
      await Promise.race([left, pause(LEAVE_WITHIN_MS)]);
    },
  };
}

function liveMembersOf(members: Seen['members']): LiveMembers {
  const by_kind = new Map<string, string[]>();
  for (const [member, kinds] of members)
    for (const kind of kinds) by_kind.set(kind, [...(by_kind.get(kind) ?? []), member]);
  return { all: new Set(members.map(([member]) => member)), by_kind };
}
