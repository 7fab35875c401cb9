import { EVENT_TYPES, exampleText } from '../../domain/events/event-catalogue';
import { drawnEvent, type DrawnEvent } from '../../domain/studio/drawn-events';
import { usualTemplate } from '../../web/source/usual-alerts';

const drawn = (type: string, payload: object): DrawnEvent =>
  drawnEvent({ type, platform: type.split(':')[0]!, payload: payload as never, created_at: '2026-01-15T18:30:00Z' })!;

test('each usual alert finds the members that its template names in the example of its type', () => {
  const announced = EVENT_TYPES.flatMap(({ type }) => {
    const text = exampleText(type, Date.UTC(2026, 0, 15));
    if (text === null) return [];
    const event = drawn(type, JSON.parse(text) as object);
    const template = usualTemplate(type, event);
    if (template === undefined) return [];
    const names = [...template.matchAll(/\{\{(\w+)\}\}/g)].map(([, name]) => name as keyof DrawnEvent);
    const missing = names.filter((name) => name !== 'message' && event[name] === null);
    return [[type, missing]];
  });
  expect(announced.filter(([, missing]) => missing!.length > 0)).toEqual([]);
  const types = announced.map(([type]) => type);
  expect(types).toEqual(
    expect.arrayContaining(['kick:gift', 'shopify:order_paid', 'trovo:spell', 'youtube:superchat']),
  );
  expect(types).not.toContain('youtube:subscribe');
});

test('gifts of one, of named people and of many have their number', () => {
  const recipient = { recipient_user_name: 'Bo', community_gift_id: null };
  expect(drawn('twitch:gift', { sub_gift: recipient, community_sub_gift: null })).toMatchObject({ count: 1 });
  expect(drawn('twitch:gift', { sub_gift: null, community_sub_gift: { total: 5 } })).toMatchObject({ count: 5 });
  expect(drawn('kick:gift', { giftees: [{}, {}, {}] })).toMatchObject({ count: 3 });
  expect(drawn('trovo:subscribe', { type: 5005, content: '4', nick_name: 'Ada L' })).toMatchObject({ count: 4 });
});

test('spells, raids and tiers of Trovo are read from its content, and buyers of a shop are not named', () => {
  const content = '{"gift":"FieryDragon","num":2,"gift_value":500,"value_type":"Elixir"}';
  const spell = { title: 'FieryDragon', count: 2, amount: 1_000, currency: 'Elixir' };
  expect(drawn('trovo:spell', { type: 5, content })).toMatchObject(spell);
  expect(drawn('trovo:spell', { type: 5009, content: '{broken' })).toMatchObject({ title: null, amount: null });
  expect(drawn('trovo:raid', { type: 5008, content: '{"raiderNum":"96"}' })).toMatchObject({ count: 96 });
  expect(drawn('trovo:subscribe', { type: 5001, content: 'Tier 1' })).toMatchObject({ tier: 'Tier 1', count: null });
  const order = { name: '#1001', customer: { first_name: 'Ada' }, total_price: '39.80', currency: 'EUR' };
  expect(drawn('shopify:order_paid', order)).toMatchObject({ user_name: null, title: '#1001', amount: 39.8 });
});
