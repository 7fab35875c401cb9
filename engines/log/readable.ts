/** Most characters of a readable line; a longer one ends in an ellipsis. */
const LONGEST = 200;
const LEVELS: Readonly<Record<string, string>> = { debug: 'debug', info: '     ', warn: 'WARN ', error: 'ERROR' };

/**
 * Converts a JSON line of the log to a short line for a person at a terminal: local time, level, message and facts; of
 * an error only its message. Any other text stays unchanged.
 */
export function readableLine(line: string): string {
  const entry = entryOf(line);
  if (entry === undefined) return line;
  const { time, level, msg, ...facts } = entry;
  const clock = new Date(String(time)).toTimeString().slice(0, 8);
  const told = Object.entries(facts).map(([name, value]) => `${name}=${shown(value)}`);
  const text = [clock, LEVELS[String(level)] ?? String(level), String(msg ?? ''), ...told]
    .join(' ')
    .replace(/\s*\n\s*/g, ' ');
  return `${text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text}\n`;
}

function entryOf(line: string): Record<string, unknown> | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    const isEntry = typeof entry === 'object' && entry !== null && 'level' in entry && 'time' in entry;
    return isEntry ? { ...entry } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function shown(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  if (typeof value !== 'object' || value === null) return String(value);
  const { type, message, code } = value as { type?: unknown; message?: unknown; code?: unknown };
  if (typeof message !== 'string') return JSON.stringify(value);
  return JSON.stringify(`${String(type)}${code === undefined ? '' : ` ${String(code)}`}: ${message}`);
}
