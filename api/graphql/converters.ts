import type { GraphQLInputType } from 'graphql';

/**
 * Converts a value between the operations' form (snake_case) and GraphQL's; null when no conversion is needed.
 */
export type Convert = (value: unknown) => unknown;

export interface InputType {
  type: GraphQLInputType;
  convert: Convert | null;
  /** Treats GraphQL's null as absent, because the member is not nullable. */
  null_is_absent: boolean;
  required: boolean;
}

export interface InputMember extends InputType {
  member: string;
  description: string | undefined;
}

/** A member of an object, and its name in GraphQL. */
export interface OutputMember {
  from: string;
  to: string;
  convert: Convert | null;
}

/**
 * Copies the listed members under their names in GraphQL; no other member is ever sent. `members` is read on the first
 * object.
 */
export function objectConverter(members: readonly OutputMember[]): Convert {
  let copy: Convert | undefined;
  return (value) => (copy ??= compileCopy(members))(value);
}

/**
 * Compiles the copy to an object literal, whose shape V8 knows; a loop over names costs several times as much.
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

/** Copies input under the operations' names; omits null for members that are not nullable. */
export function inputConverter(members: ReadonlyMap<string, InputMember>): Convert {
  return (value) => {
    const input: Record<string, unknown> = {};
    for (const [name, raw_member] of Object.entries(value as Record<string, unknown>)) {
      const member = members.get(name);
      if (!member || raw_member === undefined || (raw_member === null && member.null_is_absent)) continue;
      input[member.member] = member.convert && raw_member !== null ? member.convert(raw_member) : raw_member;
    }
    return input;
  };
}

/** Converts every item of a list. */
export const eachOf =
  (convert: Convert): Convert =>
  (value) =>
    Array.isArray(value) ? value.map((one) => (one === null ? one : convert(one))) : value;
