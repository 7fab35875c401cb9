import { CHANNELS } from '../../bin/areas';
import { channelForm, publicAlways } from '../../kernel/channel';
import { Families } from '../../realtime/runtime/channel/family';

const ACCOUNT = '0190a000-0000-7000-8000-000000000001';
const families = new Families(CHANNELS);

/** The table of spec doc3 §4.1: pattern, gate, flag, write permission, message type (doc3 §6.3). */
const TABLE = [
  ['overlay:<key>', 'bound_token overlay shared_overlay', 'feature:overlays', null, 'event'],
  ['widget:<widget_instance_id>', 'bound_token widget', 'feature:widgets', null, 'event'],
  ['events:<account_id>', 'permission events:read', 'feature:events', 'events:create', 'event'],
  ['spotify:<account_id>', 'permission spotify:read', 'feature:music', null, 'spotify:now-playing'],
  ['chat:<account_id>', 'permission chat:read', 'feature:multichat', 'chat:write', 'chat:message'],
  [
    'automations:<account_id>',
    'permission automations:read',
    'feature:automation',
    'automations:execute',
    'automation',
  ],
  ['history:<account_id>', 'permission history:read', 'feature:stream_history', null, 'event'],
  ['ext-storage:<install_id>', 'permission extension-store:read extension', 'feature:extensions', null, 'event'],
  ['ext-install-logs:<account_id>', 'permission bot-modules:read', 'feature:bot_module_extensions', null, 'event'],
  ['sounds:<account_id>', 'account_and_pages', 'feature:sounds', null, 'event'],
  ['presence:<resource_channel>', 'account_scoped', null, null, 'event'],
  ['ext-logs:<extension_id>', 'extension_owner', 'feature:extension_development', null, 'event'],
  ['ideas:list', 'public_when_feature system:ideas_hub_public', 'system:ideas_hub', null, 'event'],
  ['ideas:<idea_id>', 'public_when_feature system:ideas_hub_public', 'system:ideas_hub', null, 'event'],
  [
    'public-stats:<platform>:<broadcast_id>',
    'public_when_feature system:public_stats',
    'system:public_stats',
    null,
    'event',
  ],
  ['login-assignments:<account_id>', 'public', null, null, 'event'],
];

/** What is beyond the table: rulings, "channels without a row". */
const ADDITIONS = [
  ['user:<user_id>', 'own_user', null, null, 'event'],
  ['channel-status:<account_id>', 'permission spotify:read', null, null, 'event'],
];

test('the families are those of the specification, and two more', () => {
  const declared = CHANNELS.map(({ pattern, gate, flag, writable, message_type }) => {
    const words = Object.values(gate).flatMap((value: string | readonly string[]) => value);
    return [pattern, words.join(' '), flag, writable ?? null, message_type ?? 'event'];
  });
  const sorted = (rows: unknown[][]) => rows.map((row) => row.join(' | ')).sort();
  expect(sorted(declared)).toEqual(sorted([...TABLE, ...ADDITIONS]));
});

test.each([
  [`events:${ACCOUNT}`, 'events:<account_id>'],
  ['overlay:a.B_c~9-', 'overlay:<key>'],
  [`overlay:${'k'.repeat(128)}`, 'overlay:<key>'],
  ['ideas:list', 'ideas:list'],
  [`ideas:${ACCOUNT}`, 'ideas:<idea_id>'],
  ['public-stats:kick:99', 'public-stats:<platform>:<broadcast_id>'],
  [`presence:events:${ACCOUNT}`, 'presence:<resource_channel>'],
  ['presence:widget:w1', 'presence:<resource_channel>'],
  [`login-assignments:${ACCOUNT}`, 'login-assignments:<account_id>'],
  [`user:${ACCOUNT}`, 'user:<user_id>'],
])('%s is a channel of %s', (name, pattern) => expect(families.of(name)?.family.pattern).toBe(pattern));

test.each([
  '',
  ':',
  'events',
  'events:',
  ':events',
  `events:${ACCOUNT}x`,
  `events: ${ACCOUNT}`,
  `events:${ACCOUNT.toUpperCase()}`,
  `Events:${ACCOUNT}`,
  `event:${ACCOUNT}`,
  `events:${ACCOUNT}\n`,
  'ideas:lists',
  'ideas:li',
  'public-stats:kick',
  'public-stats:kickx:99',
  'public-stats:mytwitch:99',
  'public-stats:discord:99',
  `public-stats:kick:${'9'.repeat(101)}`,
  `overlay:${'k'.repeat(129)}`,
  'overlay:a/b',
  'presence:widget',
  'constructor:x',
  'login-assignments:1',
  'user:me',
  `ext:${ACCOUNT}`,
  '__proto__:x',
  'nothing:there',
])('%j is a channel of none', (name) => expect(families.of(name)).toBeNull());

test('a pattern is refused that has no prefix, or not the part that it gives a form to', () => {
  expect(() => channelForm({ pattern: '<id>' })).toThrow('<id> has no prefix');
  expect(() => channelForm({ pattern: 'notes:<id>', ids: { note_id: /x/ } })).toThrow('notes:<id> has no <note_id>');
  const twice = { pattern: 'notes:<id>', summary: 'Notes.', carries: {}, gate: publicAlways, flag: null };
  expect(() => new Families([twice, twice])).toThrow('declared twice');
});
