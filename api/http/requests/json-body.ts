import { isUtf8 } from 'node:buffer';
import { ApiError } from '../../../kernel/errors';
import { isKeptExactly, isReservedMember, jsonRefusals, MAX_JSON_DEPTH, MEMBER_LIMITS } from './json-rules';

/** Largest body. Source: design §10. */
export const MAX_BODY_BYTES = 1024 * 1024;

const malformed = (message: string) => new ApiError('BAD_REQUEST', message);

/**
 * Parses a JSON body and refuses what JavaScript or PostgreSQL would silently change or choke on: nesting beyond
 * {@link MAX_JSON_DEPTH}, more than `most` members and elements, NUL and lone surrogates, numbers that a double cannot
 * hold, prototype keys, bytes that are not UTF-8.
 * @throws ApiError BAD_REQUEST or VALIDATION_ERROR
 */
export function parseJsonBody(body: Buffer, most = MEMBER_LIMITS.proven): unknown {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw malformed('The request body is not valid UTF-8');
  const text = body.toString('utf8');
  inspect(text, most);
  try {
    return JSON.parse(text);
  } catch {
    throw malformed('The request body is not valid JSON');
  }
}

const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;

/**
 * Checks the text in one pass, before any value is built from it. Linear time, because the position of the next
 * backslash is kept instead of searched from each string.
 */
function inspect(text: string, most: number): void {
  let depth = 0;
  let members = 0;
  let backslash = nextBackslash(text, 0);
  const count = () => {
    members += 1;
    if (members > most) throw jsonRefusals.members(most);
  };
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      if (backslash < i) backslash = nextBackslash(text, i);
      i = inspectString(text, i, backslash);
    } else if (c === 91 || c === 123) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) throw jsonRefusals.depth();
      if (!isEmpty(text, i)) count();
    } else if (c === 93 || c === 125) depth -= 1;
    else if (c === COMMA) count();
    else if (c === 45 || (c >= 48 && c <= 57)) i = inspectNumber(text, i);
  }
}

function nextBackslash(text: string, from: number): number {
  const at = text.indexOf('\\', from);
  return at === -1 ? Infinity : at;
}

/** Returns the index of the closing quote. `backslash` is the first one after `start`. */
function inspectString(text: string, start: number, backslash: number): number {
  let end = text.indexOf('"', start + 1);
  if (end === -1) throw malformed('The request body is not valid JSON');
  if (backslash < end) {
    for (end = backslash; text.charCodeAt(end) !== QUOTE; end += 1) {
      if (end >= text.length) throw malformed('The request body is not valid JSON');
      if (text.charCodeAt(end) !== BACKSLASH) continue;
      end += 1;
      if (text[end] !== 'u') continue;
      const unit = Number.parseInt(text.slice(end + 1, end + 5), 16);
      if (unit === 0) throw jsonRefusals.nul();
      if (unit >= 0xd800 && unit <= 0xdfff) {
        const low = text.slice(end + 5, end + 7) === '\\u' ? Number.parseInt(text.slice(end + 7, end + 11), 16) : 0;
        if (unit > 0xdbff || !(low >= 0xdc00 && low <= 0xdfff)) throw jsonRefusals.lone_surrogate();
        end += 6;
      }
      end += 4;
    }
  }
  const length = end - start - 1;
  // Both names can be spelled with escapes, so that the decoded name is checked.
  if (length >= 9 && length <= 66) refusePrototypeKey(text, start, end);
  return end;
}

function refusePrototypeKey(text: string, start: number, end: number): void {
  const raw = text.slice(start, end + 1);
  if (!raw.includes('__proto__') && !raw.includes('\\u') && raw !== '"constructor"') return;
  if (!isName(text, end)) return;
  let name: unknown;
  try {
    name = JSON.parse(raw);
  } catch {
    throw malformed('The request body is not valid JSON');
  }
  if (typeof name === 'string' && isReservedMember(name)) throw jsonRefusals.member_name(name);
}

/** Whether a colon follows the string that ends at `end`. */
const isName = (text: string, end: number): boolean => next(text, end) === 58;

/** Whether the array or object that begins at `start` has nothing in it. */
function isEmpty(text: string, start: number): boolean {
  const c = next(text, start);
  return c === 93 || c === 125;
}

/** The first character after `at` besides JSON's blanks. */
function next(text: string, at: number): number {
  for (let i = at + 1; ; i += 1) {
    const c = text.charCodeAt(i);
    if (c !== 32 && c !== 9 && c !== 10 && c !== 13) return c;
  }
}

/** Returns the index of the number's last character. */
function inspectNumber(text: string, start: number): number {
  let end = start + 1;
  let whole = true;
  for (; end < text.length; end += 1) {
    const c = text.charCodeAt(end);
    if (c === 46 || c === 69 || c === 101) whole = false;
    else if (!((c >= 48 && c <= 57) || c === 43 || c === 45)) break;
  }
  if (!whole || end - start > 15) {
    if (!isKeptExactly(text.slice(start, end), whole)) throw jsonRefusals.number();
  }
  return end - 1;
}
