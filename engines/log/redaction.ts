/** How an error looks in a log line: what it is and where it came from, without the values it was about. */
export interface LoggedError {
  type: string;
  message: string;
  code?: string;
  stack?: string;
  cause?: LoggedError;
  errors?: LoggedError[];
}

const DEPTH = 4;
const MOST_ERRORS = 10;

/**
 * An error without data: PostgreSQL's DETAIL holds whole rows, its messages and JSON's quote what could not be read,
 * GraphQL's carry the document. Only name, code, message and frames are kept, and what such messages quote is cut out.
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
            .slice(0, MOST_ERRORS)
            .filter((one) => one instanceof Error)
            .map((one) => loggedError(one, depth - 1) as LoggedError),
        }
      : {}),
  };
}

/**
 * The parsers' messages quote their input; PostgreSQL's class 22 (bad data) does too. Everybody else's texts are our
 * own.
 */
function withoutQuotes(error: Error): string {
  const { message } = error;
  const sqlstate = (error as { code?: unknown; severity?: unknown }).severity !== undefined;
  if (sqlstate) return message.replace(/: ".*$/s, '');
  if (error instanceof SyntaxError) return message.replace(/(?:,? *"|token ['`]).*$/s, ' …');
  return message;
}

// Keys and tokens by their shapes, credentials in addresses and headers. Last line of defence: nobody is supposed to
// log them.
const SECRETS = [
  /\blm_(?:sys|usr|svc|pop|overlay|share|ext|widget)_[0-9A-Za-z]{8,}/g,
  /\b(?:lm_)?eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?/g,
  /\b(?:Bearer|Basic) +[^\s"\\]{4,}/gi,
  /(?<=[?&](?:token|access_token|refresh_token|code|state|secret|key|api_key|signature|sig)=)[^&\s"\\]+/gi,
  /(?<=\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/"@\\]+(?=@)/gi,
  /\b(?:whsec|shpss|shpat|sk_live|sk_test|rk_live)_[\w-]{6,}/g,
];

/** One line of the log with everything that looks like a credential cut out. */
export function redact(line: string): string {
  let clean = line;
  for (const pattern of SECRETS) clean = clean.replace(pattern, '[redacted]');
  return clean;
}
