import type { Logger } from '../../../engines/log/port';
import { isPassing } from '../../../kernel/failures';
import { createOutageLog } from '../../../kernel/outage-log';

/**
 * Logs what could not be done for a socket: a line, or a few lines for all that fails for one cause, because thousands
 * of clients connect again while an engine is unavailable.
 */
export type SocketFailures = (facts: { err: unknown; [fact: string]: unknown }, message: string) => void;

export function createSocketFailures(log: Logger): SocketFailures {
  const shared = createOutageLog(log, 'sockets are not served for a cause that they share');
  return (facts, message) => {
    if (!shared(facts.err, isPassing(facts.err), { kind: message, facts })) log.error(facts, message);
  };
}
