import fc from 'fast-check';
import { z } from 'zod';
import { EVENT_TYPES, shapeOf } from '../../domain/events/event-catalogue';
import { INSTALLATION, type RecordEnvelope } from '../../domain/common/records';
import type { DraftRecord, Outcome } from '../../ingest/runtime/webhook/webhook';
import PAYLOADS from '../fixtures/payloads.json';
import {
  ACCOUNT,
  AT,
  door,
  FILES,
  NOW,
  paypalHeaders,
  read,
  readSpoken,
  SOCKETS,
  spoken,
  WEBHOOKS,
} from '../support/payloads';

const described = ({
  topic,
  type,
  external_id,
  subject,
  subjects = [],
}: DraftRecord | (RecordEnvelope & { topic: string })) =>
  [topic, type, external_id, subject ?? '-', ...subjects].join(' ');
const outcomeText = (outcome: Outcome): string[] =>
  outcome.kind === 'ok'
    ? outcome.records.map(described)
    : [outcome.kind === 'refuse' ? 'refuse' : `${outcome.kind} ${outcome.reason}`];

/** What becomes of a payload, in a line for each record. */
async function told(vendor: string, file: string): Promise<string[]> {
  const said = spoken(vendor, file);
  if (said !== null) {
    return said.flatMap(([text, channel_id]) => outcomeText(readSpoken(vendor, text, channel_id, 0)));
  }
  const webhook = WEBHOOKS[vendor]!;
  const body = read(vendor, file);
  const { kept, deliver } = door();
  const status = await deliver(`/v1/webhooks/${webhook.path}`, body, webhook.sign(body, file));
  if (kept.records.length > 0) return kept.records.map(described);
  return [`${status}${kept.parked.length > 0 ? ` ${kept.parked.join()}` : ''}`];
}

test('every payload becomes what the table says: topic, type, id, and whom it is about', async () => {
  const found: Record<string, string[]> = {};
  // Twitch's has a table of its own (test/ingest/twitch-normalise.test.ts).
  for (const [vendor, file] of FILES.filter(([one]) => one !== 'twitch'))
    found[`${vendor}/${file}`] = await told(vendor, file);
  expect(found).toEqual(PAYLOADS);
});

test('what is stored is of the shape that the catalogue shows', async () => {
  const shapes = new Map(
    EVENT_TYPES.map((one) => [one.type, z.fromJSONSchema(shapeOf(one) as Parameters<typeof z.fromJSONSchema>[0])]),
  );
  const wrong: string[] = [];
  const judge = (file: string, { topic, type, raw }: { topic: string; type: string; raw: string }) => {
    if (topic !== 'platform-events') return;
    const issue = shapes.get(type)?.safeParse(JSON.parse(raw)).error?.issues[0];
    if (!shapes.has(type)) wrong.push(`${file}: ${type} is not in the catalogue`);
    if (issue) wrong.push(`${file} (${type}): ${issue.path.join('.')} ${issue.message}`);
  };
  for (const [vendor, file] of FILES) {
    const said = spoken(vendor, file);
    for (const [text, channel_id] of said ?? []) {
      const outcome = readSpoken(vendor, text, channel_id, 0);
      if (outcome.kind === 'ok') for (const record of outcome.records) judge(file, record);
    }
    if (said !== null) continue;
    const { kept, deliver } = door();
    const body = read(vendor, file);
    await deliver(`/v1/webhooks/${WEBHOOKS[vendor]!.path}`, body, WEBHOOKS[vendor]!.sign(body, file));
    for (const record of kept.records) judge(file, record);
  }
  expect(wrong).toEqual([]);
});

describe('whatever bytes come', () => {
  const bodies = FILES.filter(([vendor]) => vendor in WEBHOOKS).map(([vendor, file]) => read(vendor, file));
  /** Nothing at all, noise, or a payload of some vendor that was cut, spliced or bent. */
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((some) => Buffer.from(some)),
    fc.json().map((text) => Buffer.from(text)),
    fc
      .tuple(fc.constantFrom(...bodies), fc.nat(), fc.nat(30), fc.uint8Array({ maxLength: 8 }))
      .map(([body, at, cut, put]) => {
        const from = at % body.length;
        return Buffer.concat([body.subarray(0, from), Buffer.from(put), body.subarray(from + cut)]);
      }),
  );
  const header = fc.oneof(
    fc.string({ maxLength: 60 }),
    fc.stringMatching(/^[a-z0-9=,.:/+ -]{0,60}$/),
    fc.constantFrom('', 't=1,v1=00', 'sha256=00', 'sha1=', AT, `t=${NOW / 1000},v1=${'0'.repeat(64)}`),
  );
  const NAMES = [
    ...['kick-event-signature', 'x-kick-signature', 'kick-event-message-id', 'kick-event-message-timestamp'],
    ...['kick-event-type', 'x-hub-signature', 'x-hub-signature-256', 'x-trovo-signature', 'stripe-signature'],
    ...['x-shopify-topic', 'x-shopify-shop-domain', 'x-shopify-hmac-sha256', 'x-shopify-event-id'],
    ...Object.keys(paypalHeaders('')),
  ];
  const headers = fc.dictionary(fc.constantFrom(...NAMES), header);
  const paths = Object.values(WEBHOOKS).map(({ path }) => `/v1/webhooks/${path}`);

  test('no webhook answers 5xx, and nothing is kept of what nobody signed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...paths), bytes, headers, async (path, body, given) => {
        const { kept, deliver } = door();
        expect([400, 401, 403]).toContain(await deliver(path, body, given));
        expect(kept).toEqual({ records: [], parked: [] });
      }),
      { numRuns: 400 },
    );
  });

  test('what is signed is answered 200, or 400 where the specification says so, and lands once or not at all', async () => {
    const landed = { stored: 0, parked: 0 };
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...Object.keys(WEBHOOKS)), bytes, async (vendor, body) => {
        const { path, sign } = WEBHOOKS[vendor]!;
        const { kept, deliver } = door();
        const status = await deliver(`/v1/webhooks/${path}`, body, sign(body, 'channel.followed.json'));
        landed.stored += Math.min(kept.records.length, 1);
        landed.parked += kept.parked.length;
        // Several events of one delivery are several things that happened.
        expect(new Set(kept.records.map(({ external_id }) => external_id)).size).toBe(kept.records.length);
        // PayPal signs JSON alone; YouTube's feed without a channel is 400.
        expect(vendor === 'paypal' ? [200, 401] : vendor === 'youtube' ? [200, 400] : [200]).toContain(status);
        expect(status === 200 || kept.records.length + kept.parked.length === 0).toBe(true);
        // Stored, or parked as one letter, and never both.
        expect(Math.min(kept.records.length, 1) + kept.parked.length).toBeLessThanOrEqual(1);
        for (const { account_id } of kept.records) expect([ACCOUNT, INSTALLATION]).toContain(account_id);
      }),
      { numRuns: 400 },
    );
    expect(landed.stored).toBeGreaterThan(0);
    expect(landed.parked).toBeGreaterThan(0);
  });

  test('no word of a socket makes its reader throw', () => {
    fc.assert(
      fc.property(fc.constantFrom(...SOCKETS), bytes, (vendor, some) => {
        const outcome = readSpoken(vendor, some.toString(), '1');
        expect(['ok', 'skip', 'park']).toContain(outcome.kind);
      }),
      { numRuns: 1_000 },
    );
  });
});
