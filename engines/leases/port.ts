import type { Queryable } from '../postgres/port';

/** The lease was lost, or its time ran out; nothing more may be done under it. */
export class LeaseLost extends Error {
  constructor(readonly lease: string) {
    super(`lease ${lease} is lost`);
    this.name = 'LeaseLost';
  }
}

/** The right to do one piece of work, held by one process at a time. */
export interface Lease {
  readonly name: string;
  /** Greater with each new holder. */
  readonly token: number;
  /** Aborted as soon as the lease may have been lost, and when the campaign is stopped. */
  readonly signal: AbortSignal;
  /**
   * To be called in the transaction of an effect: until that transaction ends no other process can take the lease, so
   * that a holder that was paused or cut off cannot write at the same time as its successor.
   * @throws LeaseLost
   */
  fence(tx: Queryable): Promise<void>;
}

export interface Campaign {
  /** Aborts the work in hand, waits for it, and gives the lease up at once. */
  stop(): Promise<void>;
}

/** Sent to the other processes when one joins, and when there is work for them to take or to give back. */
export const WORK_CHANGED = 'work-shares';

/**
 * Pieces of work that active processes divide among themselves: each is done by one of the processes that offer it. A
 * process that was paused or cut off too long may overlap with its successor for a moment, so that the effects must be
 * fenced by themselves.
 */
export interface Shares {
  /**
   * Runs `work` while this process holds the piece, from now until stopped. `work` lasts until its signal is aborted;
   * after an earlier return or throw it is run again, after a pause.
   */
  offer(name: string, work: (signal: AbortSignal) => Promise<void>): Campaign;
  /** Stops all offers, and gives everything back at once. */
  close(): Promise<void>;
}

/** Work that exactly one of many processes should do. */
export interface Leases {
  /**
   * Runs `work` whenever this process holds the lease, from now until stopped. `work` should last until its signal is
   * aborted; when it returns or throws earlier the lease is given up, and campaigned for again after a pause.
   */
  campaign(name: string, work: (lease: Lease) => Promise<void>): Campaign;
  /** Stops all campaigns. */
  close(): Promise<void>;
}
