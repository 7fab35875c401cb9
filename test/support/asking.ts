import { buildSchema, getNamedType, getNullableType, isEnumType, isInputObjectType, isObjectType } from 'graphql';
import type { GraphQLInputType, GraphQLOutputType } from 'graphql';
import type { z } from 'zod';
import type { Operation } from '../../app/operation';
import { metaOf, shapeOf, unwrap } from '../../api/openapi/schema-shape';

/** What was answered, whatever the protocol. */
export interface Answered {
  status: number;
  text: string;
}

/** The value that a member of an operation's input is given. */
export type Example = (operation: Operation, member: string) => unknown;

/** Calls operations on both protocols as they declare themselves. */
export interface Asking {
  overRest(operation: Operation, members: readonly string[], caller: Record<string, string>): Promise<Answered>;
  overGraphql(operation: Operation, members: readonly string[], caller: Record<string, string>): Promise<Answered>;
  /** Any request, each from another address: who has no credential is let ask few times a minute. */
  send(caller: Record<string, string>, method: string, path: string, body?: unknown): Promise<Answered>;
}

/** Members of an operation's input: those that it needs, or all. */
export const membersOf = (operation: Operation, which: 'needed' | 'all'): string[] =>
  Object.entries(shapeOf(operation.input, 'input'))
    .filter(([, one]) => which === 'all' || !isOptional(one))
    .map(([name]) => name);

export const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** @param base_url a server that takes `X-Forwarded-For` from here */
export async function asking(base_url: string, example: Example): Promise<Asking> {
  const schema = buildSchema(await (await fetch(`${base_url}/v1/schema`)).text());
  let asked = 0;

  const send: Asking['send'] = async (caller, method, path, body) => {
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    asked += 1;
    const from = { 'x-forwarded-for': `198.${18 + (asked >> 16)}.${(asked >> 8) & 255}.${asked & 255}` };
    const response = await fetch(base_url + path, {
      method,
      headers: { ...from, ...caller, ...type },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };

  return {
    send,
    async overRest(operation, members, caller) {
      const { method, path } = operation.rest!;
      const input = new Map(members.map((member) => [member, example(operation, member)]));
      const url = path.replace(/\{(\w+)\}/g, (_match, name: string) => {
        const value = String(input.get(name));
        input.delete(name);
        return encodeURIComponent(value);
      });
      if (method !== 'GET' && method !== 'DELETE') return send(caller, method, url, Object.fromEntries(input));
      const query = new URLSearchParams([...input].map(([name, value]) => [name, String(value)]));
      return send(caller, method, query.size > 0 ? `${url}?${query.toString()}` : url);
    },
    async overGraphql(operation, members, caller) {
      const root = operation.kind === 'query' ? schema.getQueryType()! : schema.getMutationType()!;
      const field = root.getFields()[operation.name]!;
      const shape = shapeOf(operation.input, 'input');
      const renamed = new Map(Object.entries(shape).map(([member, one]) => [metaOf(one).graphql_name, member]));
      const memberOf = (name: string) => renamed.get(name) ?? snake(name);
      // Other objects are how GraphQL groups members.
      const isMember = (name: string) => memberOf(name) in shape;
      const value = (name: string, type: GraphQLInputType): unknown => {
        const inner = getNullableType(type);
        if (isEnumType(getNamedType(type))) return enumNames(example(operation, memberOf(name)));
        if (!isInputObjectType(inner) || isMember(name)) return example(operation, memberOf(name));
        const given = Object.values(inner.getFields()).filter((one) => members.includes(memberOf(one.name)));
        return Object.fromEntries(given.map((one) => [one.name, value(one.name, one.type)]));
      };
      const given = field.args.filter(
        ({ name, type }) =>
          (isInputObjectType(getNullableType(type)) && !isMember(name)) || members.includes(memberOf(name)),
      );
      const kind = operation.kind === 'query' ? 'query' : 'mutation';
      const declared = given.map(({ name, type }) => `$${name}: ${String(type)}`).join(', ');
      const passed = given.map(({ name }) => `${name}: $${name}`).join(', ');
      const query =
        `${kind}${declared === '' ? '' : `(${declared})`} ` +
        `{ ${operation.name}${passed === '' ? '' : `(${passed})`} ${selectionOf(field.type)} }`;
      const variables = Object.fromEntries(given.map(({ name, type }) => [name, value(name, type)]));
      return send(caller, 'POST', '/v1/gql', { query, variables });
    },
  };
}

/** GraphQL writes values of enums in capitals. */
const enumNames = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(enumNames);
  return typeof value === 'string' ? value.toUpperCase().replace(/[^A-Z0-9]/g, '_') : value;
};

function isOptional(schema: z.ZodType): boolean {
  const { optional, nullable } = unwrap(schema, 'input');
  return optional || nullable;
}

/** Every field of a type, to the leaves. */
function selectionOf(type: GraphQLOutputType): string {
  const inner = getNamedType(type);
  if (!isObjectType(inner)) return '';
  return `{ ${Object.values(inner.getFields())
    .map((field) => `${field.name} ${selectionOf(field.type)}`)
    .join(' ')} }`;
}
