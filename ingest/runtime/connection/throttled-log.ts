import type { Logger } from '../../../engines/log/port';

/** Milliseconds in which one kind of remark is logged once: an attacker or a noisy vendor must not fill the disk. */
const REMARK_EVERY_MS = 10_000;

/**
 * Logs the first remark of each kind (message, vendor and reason), and then one per {@link REMARK_EVERY_MS} with the
 * number left out.
 */
export function createThrottledLog(log: Logger, now: () => number) {
  const kinds = new Map<string, { until: number; left_out: number }>();
  return (
    level: 'info' | 'warn',
    facts: { vendor: string; reason: string; [fact: string]: unknown },
    message: string,
  ): void => {
    const kind = `${message} ${facts.vendor} ${facts.reason}`;
    const last = kinds.get(kind);
    const at = now();
    if (last && at < last.until) {
      last.left_out += 1;
      return;
    }
    kinds.set(kind, { until: at + REMARK_EVERY_MS, left_out: 0 });
    log[level]({ ...facts, ...(last?.left_out ? { left_out: last.left_out } : {}) }, message);
  };
}
