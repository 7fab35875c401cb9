import { z } from 'zod';
import type { Operation } from '../../app/operation';
import { ApiError } from '../../kernel/errors';
import { givenTwice } from '../http/requests/json-rules';
import { shapeOf, unwrap } from '../openapi/schema-shape';

type Members = Record<string, unknown>;
type Convert = (value: string | string[]) => unknown;

/** Reads requests into the input of an operation. Made once per operation. */
export interface InputReader {
  /** Names of the input's members. */
  readonly names: ReadonlySet<string>;
  /** Converts texts of path and query by their zod types; `typed` (a JSON body) is used unchanged. */
  merge(texts: Members, typed: Members): Members;
  /** @throws ApiError VALIDATION_ERROR naming the members at fault */
  validate(input: Members): unknown;
}

/**
 * The validator of both protocols: refuses members that the schema does not have, and leaves all else to zod.
 */
export function inputReader(operation: Operation): InputReader {
  const shape = shapeOf(operation.input, 'input');
  const converters = new Map(Object.entries(shape).map(([name, schema]) => [name, converterFor(schema)]));
  const ids = Object.keys(shape).filter((name) => unwrap(shape[name]!, 'input').def.format === 'uuid');
  const mapInput = operation.rest?.mapInput;
  const aliases = Object.entries(operation.rest?.aliases ?? {});
  const names = new Set(Object.keys(shape));
  const standard = operation.rest?.standard_parameters === true;
  return {
    names,
    merge(all_texts, all_typed) {
      const texts = standard ? knownTexts(all_texts, names) : all_texts;
      const typed = standard ? knownParameters(all_typed, names) : all_typed;
      let merged: Members = typed;
      for (const name in texts) {
        if (merged === typed) merged = { ...typed };
        if (Object.hasOwn(typed, name)) throw givenTwice(name);
        merged[name] = texts[name];
      }
      if (mapInput) merged = mapInput(merged);
      for (const [alias, name] of aliases) merged = withoutAlias(merged, alias, name);
      for (const name in merged) {
        const value = merged[name];
        const convert = converters.get(name);
        if (convert && isText(value) && typed[name] !== value) merged[name] = convert(value);
      }
      return merged;
    },
    validate(input) {
      for (const name in input) {
        if (!Object.hasOwn(shape, name)) throw unknownMember(name);
      }
      const result = operation.input.safeParse(input, { error: generic });
      if (!result.success) throw invalid(result.error);
      const read = result.data as Members;
      // Streams and states use ids in lower case; input may have either case (RFC 9562 §4).
      for (const name of ids) if (typeof read[name] === 'string') read[name] = read[name].toLowerCase();
      return read;
    },
  };
}

const knownParameters = (members: Members, names: ReadonlySet<string>): Members =>
  Object.fromEntries(Object.entries(members).filter(([name, value]) => names.has(name) && value !== ''));

/** @throws ApiError VALIDATION_ERROR for a known parameter that the query repeats */
function knownTexts(texts: Members, names: ReadonlySet<string>): Members {
  const known = knownParameters(texts, names);
  for (const name in known) if (Array.isArray(known[name])) throw givenTwice(name);
  return known;
}

function withoutAlias(members: Members, alias: string, name: string): Members {
  if (!Object.hasOwn(members, alias)) return members;
  const { [alias]: value, ...others } = members;
  if (Object.hasOwn(others, name) && others[name] !== value) throw refusedMember(alias, `differs from ${name}`);
  return { ...others, [name]: value };
}

/** Longest quoted name, because a caller's name may have a megabyte, and so may a message that quotes it. */
const LONGEST_NAME = 200;
const LONGEST_MESSAGE = 2000;
const quoted = (text: string, longest = LONGEST_NAME): string =>
  text.length > longest ? `${text.slice(0, longest)}…` : text;

const unknownMember = (name: string) => refusedMember(quoted(name), 'is not a member of this request');

function refusedMember(path: string, message: string): ApiError {
  return new ApiError('VALIDATION_ERROR', `${path}: ${message}`, { details: { fields: [{ path, message }] } });
}

/**
 * Prefix of each text that zod chose, to distinguish a rule's own text (spec doc2: `Invalid slug format`), which is
 * returned exactly as written.
 */
const ZODS_OWN = '\0';
const generic: z.core.$ZodErrorMap = (issue) => {
  if (issue.input === undefined && issue.code !== 'custom') return `${ZODS_OWN}is required`;
  const text = z.config().localeError?.(issue) ?? 'Invalid input';
  return ZODS_OWN + (typeof text === 'string' ? text : text.message);
};

/** Error with all issues of zod, as a text for people and a list for programs. */
function invalid(error: z.ZodError): ApiError {
  const fields = error.issues.slice(0, 20).map((issue) => ({
    path: quoted(
      [...issue.path, ...(issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [])].map(String).join('.'),
    ),
    message:
      issue.code === 'unrecognized_keys'
        ? 'is not a member of this request'
        : quoted(issue.message.replace(ZODS_OWN, ''), LONGEST_MESSAGE),
    written: issue.code !== 'unrecognized_keys' && !issue.message.startsWith(ZODS_OWN),
  }));
  const [first] = fields;
  const message = first!.written || first!.path === '' ? first!.message : `${first!.path}: ${first!.message}`;
  return new ApiError('VALIDATION_ERROR', message, {
    details: { fields: fields.map(({ path, message: text }) => ({ path, message: text })) },
  });
}

function isText(value: unknown): value is string | string[] {
  return typeof value === 'string' || (Array.isArray(value) && value.every((item) => typeof item === 'string'));
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Converter from text to a type; leaves a malformed text unchanged, which zod then rejects. */
function converterFor(schema: z.ZodType): Convert | undefined {
  const { def } = unwrap(schema, 'input');
  switch (def.type) {
    case 'number':
      return (value) => (typeof value === 'string' && NUMBER.test(value) ? Number(value) : value);
    case 'boolean':
      return (value) => (value === 'true' ? true : value === 'false' ? false : value);
    case 'array': {
      const item = converterFor(def.element!);
      return (value) => {
        const texts = (Array.isArray(value) ? value : [value])
          .flatMap((text) => text.split(','))
          .filter((text) => text !== '');
        return item ? texts.map(item) : texts;
      };
    }
    default:
      return undefined;
  }
}
