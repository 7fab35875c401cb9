/** Lost or refused connections, a server that starts or stops, serialisation and deadlock victims, cancelled statements. */
const PASSING = /^(?:08|57|40|53)/;
const LINK = /^(?:E[A-Z]+|Connection terminated|Query read timeout|timeout)/;

/**
 * True when the same statement may succeed later: the engine was away or busy. What it did until then is unknown.
 * False for an error that the statement itself earned.
 */
export function isPassing(error: unknown): boolean {
  const { code, message, severity } = error as { code?: string; message?: string; severity?: string };
  if (severity !== undefined && code !== undefined) return PASSING.test(code);
  return LINK.test(code ?? '') || /terminat|timeout|closed|not queryable|ECONN|EPIPE|socket/i.test(message ?? '');
}
