/** An error in a log line: its kind and origin, without the values involved. */
export interface LoggedError {
  type: string;
  message: string;
  code?: string;
  stack?: string;
  cause?: LoggedError;
  errors?: LoggedError[];
}

const DEPTH = 4;
const MAX_ERRORS = 10;

/**
 * An error without data: PostgreSQL's DETAIL holds whole rows, its messages and those of JSON.parse quote their input,
 * GraphQL errors carry the document. Keeps name, code, message and frames, and cuts quoted input out of the message.
 */
export function loggedError(error: unknown, depth = DEPTH): LoggedError | unknown {
  if (!(error instanceof Error)) return error;
  const { name, cause } = error;
  const code = (error as { code?: unknown }).code;
  const errors = (error as { errors?: unknown }).errors;
  const message = withoutQuotes(error);
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line));
  return {
    type: error.constructor?.name || name,
    message,
    ...(typeof code === 'string' || typeof code === 'number' ? { code: String(code) } : {}),
    ...(frames && frames.length > 0 ? { stack: [`${name}: ${message}`, ...frames].join('\n') } : {}),
    ...(cause instanceof Error && depth > 0 ? { cause: loggedError(cause, depth - 1) as LoggedError } : {}),
    ...(Array.isArray(errors) && depth > 0
      ? {
          errors: errors
            .slice(0, MAX_ERRORS)
            .filter((one) => one instanceof Error)
            .map((one) => loggedError(one, depth - 1) as LoggedError),
        }
      : {}),
  };
}

/**
 * Message without quoted input: parsers quote their input, and so does PostgreSQL's class 22 (bad data). All other
 * messages are texts of our own.
 */
function withoutQuotes(error: Error): string {
  const { message } = error;
  const sqlstate = (error as { code?: unknown; severity?: unknown }).severity !== undefined;
  if (sqlstate) return message.replace(/: ".*$/s, '');
  if (error instanceof SyntaxError) return message.replace(/(?:,? *"|token ['`]).*$/s, ' …');
  return message;
}

// Keys and tokens by their shapes, credentials in addresses and headers. The last line of defence: no code should log
// them.
const SECRETS = [
  /\blm_(?:sys|usr|svc|pop|overlay|share|ext|widget)_[0-9A-Za-z]{8,}/g,
  /\b(?:lm_)?eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?/g,
  /\b(?:Bearer|Basic) +[^\s"\\]{4,}/gi,
  /(?<=[?&](?:token|access_token|refresh_token|code|state|secret|key|api_key|signature|sig)=)[^&\s"\\]+/gi,
  /(?<=\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/"@\\]+(?=@)/gi,
  /\b(?:whsec|shpss|shpat|sk_live|sk_test|rk_live)_[\w-]{6,}/g,
];

/** Cuts everything with the shape of a credential out of a line of the log. */
export function redact(line: string): string {
  let clean = line;
  for (const pattern of SECRETS) clean = clean.replace(pattern, '[redacted]');
  return clean;
}
