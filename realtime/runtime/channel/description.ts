import { z } from 'zod';
import type { Gate } from '../../../kernel/channel';
import { type CLOSE, LIMITS } from './limits';
import type { ClientMessage, SocketErrorCode } from './protocol';

/** Description of the socket's protocol for people and documents. Source: spec doc3 §4.1. */

interface Described {
  summary: string;
  schema: z.ZodType;
}

const channel = z.string().max(200).describe('Name of a channel, such as `events:<account_id>`');
const id = z.string().describe("Names a place on the channel; opaque, and of this channel's alone");

/** Messages of clients. Unknown members are ignored. */
export const CLIENT_MESSAGES: Readonly<Record<ClientMessage['type'], Described>> = {
  subscribe: {
    summary:
      'Listens to a channel; answered by `subscribed` or `error`. A repeated one is answered again and opens no ' +
      'second stream.',
    schema: z.object({
      type: z.literal('subscribe'),
      channel,
      since: id.nullish().describe('The last `id` seen on the channel: what came since is sent first'),
    }),
  },
  unsubscribe: {
    summary: 'Ends it at once; answered by `unsubscribed`.',
    schema: z.object({ type: z.literal('unsubscribe'), channel }),
  },
  broadcast: {
    summary: 'Sends to everybody on a writable channel; not stored, and not answered unless refused.',
    schema: z.object({ type: z.literal('broadcast'), channel, payload: z.string().describe('JSON text') }),
  },
  ping: {
    summary: 'Says that the client is there; answered by `pong`.',
    schema: z.object({ type: z.literal('ping') }),
  },
};

/** Messages of the server besides those of channels. */
export const SERVER_MESSAGES: Readonly<
  Record<'welcome' | 'subscribed' | 'unsubscribed' | 'pong' | 'error', Described>
> = {
  welcome: {
    summary: 'Once, when the connection is open; clients subscribe only after it.',
    schema: z.object({ type: z.literal('welcome'), session_id: z.uuid(), server_version: z.string() }),
  },
  subscribed: {
    summary: 'The channel is on. `id` is where it stands for this client: what follows comes after it.',
    schema: z.object({
      type: z.literal('subscribed'),
      channel,
      id,
      recovered: z
        .boolean()
        .optional()
        .describe('In answer to `since`: whether all that was missed follows. False: some is lost, fetch it anew'),
    }),
  },
  unsubscribed: {
    summary: 'The channel is off.',
    schema: z.object({ type: z.literal('unsubscribed'), channel }),
  },
  pong: { summary: 'The answer to `ping`.', schema: z.object({ type: z.literal('pong') }) },
  error: {
    summary: 'Something was refused or has ended; `channel` says on which channel, where it is about one.',
    schema: z.object({
      type: z.literal('error'),
      message: z.string(),
      code: z.string(),
      channel: channel.optional(),
    }),
  },
};

/** Meaning of each error code. */
export const ERROR_MEANINGS: Readonly<Record<SocketErrorCode, string>> = {
  UNAUTHORIZED:
    'The caller may not read the channel, or not broadcast to it, or there is no such channel. Also when a right that ' +
    'it was opened with is gone.',
  FEATURE_DISABLED: 'The caller may, but the feature of the channel is off.',
  TOKEN_REVOKED: 'The credential was revoked, or acts on another account. The connection is closed.',
  TOKEN_EXPIRED: 'The credential has ended. The connection is closed.',
  SUBSCRIBE_FAILED:
    'The server could not register the subscription or give it its beginning, or the connection has too many.',
  CHANNEL_DROPPED: 'The client fell behind on this channel and is off it; the others go on. Subscribe again.',
  INVALID_FORMAT:
    `Not JSON, nested deeper than ${LIMITS.message_bounds.depth} levels, more than ${LIMITS.message_bounds.members} ` +
    'members, not a known message, or a payload that is not JSON text.',
  MESSAGE_TOO_LARGE: 'The message is larger than a message may be, or would be as it is broadcast.',
};

/** Meaning of each close code of Lumio. */
export const CLOSE_MEANINGS: Readonly<Record<keyof typeof CLOSE, string>> = {
  token: 'The credential has ended; the reason is `TOKEN_EXPIRED` or `TOKEN_REVOKED`.',
  silence: 'Nothing came of the client for too long.',
  stalled: 'The client did not read for too long.',
  restart: 'The node is stopping: connect again, another one takes over.',
  too_large: 'A frame far beyond the limit, which was not even read.',
  refused:
    `${LIMITS.refused_in_a_row} messages in a row were refused for their form or size, or after a refused one the ` +
    'caller had no units left.',
};

/** Rule of a gate in words. */
export function gateText(gate: Gate): string {
  switch (gate.kind) {
    case 'public':
      return 'everybody';
    case 'public_when_feature':
      return `everybody while \`${gate.flag}\` is on`;
    case 'authenticated':
      return 'whoever presents a credential';
    case 'permission':
      return `\`${gate.permission}\`${gate.bound === undefined ? '' : `, or the ${gate.bound} token bound to it`}`;
    case 'account_scoped':
      return 'any credential of the account, but for tokens of pages';
    case 'account_and_pages':
      return 'any credential of the account, tokens of pages included';
    case 'user_permission':
      return `the user permission \`${gate.permission}\``;
    case 'own_user':
      return 'the user themselves';
    case 'bound_token':
      return `${gate.callers.join(' or ').replaceAll('_', ' ')} token bound to it`;
    case 'extension_owner':
      return 'who owns the extension';
  }
}
