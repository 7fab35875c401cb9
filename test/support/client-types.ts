import { z } from 'zod';
import type { CarriedMessage } from '../../kernel/channel';
import type { Family } from '../../realtime/runtime/channel/family';
import { EVENT_TYPES, shapeOf } from '../../domain/events/event-catalogue';
import { typeOf } from './json-schema-types';

type Json = Record<string, unknown>;

/** `clients/js/channels.ts`: the channels and messages that the families declare, as types. */
export function clientTypes(families: readonly Family[], error_codes: readonly string[]): string {
  const named = new Map<string, Json>();
  // The fixed names before the patterns that would cover them.
  const sorted = [...families].sort(
    (a, b) => compare(a.pattern.includes('<'), b.pattern.includes('<')) || compare(a.pattern, b.pattern),
  );
  const channels = sorted.map((family) => channelMember(family, named));
  const writable = families.filter((family) => family.writable !== undefined).map(({ pattern }) => template(pattern));
  const shapes = [...named]
    .sort(([a], [b]) => compare(a, b))
    .map(([name, schema]) => `export type ${name} = ${typeOf(schema)};\n`);
  return `${HEAD}
/** Codes of errors that the server answers. */
export type ErrorCode =${alternatives(
    [...error_codes].sort().map((code) => `'${code}'`),
    '',
  )}

${shapes.join('\n')}
${eventPayloads()}
/** The messages of each channel, by its name. */
export interface Channels {
${channels.join('\n')}
}

export type ChannelName = keyof Channels & string;

/** What a channel of this name delivers. */
export type MessageOf<Name extends ChannelName> = Channels[Name];

/** Channels that clients may broadcast to, given the permission. */
export type WritableChannel =${alternatives(writable.sort(), '')}
`;
}

const HEAD = `// Made by \`npm run documents\` of the channels that realtime/ declares; not edited by hand.

/** A message of a channel. */
export interface Message<Type extends string, EventType extends string, Data> {
  type: Type;
  channel: string;
  event_type: EventType;
  data: Data;
  /** Names its place on the channel; absent where the message is not stored. */
  id?: string;
}
`;

const compare = <T>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);

/** \`events:\${string}\` of `events:<account_id>`. */
const template = (pattern: string): string =>
  pattern.includes('<') ? `\`${pattern.replaceAll(/<[a-z_]+>/g, '${string}')}\`` : `'${pattern}'`;

function channelMember(family: Family, named: Map<string, Json>): string {
  const { pattern, summary, carries, message_type } = family;
  // What is not stored, broadcasts among it, always has the type `event`.
  const type = message_type === undefined ? "'event'" : `'${message_type}' | 'event'`;
  const messages = Object.entries(carries).map(([event_type, message]) => {
    const shown = event_type === '*' ? 'string' : `'${event_type}'`;
    return `Message<${type}, ${shown}, ${dataType(message, named)}>`;
  });
  const name = template(pattern);
  return `  /** ${summary} */\n  ${name.startsWith('`') ? `[channel: ${name}]` : name}:${alternatives(messages, '  ')}`;
}

function dataType({ data }: CarriedMessage, named: Map<string, Json>): string {
  const { $schema: _dialect, $defs, ...root } = z.toJSONSchema(data, { io: 'output', unrepresentable: 'any' }) as Json;
  for (const [name, schema] of Object.entries(($defs ?? {}) as Record<string, Json>)) named.set(name, schema);
  if (typeof root.id !== 'string') return typeOf(root, 1);
  named.set(root.id, root);
  return root.id;
}

const alternatives = (types: readonly string[], indent: string): string =>
  types.length === 1 ? ` ${types[0]};` : `\n${types.map((type) => `${indent}  | ${type}`).join('\n')};`;

/** Payloads by the type of the event; those that go over `chat:` are typed there. */
function eventPayloads(): string {
  const members = EVENT_TYPES.filter(({ delivered }) => delivered !== 'chat').map(
    (one) => `  /** ${one.summary} */\n  '${one.type}': ${typeOf(shapeOf(one) as Json, 1)};`,
  );
  return `/**
 * \`payload\` of the events that the server knows. Vendors add members; of a person who was erased it is the text
 * \`[erased]\`.
 */
export interface EventPayloads {
${members.join('\n')}
}

export type EventType = keyof EventPayloads;
`;
}
