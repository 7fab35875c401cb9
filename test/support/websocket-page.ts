import { z } from 'zod';
import type { Family } from '../../realtime/runtime/channel/family';
import {
  CLIENT_MESSAGES,
  CLOSE_MEANINGS,
  ERROR_MEANINGS,
  gateText,
  SERVER_MESSAGES,
} from '../../realtime/runtime/channel/description';
import { CLOSE, LIMITS } from '../../realtime/runtime/channel/limits';
import { ERROR_TEXTS } from '../../realtime/runtime/channel/protocol';
import { typeOf } from './json-schema-types';

/** Costs of the messages of a client. */
const MESSAGES_OF_A_CLIENT =
  `${LIMITS.client_messages_per_second} a second; each also costs a unit of the caller's requests a minute, one that ` +
  `is refused as \`INVALID_FORMAT\` or \`MESSAGE_TOO_LARGE\` ${LIMITS.refused_units}, a bare \`ping\` each ` +
  `${LIMITS.free_ping_ms / 1000} s none. Beyond, the socket is read more slowly. ${LIMITS.refused_in_a_row} refused ` +
  'ones in a row close it, and so does a wait of more than a second for units after a refused one';

type Json = Record<string, unknown>;

const row = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
const table = (heads: readonly string[], rows: readonly string[]): string =>
  [row(...heads), `|${' --- |'.repeat(heads.length)}`, ...rows].join('\n');
const code = (text: string): string => `\`${text}\``;
const seconds = (ms: number): string => `${ms / 1000} s`;

/** docs/websocket.md, from what the protocol and the families of channels declare. */
export function websocketPage(families: readonly Family[]): string {
  const sorted = [...families].sort((a, b) => (a.pattern < b.pattern ? -1 : 1));
  return [HEAD, MESSAGES(), CHANNELS(sorted), ENVELOPES(sorted), RESUME, ERRORS(), LIMITS_TEXT, EXAMPLES].join('\n\n');
}

const HEAD = `# The WebSocket

<!-- Made by npm run documents from realtime/ and test/support/websocket-page.ts. -->

One connection to \`GET /v1/ws\`, JSON text both ways, many channels over it. Of [the client](../clients/js/README.md) you
need not read this page: it keeps to all of it. A running server describes the same to programs at
\`GET /v1/asyncapi.json\`. Types of events and their payloads: [events](events.md).

## Coming in

A credential goes into \`Authorization\`, or, for those that [say so](access.md#ten-ways-of-being-somebody), into
\`?token=\`; keys go into the header alone. Browsers use [a ws token](access.md#websocket), minted anew for each attempt,
since proxies write query strings down. Without a credential you are nobody, who reaches public channels. What is
refused is refused before the switch of protocols, by HTTP with \`{error, message}\`: 401 for a credential that fails
(\`TOKEN_EXPIRED\`, \`UNAUTHORIZED\`), 403 for a page of another origin (\`LUMIO_ALLOWED_ORIGINS\`; a listed \`null\` or
\`file://\` needs the token in the query), 429 with \`Retry-After\` for too many sockets.

A socket ends with the credential that opened it, within ${seconds(LIMITS.heartbeat_ms)} on every node. permessage-deflate is
refused: it would cost a compression per connection instead of one frame for all.`;

const MESSAGES = (): string => `## Messages

Of the client; members that are not listed are passed over:

${table(['type', 'members', ''], described(CLIENT_MESSAGES))}

Of the server, beside [the messages of channels](#what-channels-carry):

${table(['type', 'members', ''], described(SERVER_MESSAGES))}`;

function described(messages: Readonly<Record<string, { summary: string; schema: z.ZodType }>>): string[] {
  return Object.entries(messages).map(([type, { summary, schema }]) => {
    const { properties, required = [] } = z.toJSONSchema(schema) as {
      properties: Record<string, Json>;
      required?: string[];
    };
    const members = Object.keys(properties)
      .filter((name) => name !== 'type')
      .map((name) => code(required.includes(name) ? name : `${name}?`));
    return row(code(type), members.join(', '), summary);
  });
}

const CHANNELS = (families: readonly Family[]): string => `## Channels

A name that no row has is refused like one that you may not read. Rights are those on the account whose the channel is;
the feature is that account's, or the installation's.

${table(
  ['channel', 'what', 'who may subscribe', 'feature', 'to broadcast'],
  families.map(({ pattern, summary, gate, flag, writable }) =>
    row(code(pattern), summary, gateText(gate), flag === null ? '' : code(flag), writable ? code(writable) : ''),
  ),
)}

A right that goes while you listen ends the channel with an \`error\`; the credential is looked at again every
${seconds(LIMITS.revalidate_ms)}, and at once when it is revoked or its account changes.`;

const ENVELOPES = (families: readonly Family[]): string => {
  const named = new Map<string, Json>();
  const rows = families.flatMap(({ pattern, carries, message_type = 'event' }) =>
    Object.entries(carries).map(([event_type, { summary, data }]) =>
      row(
        code(pattern),
        code(message_type),
        event_type === '*' ? 'any' : code(event_type),
        dataText(data, named),
        summary,
      ),
    ),
  );
  const shapes = [...named].sort(([a], [b]) => (a < b ? -1 : 1));
  return `## What channels carry

Every message is \`{type, channel, event_type, data, id?}\`. What is stored has an \`id\` and the \`type\` below; what is not
(test events, broadcasts, presence) has the \`type\` \`event\` and no \`id\`. A client's broadcast comes as
\`{type: "event", channel, event_type, data: <payload>}\`, \`event_type\` being the payload's \`type\`, or \`broadcast\`.

${table(['channel', 'type', '`event_type`', '`data`', ''], rows)}

On \`chat:\` \`data.type\` tells the kinds apart, too: a message of the chat has none. On \`events:\` \`data\` is the event's
record with \`payload\`, which is its \`raw\` without contact data such as e-mail addresses, phone numbers and postal
addresses; null where it is longer than 48 KiB. \`raw\` is read over REST and GraphQL. Members beyond these may be
there, and may come: pass over what you do not know.

\`\`\`ts
${shapes.map(([name, schema]) => `type ${name} = ${typeOf(schema)};`).join('\n\n')}
\`\`\``;
};

function dataText(data: z.ZodType, named: Map<string, Json>): string {
  const { $schema: _dialect, $defs, ...root } = z.toJSONSchema(data, { io: 'output', unrepresentable: 'any' }) as Json;
  for (const [name, schema] of Object.entries(($defs ?? {}) as Record<string, Json>)) named.set(name, schema);
  if (typeof root.id === 'string') named.set(root.id, root);
  const shown = typeof root.id === 'string' ? root.id : typeOf(root).replaceAll(/\s+/g, ' ').replace('; }', ' }');
  return shown === 'Record<string, unknown>' ? 'an object' : code(shown);
}

const RESUME = `## Coming back

Ids are opaque, and belong to one channel. Who comes back subscribes with \`since\`, the last id seen there: \`subscribed\`
answers \`recovered: true\` and exactly what was missed follows, in order, before what is new. On the
channel of an overlay or a widget each missed message has \`missed: true\`. \`recovered: false\` means
that the server does not know all of it any more (more than \`LUMIO_REALTIME__RESUME_WINDOW\`, 10 minutes, or a database
that was restored): fetch what you show anew; what is new follows all the same. \`subscribed\` without \`since\` tells in
\`id\` where the channel stands, so that even who saw nothing yet has a place to come back to.

What a client does, and [ours](../clients/js/README.md) does:

- a fresh token for each attempt, and subscriptions only after \`welcome\`;
- after \`UNAUTHORIZED\`, \`FORBIDDEN\`, \`TOKEN_EXPIRED\` or \`TOKEN_REVOKED\` it reconnects once with a fresh token, and stops
  at the second in a row; it stops on \`FEATURE_DISABLED\`;
- on \`CHANNEL_DROPPED\` it subscribes to that channel again, with \`since\`;
- waits grow from 1 s to 30 s, with jitter, and begin anew only after a connection that was stable.`;

const ERRORS = (): string => {
  const closes = Object.entries(CLOSE) as [keyof typeof CLOSE, number][];
  return `## Errors and closes

\`{type: "error", message, code, channel?}\`; texts may change, codes do not.

${table(
  ['code', 'message', 'means'],
  (Object.keys(ERROR_MEANINGS) as (keyof typeof ERROR_MEANINGS)[]).map((name) =>
    row(code(name), ERROR_TEXTS[name], ERROR_MEANINGS[name]),
  ),
)}

${table(
  ['close code', 'means'],
  closes.sort(([, a], [, b]) => a - b).map(([name, number]) => row(String(number), CLOSE_MEANINGS[name])),
)}

1002, 1007 and 1009 also close what breaks RFC 6455 or sends text that is no UTF-8.`;
};

const LIMITS_TEXT = `## Limits

| | |
| --- | --- |
| a message of a client | ${LIMITS.frame_bytes / 1024} KiB; larger is answered \`MESSAGE_TOO_LARGE\`, beyond ${LIMITS.payload_bytes / 1024} KiB it is not even read and the connection closed |
| silence | ${seconds(LIMITS.silence_ms)}, then 4408. The server sends no Ping: send \`ping\`, or a Ping frame, which is answered by Pong. While messages of a client wait unread, it gets Pongs that it did not ask for |
| a client that does not read | ${LIMITS.queue_messages} messages or ${LIMITS.queue_bytes / 1024 / 1024} MiB wait for it. A burst is sent on from the history; a channel that stays behind is dropped with \`CHANNEL_DROPPED\`, a socket that takes nothing for ${seconds(LIMITS.stall_ms)} is closed with 4413 |
| channels of a connection | ${LIMITS.subscriptions} |
| a channel's name | ${LIMITS.channel_name} characters |
| messages of a client | ${MESSAGES_OF_A_CLIENT} |
| sockets | 100 a caller (system keys: no limit), 20 an address for nobodies (IPv6 by /64); beyond 429 before the switch |`;

const EXAMPLES = `## The same by hand

Without the client, in Node with the package \`ws\` (browsers and Node 22 have their own \`WebSocket\`). It watches, is cut
off, misses an event, and comes back:

\`\`\`js
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { WebSocket } from 'ws';

const { base_url, ws_url, account_id, access_token } = JSON.parse(readFileSync('.lumio/dev-credentials.json', 'utf8'));
const channel = \`events:\${account_id}\`;

const post = async (path, body) => {
  const answer = await fetch(base_url + path, {
    method: 'POST',
    headers: { authorization: \`Bearer \${access_token}\`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return answer.json();
};

async function connect() {
  const { data } = await post('/v1/auth/ws-token', {});
  const socket = new WebSocket(\`\${ws_url}?token=\${data.ws_token}\`);
  const seen = [];
  socket.on('message', (text) => seen.push(JSON.parse(text)));
  const next = async (type) => {
    while (!seen.some((message) => message.type === type)) await once(socket, 'message');
    return seen.splice(seen.findIndex((message) => message.type === type), 1)[0];
  };
  await next('welcome');
  return { socket, next, send: (message) => socket.send(JSON.stringify(message)) };
}

const first = await connect();
first.send({ type: 'subscribe', channel });
await first.next('subscribed');
await post('/v1/events/emit', { event_type: 'kick:follower' });
const { id, event_type } = await first.next('event');
console.log('saw', event_type);
first.socket.terminate();

await post('/v1/events/emit', { event_type: 'twitch:raid' });

const second = await connect();
second.send({ type: 'subscribe', channel, since: id });
const { recovered } = await second.next('subscribed');
const missed = await second.next('event');
console.log('recovered', recovered, missed.event_type);
second.send({ type: 'ping' });
console.log((await second.next('pong')).type);
second.socket.close();
\`\`\`

\`\`\`text
saw kick:follower
recovered true twitch:raid
pong
\`\`\`
`;
