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

/** Copies the members GraphQL shows, under its names. Only those: an unnamed member never leaves. */
export function objectConverter(members: readonly { from: string; to: string; convert: Convert | null }[]): Convert {
  return (value) => {
    const source = value as Record<string, unknown>;
    const shown: Record<string, unknown> = {};
    for (let i = 0; i < members.length; i += 1) {
      const { from, to, convert } = members[i]!;
      const member = source[from];
      shown[to] = convert !== null && member !== null && member !== undefined ? convert(member) : member;
    }
    return shown;
  };
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
