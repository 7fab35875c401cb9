/** A line of the log at `error` or `fatal`, or one that is no log line at all: a crash speaks in such. */
export interface PrintedError {
  /** The log's message; of a stray line its text. */
  message: string;
  /** What it gives as the reason: codes and messages of the error and of all its causes, one after another. */
  reason: string;
  /** How often it was printed. */
  count: number;
}

/** An error that a test brings about itself: its whole message, and what its reason says. */
export interface Excuse {
  message: RegExp;
  reason: RegExp;
}

/** Kinds of errors beyond this number are counted and not kept. */
const KEPT_KINDS = 1000;
const TAIL = 400_000;
/** Lines of the command itself, which are no log lines. */
const SPOKEN = /^(?:|lumio ready at http\S+|lumio: .*)$/;

/** What a program prints: each kind of error from the first line on, and the last part of everything. */
export class Printed {
  private readonly errors = new Map<string, PrintedError>();
  private not_kept = 0;
  private tail = '';
  private rest = '';

  take(chunk: Buffer | string): void {
    const text = chunk.toString();
    this.tail = (this.tail + text).slice(-TAIL);
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop()!;
    for (const line of lines) this.look(line);
  }

  /** A program was killed: the line that it had not ended is no line. */
  cut(): void {
    this.rest = '';
  }

  /** The last part of it, as it came. */
  text(): string {
    return this.tail;
  }

  /** Errors that no excuse covers, each kind once, oldest first. */
  unexcused(excuses: readonly Excuse[] = []): PrintedError[] {
    const found = [...this.errors.values()].filter(
      ({ message, reason }) => !excuses.some((excuse) => excuse.message.test(message) && excuse.reason.test(reason)),
    );
    const beyond = { message: 'errors of kinds that are not kept here', reason: '', count: this.not_kept };
    return this.not_kept > 0 ? [...found, beyond] : found;
  }

  private look(line: string): void {
    const error = errorIn(line);
    if (!error) return;
    const kind = `${error.message}\n${error.reason}`;
    const known = this.errors.get(kind);
    if (known) known.count += 1;
    else if (this.errors.size < KEPT_KINDS) this.errors.set(kind, { ...error, count: 1 });
    else this.not_kept += 1;
  }
}

function errorIn(line: string): Omit<PrintedError, 'count'> | undefined {
  if (SPOKEN.test(line)) return undefined;
  const entry = parsed(line);
  if (!entry) return { message: line, reason: 'not a line of the log' };
  if (entry.level !== 'error' && entry.level !== 'fatal') return undefined;
  return { message: String(entry.msg ?? ''), reason: reasonOf(entry) };
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    return typeof entry === 'object' && entry !== null && 'level' in entry ? { ...entry } : undefined;
  } catch {
    return undefined; // no JSON: a stray line
  }
}

function reasonOf({ reason, err, error }: Record<string, unknown>): string {
  const parts = typeof reason === 'string' ? [reason] : [];
  for (const cause of [err, error]) parts.push(...partsOf(cause));
  return parts.join(' | ');
}

function partsOf(cause: unknown): string[] {
  if (typeof cause === 'string') return [cause];
  if (typeof cause !== 'object' || cause === null) return [];
  const { type, code, message, cause: deeper, errors } = cause as Record<string, unknown>;
  const own = [type, code, message].filter((part) => part !== undefined).join(' ');
  return [own, ...partsOf(deeper), ...(Array.isArray(errors) ? errors.flatMap(partsOf) : [])];
}
