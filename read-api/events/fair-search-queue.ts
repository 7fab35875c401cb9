import type { RequestContext } from '../../access/authentication/caller';
import { DomainError } from '../../kernel/errors';

interface Waiter {
  account_id: string;
  /** `granted` false: removed from the queue. */
  called(granted: boolean): void;
  refuse(): void;
}

/**
 * Slots for heavy reads, shared by all accounts: one per account at a time, and a bounded common queue. Accounts take
 * turns; when the queue is full, the account with the most waiting reads loses its newest one to an account with fewer.
 */
export class FairSearchQueue {
  private readonly running = new Set<string>();
  private waiting: Waiter[] = [];

  constructor(
    private readonly places: number,
    private readonly longest_queue: number,
  ) {}

  /** Number of waiting reads. */
  get queued(): number {
    return this.waiting.length;
  }

  /**
   * Runs `work` in a slot of the account. Null when no slot was free within `wait_ms`, or the caller disconnected.
   * @throws DomainError `TOO_MANY_SEARCHES` when too many wait
   */
  async run<T>(
    account_id: string,
    wait_ms: number,
    onGone: RequestContext['onGone'],
    work: () => Promise<T>,
  ): Promise<T | null> {
    if (this.free(account_id)) this.running.add(account_id);
    else if (!(await this.turn(account_id, wait_ms, onGone))) return null;
    try {
      return await work();
    } finally {
      this.running.delete(account_id);
      this.callNext();
    }
  }

  // A slot is never free while an eligible waiter exists: a waiter's own account runs, or all slots are taken.
  private free(account_id: string): boolean {
    return this.running.size < this.places && !this.running.has(account_id);
  }

  private async turn(account_id: string, wait_ms: number, onGone: RequestContext['onGone']): Promise<boolean> {
    this.ensureCapacity(account_id);
    let timer: NodeJS.Timeout | undefined;
    let stay: (() => void) | undefined;
    try {
      return await new Promise<boolean>((resolve, reject) => {
        const refuse = () => reject(busy());
        const waiter: Waiter = { account_id, called: resolve, refuse };
        const leave = () => {
          if (!this.waiting.includes(waiter)) return;
          this.waiting = this.waiting.filter((one) => one !== waiter);
          resolve(false);
        };
        this.waiting.push(waiter);
        timer = setTimeout(leave, Math.max(0, wait_ms));
        stay = onGone?.(leave);
      });
    } finally {
      clearTimeout(timer);
      stay?.();
    }
  }

  /** @throws DomainError when the queue is full and no account would have more waiting reads than this one */
  private ensureCapacity(account_id: string): void {
    if (this.waiting.length < this.longest_queue) return;
    const counts = new Map<string, number>();
    for (const { account_id: one } of this.waiting) counts.set(one, (counts.get(one) ?? 0) + 1);
    const [most, count] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0]);
    if (count <= (counts.get(account_id) ?? 0) + 1) throw busy();
    const newest = this.waiting.findLast((one) => one.account_id === most)!;
    this.waiting = this.waiting.filter((one) => one !== newest);
    newest.refuse();
  }

  private callNext(): void {
    const next = this.waiting.find(({ account_id }) => this.free(account_id));
    if (!next) return;
    const { account_id } = next;
    this.running.add(account_id);
    const rest = this.waiting.filter((one) => one !== next);
    // The account's other waiters move behind those of all other accounts.
    this.waiting = [
      ...rest.filter((one) => one.account_id !== account_id),
      ...rest.filter((one) => one.account_id === account_id),
    ];
    next.called(true);
  }
}

const busy = () => new DomainError('TOO_MANY_SEARCHES');
