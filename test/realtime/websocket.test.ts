import { CHANNEL_FAMILIES } from '../conformance/channels';
import { GATE_KINDS } from '../conformance/gates';
import { clear, closeHouse, openHouse } from '../conformance/house';
import { LIMITS_AND_HEALTH } from '../conformance/limits';
import { MESSAGES } from '../conformance/messages';
import { type Proofs, rowsOf, SECTIONS } from '../conformance/spec';
import { UPGRADE } from '../conformance/upgrade';

/** What proves each row of `websocket.json`, by section and row. */
const PROOFS: Readonly<Record<string, Proofs>> = {
  ...UPGRADE,
  ...MESSAGES,
  ...GATE_KINDS,
  ...CHANNEL_FAMILIES,
  ...LIMITS_AND_HEALTH,
};

beforeAll(openHouse);
afterEach(clear);
afterAll(closeHouse);

describe.each(SECTIONS)('websocket.json, %s', (section) => {
  test.each(rowsOf(section))('%s', async (name, row) => {
    const proof = PROOFS[section]?.[name];
    if (proof === undefined) throw new Error(`nothing proves ${section}: ${name}`);
    await expect(proof(row)).resolves.toBeUndefined();
  });
});

test('nothing is proven that the checklist does not have', () => {
  const proven = Object.entries(PROOFS).flatMap(([section, rows]) => Object.keys(rows).map((row) => [section, row]));
  const listed = SECTIONS.flatMap((section) => rowsOf(section).map(([row]) => [section, row]));
  expect(proven.sort()).toEqual(listed.sort());
});
