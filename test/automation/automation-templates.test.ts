import { randomUUID } from 'node:crypto';
import {
  asJsonString,
  asPlainText,
  asUrlPart,
  expandTemplate,
  MAX_TEMPLATE_BYTES,
  templateNames,
  templatePermissions,
  type TemplateValues,
} from '../../domain/automation/templates/expand';
import { NO_CAUSE } from '../../domain/automation/automation-runs';
import { TEMPLATE_GROUPS } from '../../domain/automation/templates/members';
import { eventValues, timeValues } from '../../domain/automation/templates/values';
import { EVENT_TYPES, exampleText } from '../../domain/events/event-catalogue';
import { ERASED_RAW } from '../../domain/common/records';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { templateContext } from '../../services/automation/automations/template-context';
import { setVariable } from '../../services/automation/automations/variables';
import { templatesOf } from '../../services/automation/runs/work';
import { testDatabase } from '../support/database';
import { ownerAndStranger, sharedServer } from '../support/shared-server';

const at = '2026-05-01T18:05:00.000Z';
const example = (type: string) =>
  eventValues({
    id: 'e',
    type,
    platform: type.split(':')[0]!,
    raw: exampleText(type, Date.parse(at))!,
    created_at: at,
  });
const plain = (template: string, values: TemplateValues) => expandTemplate(template, values, asPlainText, () => 0);

describe('a template', () => {
  test('names each value once, and the permissions of their groups', () => {
    const template =
      '{{user.name}} {{displayName}} {{user.name}} {{random:a,b}} {x} {{ a }} {{var.x}} {{songName}} {{poll.id}}';
    expect(templateNames(template)).toEqual(['user.name', 'displayName', 'var.x', 'songName', 'poll.id']);
    expect(templatePermissions(template)).toEqual(['events:read', 'events:userinfo', 'spotify:read']);
    expect(templatePermissions('{{channel.name}} {{constructor}} {{__proto__.x}}')).toEqual([]);
  });

  test('reads own members alone; unknown names are empty and returned', () => {
    const values = {
      custom: JSON.parse('{"__proto__": "p", "n": 0, "b": false}'),
      event: { raw: { list: [{ a: '{{x}}' }], none: null } },
    };
    const { text, unknown } = plain(
      '{{var.__proto__}}|{{var.n}}|{{custom.b}}|{{event.raw.list.0.a}}|{{event.raw.list}}|{{event.raw.none}}|' +
        '{{event.raw.list.length}}{{constructor}}{{event.raw.constructor.name}}{{toString}}{{custom}}{{var.n.toFixed}}{{nope}}{{nope}}',
      values,
    );
    expect(text).toBe('p|0|false|{{x}}|[{"a":"{{x}}"}]||');
    expect(unknown).toEqual([
      ...['event.raw.list.length', 'constructor', 'event.raw.constructor.name', 'toString', 'custom', 'var.n.toFixed'],
      'nope',
    ]);
  });

  test('encodes values for their place', () => {
    const values = { user: { name: 'a\u0000\r\n"b"&/ü\ud800' } };
    expect(plain('{{user.name}}', values).text).toBe('a "b"&/ü\ud800');
    const url = expandTemplate('https://x.example/?q={{user.name}}', values, asUrlPart, () => 0).text;
    expect(new URL(url).searchParams.get('q')).toBe('a\u0000\r\n"b"&/ü\ufffd');
    const json = expandTemplate('{"q":"{{user.name}}"}', values, asJsonString, () => 0).text;
    expect(JSON.parse(json)).toEqual({ q: values.user.name });
  });
});

describe('values of an event', () => {
  test('are in the groups of its type, of every type', () => {
    expect(example('twitch:cheer')).toMatchObject({
      event: { type: 'twitch:cheer', raw: { bits: 100 } },
      user: { id: expect.any(String), displayName: expect.any(String), platform: 'twitch' },
      cheer: { bits: 100, message: 'Cheer100 well played' },
    });
    expect(example('twitch:reward').redemption).toMatchObject({ rewardCost: 500, input: 'Do a barrel roll' });
    expect(example('twitch:raid').raid).toMatchObject({ userName: 'Grace_H', viewerCount: 214 });
    expect(example('twitch:gift').sub).toMatchObject({ count: 5, isGift: true });
    expect(example('twitch:poll_end').poll).toMatchObject({ winner: 'The cave', status: 'completed' });
    expect(example('twitch:prediction_end').prediction).toMatchObject({ winner: 'Yes' });
    expect(example('streamelements:tip').tip).toMatchObject({ amount: 4.2, currency: 'USD' });
    expect(example('youtube:superchat').tip).toMatchObject({ amount: 5, currency: 'EUR' });
    expect(example('shopify:order').shopify).toMatchObject({ title: '#1001', total: 39.8 });
    expect(example('obs:low_bitrate').obs).toMatchObject({ data: { bitrate_kbps: 900 } });
    expect(example('youtube:subscribe').sub).toBeUndefined();
    for (const { type } of EVENT_TYPES)
      for (const [group, members] of Object.entries(example(type))) {
        const documented = Object.keys(TEMPLATE_GROUPS.get(group)!.members).map((name) => name.split('.')[0]);
        expect(documented).toEqual(expect.arrayContaining(Object.keys(members as object)));
      }
  });

  test('of an erased person name nobody', () => {
    const values = eventValues({ id: 'e', type: 'twitch:cheer', platform: 'twitch', raw: ERASED_RAW, created_at: at });
    expect(values.user).toBeUndefined();
    expect(plain('{{cheer.userName}}{{event.raw.user_name}}', values).text).toBe('');
    expect(timeValues(Date.parse(at))).toMatchObject({ date: '2026-05-01', time: '18:05', weekday: 'Friday' });
  });
});

test('a run reads the groups that its templates name and its user may read', async () => {
  const t = await testDatabase();
  const texts = createPersonalTexts(
    createSubjectKeys({ db: t.db, master_keys: parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`) }),
  );
  const account_id = randomUUID();
  await t.db.query(
    `insert into channel_connections (id, account_id, platform, platform_channel_id, connected_at)
     values (gen_random_uuid(), $1, 'twitch', '1337', now())`,
    [account_id],
  );
  await t.db.query(
    `insert into channel_status (account_id, platform, broadcast_id, channel_id, is_online, stream_title, started_at, updated_at)
     values ($1, 'twitch', 'b', '1337', true, 'Boss', $2, now())`,
    [account_id, at],
  );
  await t.db.query(
    `insert into platform_event_logs (id, account_id, type, platform, raw, created_at)
     values (gen_random_uuid(), $1, 'spotify:track', 'spotify', $2, now())`,
    [account_id, exampleText('spotify:track', Date.now())],
  );
  await t.db.transaction((tx) => setVariable(tx, { account_id, name: 'deaths' }, 3));
  const template =
    '{{displayName}}|{{songName}}|{{stream.title}} {{stream.uptime}}|{{channel_status.twitch.isOnline}}|' +
    '{{channel.platform}}|{{var.deaths}}|{{var.none}}|{{args}}|{{arg.2}}|{{target}}|{{platform}}';
  const event = {
    id: 'e',
    type: 'twitch:cheer',
    platform: 'twitch',
    raw: '{"user_name":"Ada","bits":1}',
    created_at: at,
  };
  const cause = { account_id, platform: 'twitch', event, permissions: null, now_ms: Date.parse(at) + 65_000 };
  const services = { db: t.db, texts };
  const run = async (more: object) =>
    plain(template, await templateContext(services, { ...cause, ...more }, [template]));
  expect((await run({})).text).toBe('Ada|Dancing Queen|Boss 1m 5s|true|twitch|3|||||twitch');
  const author = { id: '1', name: 'Grace', role: 'vip' };
  expect((await run({ event: null, author, args: '@Bob now' })).text).toBe(
    'Grace|Dancing Queen|Boss 1m 5s|true|twitch|3||@Bob now|now|Bob|twitch',
  );
  const manual = await run({ permissions: new Set(['automations:execute']) });
  expect(manual.text).toBe('||Boss 1m 5s||twitch|3|||||twitch');
  expect(manual.unknown).toEqual(expect.arrayContaining(['displayName', 'songName', 'channel_status.twitch.isOnline']));
  await t.drop();
});

test('names and permissions of a template are read on both protocols', async () => {
  const server = await sharedServer();
  const { owner, account } = await ownerAndStranger(server);
  const template = '{{user.name}} {{user.name}} {{var.x}}';
  const ask = (what: string, body: object) => owner.send('POST', `/v1/automations/templates/${what}`, body);
  expect(await ask('variables', { template })).toMatchObject({
    status: 200,
    body: { data: { variables: ['user.name', 'var.x'] } },
  });
  expect((await ask('permissions', { template })).body.data).toEqual({ permissions: ['events:userinfo'] });
  const query =
    'query ($t: String!) { templateVariables(template: $t) { variables } templatePermissions(template: $t) { permissions } }';
  expect((await owner.gql(query, { t: template })).data).toEqual({
    templateVariables: { variables: ['user.name', 'var.x'] },
    templatePermissions: { permissions: ['events:userinfo'] },
  });
  expect((await ask('variables', { template: 'x'.repeat(MAX_TEMPLATE_BYTES) })).status).toBe(200);
  for (const body of [{ template: 'ü'.repeat(MAX_TEMPLATE_BYTES / 2 + 1) }, {}, { template: 1 }])
    for (const what of ['variables', 'permissions'])
      expect(await ask(what, body)).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
  const viewer = server.client((await server.member(account.account_id, 'viewer')).access_token);
  expect((await viewer.send('POST', '/v1/automations/templates/variables', { template })).status).toBe(403);
});

test('a step reads the groups that its run may read, without control characters', async () => {
  const t = await testDatabase();
  const { db } = t;
  const master_keys = parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`);
  const texts = createPersonalTexts(createSubjectKeys({ db, master_keys }));
  const cause = { ...NO_CAUSE, platform: 'twitch', author: { id: '1', name: 'A\n{{platform}}', role: 'everyone' } };
  const config = { message: '{{displayName}}|{{time.date}}|{{constructor}}' };
  const textFor = async (permissions: string[] | null) =>
    (await templatesOf({ db, texts }, { account_id: randomUUID(), permissions }, cause, config)).expand(config.message);
  expect(await textFor(null)).toMatch(/^A \{\{platform\}\}\|\d{4}-\d\d-\d\d\|$/);
  expect(await textFor([])).toMatch(/^\|\d{4}-\d\d-\d\d\|$/);
  await t.drop();
});
