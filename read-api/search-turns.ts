import type { RequestContext } from '../access/caller';
import { DomainError } from '../kernel/errors';

interface Waiter {
  account_id: string;
  /** False: it was put out of the queue. */
  called(granted: boolean): void;
  refuse(): void;
}

/**
 * The places in which heavy reads run, shared by all accounts: one at a time for each account, and a bounded queue for
 * all. Accounts are called in turn, and when the queue is full the one that waits most often gives up its newest place
 * to one that waits less.
 */
export class SearchTurns {
  private readonly running = new Set<string>();
  private waiting: Waiter[] = [];

  constructor(
    private readonly places: number,
    private readonly longest_queue: number,
  ) {}

  /** How many wait. */
  get queued(): number {
    return this.waiting.length;
  }

  /**
   * Runs `work` in a place of the account. Null when none came within `wait_ms`, or the caller left before.
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

  // A place is never free while somebody waits for it: a waiter's own account runs, or all places are taken.
  private free(account_id: string): boolean {
    return this.running.size < this.places && !this.running.has(account_id);
  }

  private async turn(account_id: string, wait_ms: number, onGone: RequestContext['onGone']): Promise<boolean> {
    this.makeRoom(account_id);
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

  /** @throws DomainError when the queue is full and nobody waits more often than this account would */
  private makeRoom(account_id: string): void {
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
    // Its others queue up again behind those of everybody else.
    this.waiting = [
      ...rest.filter((one) => one.account_id !== account_id),
      ...rest.filter((one) => one.account_id === account_id),
    ];
    next.called(true);
  }
}

const busy = () => new DomainError('TOO_MANY_SEARCHES');
