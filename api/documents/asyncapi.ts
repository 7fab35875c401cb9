import { z } from 'zod';
import { channelForm } from '../../kernel/channel';
import { CLIENT_MESSAGES, ERROR_MEANINGS, gateText, SERVER_MESSAGES } from '../../realtime/runtime/channel/description';
import type { Family } from '../../realtime/runtime/channel/family';

type Json = Record<string, unknown>;

/** Version of the standard that the document is written in. */
const ASYNCAPI = '3.1.0';
const CONNECTION = 'connection';
/** Key of a family's messages other than the named ones. */
const ANY = '*';

/**
 * The AsyncAPI document of the WebSocket: the connection with its messages, and each family of channels. Source: spec
 * doc3 §4.1.
 */
export function asyncApiDocument(
  families: readonly Family[],
  { version, public_url }: { version: string; public_url: string | undefined },
): Json {
  const schemas: Record<string, Json> = {};
  const channels: Record<string, Json> = { [CONNECTION]: connection(schemas) };
  const operations: Record<string, Json> = {
    fromClients: { ...operation('receive', CONNECTION, Object.keys(CLIENT_MESSAGES)), summary: 'What clients send.' },
    toClients: {
      ...operation('send', CONNECTION, Object.keys(SERVER_MESSAGES)),
      summary: 'What the server says of the connection and of its channels.',
    },
  };
  for (const family of families) {
    const name = nameOf(family.pattern);
    channels[name] = channelOf(family, schemas);
    const messages = Object.keys(family.carries).map(messageName);
    operations[`push_${name}`] = { ...operation('send', name, messages), summary: family.summary };
  }
  return {
    asyncapi: ASYNCAPI,
    info: {
      title: 'Lumio',
      version,
      description:
        'One WebSocket, JSON text both ways. A client waits for `welcome`, subscribes to channels, and is sent what ' +
        'happens on them; each message names its channel.',
    },
    defaultContentType: 'application/json',
    servers: { websocket: serverOf(public_url) },
    channels,
    operations,
    components: {
      schemas,
      securitySchemes: {
        query: {
          type: 'httpApiKey',
          in: 'query',
          name: 'token',
          description: 'A ws token, a popout token or a token of an overlay, widget or install.',
        },
        bearer: { type: 'http', scheme: 'bearer', description: 'Any credential; keys go here alone.' },
      },
    },
  };
}

function serverOf(public_url: string | undefined): Json {
  const url = new URL(public_url ?? 'http://127.0.0.1:7070');
  return {
    host: url.host,
    pathname: `${url.pathname.replace(/\/+$/, '')}/v1/ws`,
    protocol: url.protocol === 'https:' ? 'wss' : 'ws',
    description: 'Without a credential the caller is nobody, who reaches public channels.',
    security: [{ $ref: '#/components/securitySchemes/query' }, { $ref: '#/components/securitySchemes/bearer' }],
  };
}

/** `events` for `events:<account_id>`, `ideas_list` for `ideas:list`: names in the document allow no other signs. */
const nameOf = (pattern: string): string => pattern.replaceAll(/:?<\w+>/g, '').replaceAll(/[^a-z]/g, '_');
const messageName = (event_type: string): string =>
  event_type === ANY ? 'other' : event_type.replaceAll(/[^a-z]/g, '_');

const operation = (action: 'send' | 'receive', channel: string, messages: readonly string[]): Json => ({
  action,
  channel: { $ref: `#/channels/${channel}` },
  messages: messages.map((name) => ({ $ref: `#/channels/${channel}/messages/${name}` })),
});

function connection(schemas: Record<string, Json>): Json {
  const messages = Object.entries({ ...CLIENT_MESSAGES, ...SERVER_MESSAGES }).map(([name, { summary, schema }]) => {
    const payload = schemaOf(schema, schemas);
    if (name === 'error') {
      const { properties } = payload as { properties: Json };
      properties.code = { enum: Object.keys(ERROR_MEANINGS) };
    }
    return [name, { name, summary, payload }];
  });
  return {
    address: '/v1/ws',
    title: 'The connection',
    messages: Object.fromEntries(messages),
    bindings: { ws: { method: 'GET', query: { type: 'object', properties: { token: { type: 'string' } } } } },
  };
}

function channelOf(family: Family, schemas: Record<string, Json>): Json {
  const { pattern, summary, carries, gate, flag, writable, message_type } = family;
  const parameters = [...pattern.matchAll(/<(\w+)>/g)].map(([, name]) => [
    name,
    { description: formText(family, name!) },
  ]);
  const messages = Object.entries(carries).map(([event_type, message]) => {
    const payload = {
      type: 'object',
      properties: {
        // Messages that are not stored have the plain type.
        type: { enum: [...new Set([message_type ?? 'event', 'event'])] },
        channel: { type: 'string' },
        event_type: event_type === ANY ? { type: 'string' } : { const: event_type },
        data: schemaOf(message.data, schemas),
        id: { type: 'string', description: 'Names its place on the channel; absent where it is not stored' },
      },
      required: ['type', 'channel', 'event_type', 'data'],
    };
    return [messageName(event_type), { name: event_type, summary: message.summary, payload }];
  });
  return {
    address: pattern.replaceAll(/<(\w+)>/g, '{$1}'),
    summary,
    description: `Who may subscribe: ${gateText(gate)}.`,
    ...(parameters.length > 0 && { parameters: Object.fromEntries(parameters) }),
    messages: Object.fromEntries(messages),
    'x-gate': gate,
    ...(flag !== null && { 'x-feature': flag }),
    ...(writable !== undefined && { 'x-broadcast-permission': writable }),
  };
}

function formText(family: Family, name: string): string {
  if (name === 'account_id') return 'UUID of the account whose the channel is';
  const form = family.ids?.[name];
  return form ? `In the form ${form.source}` : `In the form ${channelForm(family).id.source}`;
}

/** JSON Schema of a zod schema; its named parts go to the components. */
function schemaOf(schema: z.ZodType, schemas: Record<string, Json>): Json {
  const {
    $schema: _dialect,
    $defs,
    ...root
  } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' }) as Json;
  for (const [name, definition] of Object.entries(($defs ?? {}) as Record<string, Json>))
    schemas[name] = linked(definition);
  if (typeof root.id !== 'string') return linked(root);
  schemas[root.id] = linked(root);
  return { $ref: `#/components/schemas/${root.id}` };
}

/** The schema without its id, which is its key in the components, and with references to the components. */
function linked({ id: _name, ...schema }: Json): Json {
  return JSON.parse(JSON.stringify(schema).replaceAll('#/$defs/', '#/components/schemas/')) as Json;
}
