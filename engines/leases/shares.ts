import { randomUUID } from 'node:crypto';
import { pause } from '../../kernel/signal';
import type { Logger } from '../log/port';
import type { Queryable } from '../postgres/port';
import type { ProcessSession } from '../postgres/process-session';
import type { Wakeups } from '../wakeups/port';
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

/** Told to the others when there is something for them to take or to give back. */
const WAKEUP = 'work-shares';
/** A process that was silent for so long is taken for dead. */
const PATIENCE = '10 s';
const BALANCE = 'select name, wanted, joined from work_balance($1, $2, $3, $4, $5)';
const BEGIN_AGAIN_MS = 1000;
const LEAVE_WITHIN_MS = 2000;

interface Offered {
  work: (signal: AbortSignal) => Promise<void>;
  /** Present while the piece is held: `end` ends the work, `ended` resolves when it has ended. */
  held?: { ending: AbortController; ended: Promise<void> };
  /** It is not offered any longer; given back when what is in hand has ended. */
  stopping?: boolean;
}

/**
 * Work divided over the tables `work_members` and `work_holds`: one statement a process every few seconds, however many
 * pieces there are. A killed process's pieces are free as soon as its session is gone.
 */
export function createPostgresShares(options: SharesOptions): Shares {
  const { db, session, wakeups, log, heartbeat_ms = 3000 } = options;
  const member = randomUUID();
  const offers = new Map<string, Offered>();
  /** Given up here, and not yet given back there. */
  const release = new Set<string>();
  let balancing: Promise<void> = Promise.resolve();
  /** One that waits is enough. */
  let waits = false;
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
        if (!closed) await divide();
      } catch (error) {
        log.warn({ err: error }, 'work could not be divided among the processes; it is tried again');
      }
    });
    return balancing;
  }

  async function divide(): Promise<void> {
    const given = [...release];
    const values = [member, session.lock, [...offers.keys()].sort(), given, PATIENCE];
    const rows = await db.query<{ name: string | null; wanted: boolean; joined: boolean }>(
      BALANCE,
      values,
      'work-balance',
    );
    for (const name of given) release.delete(name);
    const mine = new Map(rows.flatMap(({ name, wanted }) => (name === null ? [] : [[name, wanted] as const])));
    for (const [name, offered] of offers) {
      if (mine.has(name)) take(name, offered);
      if (mine.get(name) !== true) giveUp(name, offered);
    }
    if (rows[0]!.joined || given.length > 0) wakeups.notify(WAKEUP);
  }

  function take(name: string, offered: Offered): void {
    if (offered.held || offered.stopping || release.has(name)) return;
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
      release.add(name);
      return balance();
    });
  }

  function begin(): void {
    if (timer !== undefined) return;
    timer = setInterval(() => void balance(), heartbeat_ms);
    timer.unref();
    off = wakeups.on(WAKEUP, () => void balance());
  }

  return {
    offer(name, work) {
      if (closed) throw new Error('the division of work is closed');
      if (offers.has(name)) throw new Error(`the piece of work ${name} is offered twice`);
      const offered: Offered = { work };
      offers.set(name, offered);
      begin();
      // What is offered together is divided together.
      setImmediate(() => void balance());
      const campaign: Campaign = {
        async stop() {
          if (offers.get(name) !== offered) return;
          offered.stopping = true;
          offered.held?.ending.abort();
          await offered.held?.ended;
          // Its name may be offered anew already.
          if (offers.get(name) === offered) offers.delete(name);
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
