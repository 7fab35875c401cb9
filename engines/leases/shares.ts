import { randomUUID } from 'node:crypto';
import { pause } from '../../kernel/signal';
import type { Logger } from '../log/port';
import type { Queryable } from '../postgres/port';
import type { ProcessSession } from '../postgres/process-session';
import type { Wakeups } from '../wakeups/port';
import type { Division } from './division';
import { type ChangedHold, KindView, kindOf, type LivingMembers } from './kind-view';
import type { Campaign, Shares } from './port';

export interface SharesOptions {
  db: Queryable;
  /** Shows the others that this process lives. */
  session: Pick<ProcessSession, 'lock' | 'ready'>;
  wakeups: Wakeups;
  log: Logger;
  /** How often a process looks whether the division has changed without a word. Default 3 s. */
  heartbeat_ms?: number;
}

/** Sent to the other processes when there is something for them to take or to give back. */
const WAKEUP = 'work-shares';
/** Ended holds stay readable for two minutes; a process that was away for longer than this reads all holds again. */
const REMEMBERED_MS = 30_000;
const LOOK = 'select work_look($1, $2, $3, $4, $5) as seen';
const CHANGE = 'select name from work_change($1, $2, $3, $4, $5, $6)';
const BEGIN_AGAIN_MS = 1000;
const LEAVE_WITHIN_MS = 2000;

interface Offered {
  work: (signal: AbortSignal) => Promise<void>;
  /** Present while the piece is held: `end` ends the work, `ended` resolves when it has ended. */
  held?: { ending: AbortController; ended: Promise<void> };
  /** It is not offered any longer; given back when what is in hand has ended. */
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
 * Work divided over the tables `work_members` and `work_holds`: one statement a process every few seconds, which reads
 * what has changed, and one for each kind of work in which this process takes or gives back. The choice is made by
 * {@link KindView} in the process. A killed process's pieces are free as soon as its session is gone.
 */
export function createPostgresShares(options: SharesOptions): Shares {
  const { db, session, wakeups, log, heartbeat_ms = 3000 } = options;
  const member = randomUUID();
  const offers = new Map<string, Offered>();
  const kinds = new Map<string, KindView>();
  let balancing: Promise<void> = Promise.resolve();
  /** One that waits is enough. */
  let waits = false;
  /** A heartbeat has passed since the last round. */
  let regular = false;
  let looked_at = -Infinity;
  let older = false;
  /** Names in the row of this process for members of the previous release. */
  let listed = '';
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
    const { joined, living } = await look(views);
    let gave = false;
    for (const view of views) {
      for (const name of view.offered) if (!view.isKept(name, living)) giveUp(name, offers.get(name)!);
      const plan = view.plan(living, whole && !older);
      if (await change(view, plan)) gave = true;
      for (const name of view.mine()) take(view, name);
    }
    if (joined || gave) wakeups.notify(WAKEUP);
  }

  /** Brings the views up to date. */
  async function look(views: readonly KindView[]): Promise<{ joined: boolean; living: LivingMembers }> {
    // A member of the previous release changes holds without a number.
    if (older || performance.now() - looked_at > REMEMBERED_MS) for (const view of views) view.reset();
    const asked_at = performance.now();
    const names = older ? [...offers.keys()].sort() : [];
    const text = names.join('\n');
    const values = [
      member,
      session.lock,
      views.map(({ kind }) => kind),
      views.map(({ since }) => since),
      text === listed ? null : names,
    ];
    const [row] = await db.query<{ seen: Seen }>(LOOK, values, 'work-look');
    const { seen } = row!;
    if (seen.joined && views.some(({ since }) => since > 0)) {
      // Buried meanwhile: what it remembers may be long past.
      looked_at = -Infinity;
      return { ...(await look(views)), joined: true };
    }
    [older, listed, looked_at] = [seen.older, text, asked_at];
    for (const hold of seen.holds) kinds.get(hold[0])!.apply(hold);
    return { joined: seen.joined, living: livingOf(seen.members) };
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

  function take(view: KindView, name: string): void {
    const offered = offers.get(name);
    if (offered === undefined) {
      // It was withdrawn while it came here.
      view.release.add(name);
      void balance();
      return;
    }
    if (offered.held || offered.stopping || view.release.has(name)) return;
    const ending = new AbortController();
    offered.held = { ending, ended: doWork(name, offered, ending.signal) };
  }

  async function doWork(name: string, { work }: Offered, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await work(signal);
      } catch (error) {
        if (!signal.aborted) log.error({ err: error, work: name }, 'a piece of work failed; it begins again');
      }
      if (!signal.aborted) await pause(BEGIN_AGAIN_MS, signal);
    }
  }

  /** Another process should have it, or has it: given back when what is in hand has ended. */
  function giveUp(name: string, offered: Offered): void {
    const { held } = offered;
    if (!held || held.ending.signal.aborted) return;
    held.ending.abort();
    void held.ended.then(() => {
      offered.held = undefined;
      viewOf(name).release.add(name);
      return balance();
    });
  }

  function begin(): void {
    if (timer !== undefined) return;
    regular = true;
    timer = setInterval(() => {
      regular = true;
      void balance();
    }, heartbeat_ms);
    timer.unref();
    off = wakeups.on(WAKEUP, () => void balance());
  }

  return {
    offer(name, work) {
      if (closed) throw new Error('the division of work is closed');
      if (offers.has(name)) throw new Error(`the piece of work ${name} is offered twice`);
      const offered: Offered = { work };
      offers.set(name, offered);
      viewOf(name).offered.add(name);
      begin();
      // What is offered together is divided together.
      setImmediate(() => void balance());
      const campaign: Campaign = {
        async stop() {
          if (offers.get(name) !== offered) return;
          offered.stopping = true;
          offered.held?.ending.abort();
          await offered.held?.ended;
          const view = viewOf(name);
          if (offered.held) view.release.add(name);
          // Its name may be offered anew already.
          if (offers.get(name) === offered) {
            offers.delete(name);
            view.offered.delete(name);
          }
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
      // Best effort: a process that cannot say goodbye is found dead by the others.
      const left = balancing
        .then(() => db.query('select work_leave($1)', [member]))
        .then(() => wakeups.notify(WAKEUP))
        .catch((error: unknown) => log.debug({ err: error }, 'a process could not say that it leaves its work'));
      await Promise.race([left, pause(LEAVE_WITHIN_MS)]);
    },
  };
}

function livingOf(members: Seen['members']): LivingMembers {
  const by_kind = new Map<string, string[]>();
  for (const [member, kinds] of members)
    for (const kind of kinds) by_kind.set(kind, [...(by_kind.get(kind) ?? []), member]);
  return { all: new Set(members.map(([member]) => member)), by_kind };
}
