import fc from 'fast-check';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { displayPayload, MAX_DISPLAY_PAYLOAD } from '../../domain/events/display-payload';
import { eventData, type EventRow, sendableEventData } from '../../domain/events/events';

const CANARY = 'canary-7f3a';
const CONTACT_MEMBERS = [
  'email',
  'contact_email',
  'e-mail',
  'EMAIL_ADDRESS',
  'phone',
  'phoneNumber',
  'shipping_address',
  'billingAddress',
  'default_address',
  'addresses',
  'zip_code',
  'post_code',
  'browser_ip',
  'ip',
  'client_details',
  'order_status_url',
] as const;
const CONTACT_VALUES = [`${CANARY}@example.com`, ` a+${CANARY}@mail.example.org `, '+49 170 1234567'];
const NAMES = ['name', 'amount', 'id', 'items', 'ä "quoted"', 'message', 'tip', 'a\\b'];

/** A value with contact data, and the same without. */
interface Pair {
  dirty: unknown;
  clean: unknown;
}
const same = (value: unknown): Pair => ({ dirty: value, clean: value });
const { pair } = fc.letrec<{ pair: Pair }>((tie) => ({
  pair: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<unknown>('hello', 'a, "b" {c}', '', 'me@home says hi', '\u0001ß😀', null, true).map(same),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(same),
    fc.constantFrom(...CONTACT_VALUES).map((dirty) => ({ dirty, clean: null })),
    fc.array(tie('pair'), { maxLength: 4 }).map((pairs) => ({
      dirty: pairs.map(({ dirty }) => dirty),
      clean: pairs.map(({ clean }) => clean),
    })),
    fc
      .tuple(
        fc.dictionary(fc.constantFrom(...NAMES), tie('pair'), { maxKeys: 4 }),
        fc.dictionary(fc.constantFrom(...CONTACT_MEMBERS), tie('pair'), { maxKeys: 3 }),
      )
      .map(([shown, hidden]) => ({
        dirty: {
          ...Object.fromEntries(Object.entries(shown).map(([name, { dirty }]) => [name, dirty])),
          ...Object.fromEntries(Object.entries(hidden).map(([name, { dirty }]) => [name, [CANARY, dirty]])),
        },
        clean: Object.fromEntries(Object.entries(shown).map(([name, { clean }]) => [name, clean])),
      })),
  ),
}));

/** All but ASCII letters and digits as escapes, which JSON allows anywhere in a text. */
const escaped = (json: string): string =>
  json.replace(/"(?:[^"\\]|\\.)*"/g, (text) => `"${[...(JSON.parse(text) as string)].map(escapedCharacter).join('')}"`);
const escapedCharacter = (character: string): string =>
  character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');

test('contact data is left out wherever it stands, and everything else stays', () => {
  const spellings: ((value: unknown) => string)[] = [
    (value) => JSON.stringify(value),
    (value) => JSON.stringify(value, null, '\t'),
    (value) => escaped(JSON.stringify(value)),
  ];
  fc.assert(
    fc.property(pair, fc.constantFrom(...spellings), ({ dirty, clean }, spelled) => {
      const shown = displayPayload(spelled(dirty))!;
      expect(shown).not.toContain(CANARY);
      expect(JSON.parse(shown)).toEqual(JSON.parse(JSON.stringify(clean)));
    }),
    { numRuns: 1_000 },
  );
});

test('a payload without contact data keeps its bytes; digits stay beside contact data, too', () => {
  const plain = '{ "id" : 820982911946154508 , "user_name":"Äda","n":1.0e2 }';
  expect(displayPayload(plain)).toBe(plain);
  expect(displayPayload('{"id":820982911946154508,"email":"a@b.example","n":1.0e2,"list":[ ]}')).toBe(
    '{"id":820982911946154508,"n":1.0e2,"list":[]}',
  );
  expect(displayPayload('"[erased]"')).toBe('"[erased]"');
});

test.each(
  ['payer-info', 'Payer Info', 'tax.id', 'post_code', 'note-attributes', 'landing page', 'ip_', 'client_details'].map(
    (name) => [name, name !== 'landing page'],
  ),
)('a member named %j is contact data: %p', (name, contact) => {
  const payload = JSON.stringify({ [String(name)]: 'x', n: 1 });
  expect(displayPayload(payload)).toBe(contact ? '{"n":1}' : payload);
});

test('a phone number after white space is contact data', () =>
  expect(displayPayload(JSON.stringify({ n: '\t +49 30 1234567' }))).toBe('{"n":null}'));

const folder = join(__dirname, '../fixtures');
const fixtures = ['shopify', 'paypal', 'stripe', 'stripe-connect', 'streamelements'].flatMap((vendor) =>
  readdirSync(join(folder, vendor))
    .filter((file) => file.endsWith('.json'))
    .map((file) => [`${vendor}/${file}`]),
);
test.each(fixtures)('of %s no address, number or mail is shown', (file) => {
  const shown = displayPayload(JSON.stringify(JSON.parse(readFileSync(join(folder, file), 'utf8'))));
  for (const text of textsIn(JSON.parse(shown ?? 'null'))) {
    expect(text).not.toMatch(/^[^\s@]+@[^\s@]+\.[a-z]+$/i);
    expect(text).not.toMatch(/^\+\d{7,}$/);
  }
  expect(shown ?? '').not.toMatch(/"(?:[a-z_]*(?:email|phone|address)[a-z_0-9]*|zip|browser_ip|client_details)"\s*:/i);
});

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

test('a payload that is too long or too deep is left out', () => {
  const long = (bytes: number) => JSON.stringify('ä'.repeat((bytes - 2) / 2));
  expect(displayPayload(long(MAX_DISPLAY_PAYLOAD))).toHaveLength(MAX_DISPLAY_PAYLOAD / 2 + 1);
  expect(displayPayload(long(MAX_DISPLAY_PAYLOAD + 2))).toBeNull();
  expect(displayPayload(`{"email":${'['.repeat(5_000)}${']'.repeat(5_000)}}`)).toBeNull();
  // Members that are left out do not count towards the limit.
  expect(displayPayload(`{"email":${long(100_000)},"n":1}`)).toBe('{"n":1}');
});

describe('a message of the events channel', () => {
  const row: EventRow = {
    id: '01900000-0000-7000-8000-000000000001',
    account_id: '01900000-0000-7000-8000-000000000002',
    type: 'shopify:order',
    platform: 'shopify',
    external_id: 'x"1',
    raw: '{"id":1,"email":"ada@example.com","total_price":"5.00","shipping_address":{"city":"Ulm"}}',
    created_at: '2026-01-01T00:00:00Z',
  };
  const { raw: _raw, ...record } = row;
  const shown = { ...record, payload: { id: 1, total_price: '5.00' } };

  test('shows the record and its payload once, without raw', () => {
    expect(JSON.parse(eventData(row))).toEqual(shown);
    expect(sendableEventData(eventData(row))).toBe(eventData(row));
  });

  test('of the previous release is shown likewise; others stay as they are', () => {
    const before = { ...record, raw: JSON.parse(row.raw) as unknown, payload: JSON.parse(row.raw) as unknown };
    expect(JSON.parse(sendableEventData(JSON.stringify(before)))).toEqual(shown);
    expect(sendableEventData('{"n":1}')).toBe('{"n":1}');
  });
});
