import { createRequire } from 'node:module';
import { choose } from '../../access/authentication/resolve';
import type { Services } from '../../app/services';
import { SettingsSchema } from '../../kernel/settings/settings';
import { prepare } from '../../api/rest/invoke';
import { parseJsonBody } from '../../api/http/requests/json-body';
import { repeatedMember } from '../../api/http/requests/repeated-members';
import { linkWith, ownPath } from '../../api/rest/links';
import { originForm } from '../../api/http/requests/request-head';
import { OPERATIONS } from '../../bin/areas';
import { clientIp } from '../../api/http/requests/client-ip';
import { parseInstant } from '../../lib/time/instants';
import { createKickWebhook } from '../../ingest/kick/webhook';
import { createShopifyWebhook } from '../../ingest/shopify/webhook';
import { hmacMatches, prefixedSignature } from '../../ingest/runtime/webhook/signatures';
import { readTime } from '../../lib/time/vendor-times';
import { createTrovoWebhook } from '../../ingest/trovo/webhook';
import { toDelivery, type WebhookVendor } from '../../ingest/runtime/webhook/webhook';
import { createYoutubeWebhook } from '../../ingest/youtube/webhook';
import { parseClientMessage } from '../../realtime/runtime/channel/protocol';
import { counted, filled } from './growth';

type Shapes<T> = Readonly<Record<string, (bytes: number) => T>>;

/** A parser that strangers can feed, with inputs that some parser has been slow with, valid or not. */
export interface GrowthCase {
  parser: string;
  shape: string;
  make(bytes: number): unknown;
  run(input: unknown): unknown;
}

/** Fastify's own reader of query strings. */
const readQuery = createRequire(require.resolve('fastify'))('fast-querystring').parse as (text: string) => unknown;

const cases: GrowthCase[] = [];
function feed<T>(parser: string, run: (input: T) => unknown, shapes: Shapes<T>): void {
  for (const [shape, make] of Object.entries(shapes)) {
    cases.push({ parser, shape, make, run: (input) => run(input as T) });
  }
}

const JSON_SHAPES: Shapes<string> = {
  'empty texts': (n) => `["",${filled('"",', n)}""]`,
  quotes: (n) => filled('"', n),
  'quotes, one too few': (n) => `${filled('""', n)}"`,
  'a text without an end': (n) => `"${filled('x', n)}`,
  'texts, and a backslash at the end': (n) => `[${filled('"a",', n)}"\\n"]`,
  'a backslash first': (n) => `["\\n",${filled('"a",', n)}"a"]`,
  backslashes: (n) => `"${filled('\\\\', n)}"`,
  'backslashes, one too few': (n) => `"${filled('\\\\', n)}\\"`,
  'escapes in every text': (n) => `[${filled('"\\"",', n)}"a"]`,
  'escaped characters': (n) => `"${filled('\\u00e4', n)}"`,
  'surrogate pairs': (n) => `"${filled('\\ud83d\\ude00', n)}"`,
  'names like constructor': (n) => `[${filled('"constructor",', n)}1]`,
  'names like __proto__ with blanks': (n) => `[${filled(`"__proto__"${' '.repeat(50)},`, n)}1]`,
  'a name with blanks behind': (n) => `{"__proto_0_"${filled(' ', n)}:1}`,
  blanks: (n) => `${filled(' \n\t\r', n)}{}`,
  'one number': (n) => filled('1', n),
  'one fraction': (n) => `0.${filled('1', n)}`,
  numbers: (n) => `[${filled('1,', n)}1]`,
  signs: (n) => `[${filled('-', n)}]`,
  exponents: (n) => filled('1e', n),
  'open brackets': (n) => filled('[', n),
  brackets: (n) => `[${filled('[],', n)}[]]`,
  'closing brackets': (n) => filled(']', n),
  'empty objects': (n) => `[${filled('{},', n)}{}]`,
  'deep brackets': (n) => `[${filled(`${'['.repeat(50)}${']'.repeat(50)},`, n)}1]`,
  'one member again and again': (n) => `{${filled('"a":1,', n)}"a":1}`,
  members: (n) => `{${counted(n, (i) => `"a${i}":1`)}}`,
  'members by number': (n) => `{${counted(n, (i) => `"${i * 1_048_576}":1`)}}`,
  commas: (n) => `[${filled(',', n)}]`,
  colons: (n) => `{"a"${filled(':', n)}}`,
};

const bytesOf = (shapes: Shapes<string>): Shapes<Buffer> =>
  Object.fromEntries(Object.entries(shapes).map(([name, make]) => [name, (n: number) => Buffer.from(make(n))]));

feed('a JSON body', parseJsonBody, bytesOf(JSON_SHAPES));
feed(
  'a JSON body whose members are counted',
  (body) => {
    parseJsonBody(body);
    return repeatedMember(body.toString('utf8'), new Set(['client_id']));
  },
  bytesOf(JSON_SHAPES),
);

const reader = (name: string) =>
  prepare(
    OPERATIONS.find((one) => one.name === name)!,
    {} as Services,
  ).reader;
type Members = Record<string, unknown>;
const inBody = (name: string) => {
  const { merge, validate } = reader(name);
  return (body: Members) => validate(merge({}, body));
};

feed<Members>('the body of emitEvent', inBody('emitEvent'), {
  'a long type': (n) => ({ event_type: filled('a', n) }),
  'a type of colons': (n) => ({ event_type: filled('a:', n) }),
  'a type with a bad end': (n) => ({ event_type: `a:${filled('a', n)}!` }),
  'a long platform': (n) => ({ event_type: 'a:b', platform: filled('a', n) }),
  'a long time': (n) => ({ event_type: 'a:b', created_at: filled('1', n) }),
  'a time of blanks': (n) => ({ event_type: 'a:b', created_at: `1${filled(' ', n)}1` }),
  'many members in raw': (n) => ({ event_type: 'a:b', raw: JSON.parse(`{${counted(n, (i) => `"a${i}":1`)}}`) }),
  'members that nobody knows': (n) => JSON.parse(`{${counted(n, (i) => `"a${i}":1`)}}`),
});
feed<Members>('the body of createUserApiKey', inBody('createUserApiKey'), {
  'a label of blanks': (n) => ({ label: `${filled(' ', n)}x${filled(' ', n)}`, permissions: ['a'] }),
  permissions: (n) => ({ label: 'x', permissions: Array.from({ length: n / 4 }, () => 'a') }),
  'permissions that are no texts': (n) => ({ label: 'x', permissions: Array.from({ length: n / 2 }, () => 1) }),
  'long permissions': (n) => ({ label: 'x', permissions: Array.from({ length: 400 }, () => filled('a', n / 400)) }),
});
const events = reader('events');
feed<Members>('the query of events', (query) => events.validate(events.merge(query, {})), {
  commas: (n) => ({ types: filled(',', n) }),
  types: (n) => ({ types: filled('a:b,', n) }),
  'types one by one': (n) => ({ types: Array.from({ length: n / 8 }, () => 'a:b') }),
  'a long number': (n) => ({ page: filled('1', n) }),
  'a long fraction': (n) => ({ page: `1.${filled('1', n)}x` }),
  'a long search': (n) => ({ search: filled('%', n) }),
  'a long platform': (n) => ({ platform: filled('a,', n) }),
  'a long id': (n) => ({ user_id: filled('a', n) }),
  'a long date': (n) => ({ from: `2026-01-01T00:00:00.${filled('0', n)}` }),
});
feed('an instant', parseInstant, {
  digits: (n) => filled('1', n),
  blanks: (n) => `${filled(' ', n)}2026-01-01`,
  'blanks inside': (n) => `2026-01-01${filled(' ', n)}00:00:00`,
  dashes: (n) => filled('2026-01-01', n),
});

const settings = SettingsSchema.parse({
  webhooks: { trovo_secret: 'a', kick_secret: 'b', youtube_secret: 'c' },
}).webhooks;
const HEADERS = {
  'kick-event-type': 'channel.followed',
  'kick-event-message-id': '1',
  'x-shopify-topic': 'orders/create',
  'x-shopify-shop-domain': 'a.myshopify.com',
  'x-shopify-event-id': '1',
};
const DELIVERIES: Shapes<string> = {
  'long numbers': (n) => `[${filled('1234567890123456,', n)}1]`,
  'a long number': (n) => `{"id":${filled('1', n)}}`,
  'numbers in texts': (n) => `["${filled('1234567890123456', n)}"]`,
  'texts with long numbers beside': (n) => `{"n":12345678901234567,"t":"${filled('\\"', n)}"}`,
  NUL: (n) => `"${filled('\\u0000', n)}"`,
  'NUL bytes': (n) => filled('\0', n),
  'lone surrogates': (n) => `"${filled('\\ud800', n)}"`,
  'backslashes and u': (n) => `"${filled('\\\\u0000', n)}"`,
};
const deliveriesOf = (vendor: WebhookVendor, shapes: Shapes<string>) =>
  feed<Buffer>(
    `a delivery of ${vendor.vendor}`,
    (body) => vendor.normalise(toDelivery(HEADERS, body, 0)),
    bytesOf(shapes),
  );
deliveriesOf(createKickWebhook(settings), { ...JSON_SHAPES, ...DELIVERIES });
deliveriesOf(createTrovoWebhook(settings), DELIVERIES);
deliveriesOf(createShopifyWebhook(settings), DELIVERIES);

/** Atom: of all formats at the door the one whose parser is not ours. */
deliveriesOf(createYoutubeWebhook(settings), {
  'open tags': (n) => filled('<a>', n),
  'closing tags': (n) => filled('</a>', n),
  'an attribute without an end': (n) => `<feed a="${filled('x', n)}/>`,
  'less-than signs': (n) => `<feed>${filled('<', n)}`,
  ampersands: (n) => `<feed>${filled('&', n)}</feed>`,
  'open CDATA sections': (n) => `<feed>${filled('<![CDATA[', n)}</feed>`,
  'open comments': (n) => `<feed>${filled('<!--', n)}</feed>`,
});

const clientOf = clientIp(['10.0.0.0/8']);
feed<string>(
  'an X-Forwarded-For header',
  (text) => clientOf({ socket: { remoteAddress: '10.0.0.1' }, headers: { 'x-forwarded-for': text } } as never),
  {
    commas: (n) => filled(',', n),
    blanks: (n) => filled(' ', n),
    'addresses of proxies': (n) => filled('10.0.0.1, ', n),
    'a long address': (n) => filled('1', n),
  },
);
feed<string>(
  'an Authorization header',
  (authorization) => choose({ authorization, query_token: undefined, on_upgrade: false }),
  {
    blanks: (n) => `Bearer${filled(' ', n)}`,
    'blanks, and no token': (n) => `Bearer ${filled(' ', n)}\t`,
    'blanks behind the token': (n) => `Bearer a${filled(' ', n)}x`,
    'a long token': (n) => `Bearer lm_usr_${filled('a', n)}`,
    'a long token, and a second': (n) => `Bearer ${filled('a', n)} b`,
    'tokens one by one': (n) => `Bearer ${filled('a ', n)}`,
    schemes: (n) => filled('Bearer ', n),
    'a long JWT': (n) => `Bearer lm_eyJ${filled('a.', n)}`,
  },
);
feed('a client message of a socket', parseClientMessage, {
  quotes: JSON_SHAPES.quotes!,
  'empty texts': JSON_SHAPES['empty texts']!,
  backslashes: JSON_SHAPES.backslashes!,
  members: JSON_SHAPES.members!,
  'a long channel': (n) => `{"type":"subscribe","channel":"${filled('events:', n)}"}`,
  'a long since': (n) => `{"type":"subscribe","channel":"a","since":"${filled('1-', n)}"}`,
  'a long payload': (n) => `{"type":"broadcast","channel":"a","payload":"${filled('{', n)}"}`,
});
feed<string>(
  'a target of a request',
  (url) => [originForm({ url, headers: {} } as never), linkWith(ownPath(url), 'page')(2)],
  {
    slashes: (n) => filled('/', n),
    'a long host': (n) => `http://${filled('a', n)}`,
    ampersands: (n) => `/?${filled('&', n)}`,
    pairs: (n) => `/?${filled('a=1&', n)}`,
    tokens: (n) => `/?${filled('token=1&', n)}`,
    escapes: (n) => `/?${filled('%74oken=1&', n)}`,
    'question marks': (n) => filled('/?', n),
  },
);
feed<string>('a query string', (text) => readQuery(text), {
  ampersands: (n) => filled('&', n),
  'equals signs': (n) => filled('=', n),
  'one name again and again': (n) => filled('a=1&', n),
  'names of their own': (n) => counted(n, (i) => `a${i}=1`).replaceAll(',', '&'),
  escapes: (n) => filled('%41', n),
  'escapes without an end': (n) => filled('%', n),
  pluses: (n) => filled('a=+&', n),
});

const SIGNED = Buffer.from('{}');
feed<string>(
  'a signature header',
  (text) => [
    prefixedSignature(text),
    hmacMatches('sha256', 'hex', ['secret'], SIGNED, text),
    hmacMatches('sha256', 'base64', ['secret'], SIGNED, text),
  ],
  {
    hex: (n) => filled('a', n),
    'a prefix and hex': (n) => `sha256=${filled('a', n)}`,
    'a prefix and a bad end': (n) => `sha256=${filled('a', n)}!`,
    prefixes: (n) => filled('sha256=', n),
    blanks: (n) => `${filled(' ', n)}a${filled(' ', n)}`,
    base64: (n) => `${filled('A', n)}==`,
    'equals signs': (n) => filled('=', n),
  },
);
feed('a signed time', readTime, {
  digits: (n) => filled('1', n),
  blanks: (n) => `2026-01-01T00:00:00Z${filled(' ', n)}x`,
  dates: (n) => filled('2026-01-01T00:00:00Z', n),
});

export const GROWTH_CASES: readonly GrowthCase[] = cases;
