import type { GraphQLInputType } from 'graphql';

/**
 * Turns a value as operations speak it (snake_case) into GraphQL's, or the other way round; null where nothing has to
 * change.
 */
export type Convert = (value: unknown) => unknown;

export interface InputType {
  type: GraphQLInputType;
  convert: Convert | null;
  /** GraphQL's null stands for "left out" where the member does not know null. */
  null_is_absent: boolean;
  required: boolean;
}

export interface InputMember extends InputType {
  member: string;
  description: string | undefined;
}

/** A member of an object, and the name under which GraphQL shows it. */
export interface OutputMember {
  from: string;
  to: string;
  convert: Convert | null;
}

/**
 * Copies the members GraphQL shows, under its names. Only those: an unnamed member never leaves. `members` are read
 * when the first object comes.
 */
export function objectConverter(members: readonly OutputMember[]): Convert {
  let copy: Convert | undefined;
  return (value) => (copy ??= compileCopy(members))(value);
}

/**
 * Writes the copy as one literal: V8 knows the shape of such an object, which a loop over names gives it none of, at
 * several times the cost.
 */
function compileCopy(members: readonly OutputMember[]): Convert {
  const lines = members.map(({ from, to, convert }, index) => {
    const member = `source[${JSON.stringify(from)}]`;
    const shown = convert === null ? member : `${member} == null ? ${member} : converts[${index}](${member})`;
    return `${JSON.stringify(to)}: ${shown}`;
  });
  const make = new Function('converts', `return (source) => ({ ${lines.join(', ')} });`) as (
    converts: readonly (Convert | null)[],
  ) => Convert;
  return make(members.map(({ convert }) => convert));
}

/** Copies what was given under our names; GraphQL's null becomes "left out" where the member has no null. */
export function inputConverter(members: ReadonlyMap<string, InputMember>): Convert {
  return (value) => {
    const input: Record<string, unknown> = {};
    for (const [name, given] of Object.entries(value as Record<string, unknown>)) {
      const member = members.get(name);
      if (!member || given === undefined || (given === null && member.null_is_absent)) continue;
      input[member.member] = member.convert && given !== null ? member.convert(given) : given;
    }
    return input;
  };
}

/** The same for every member of a list. */
export const eachOf =
  (convert: Convert): Convert =>
  (value) =>
    Array.isArray(value) ? value.map((one) => (one === null ? one : convert(one))) : value;
