import { networkOf } from '../../access/limits/rate-buckets';
import { clientIp, requestHost } from '../../api/http/requests/client-ip';
import { plainAddress } from '../../lib/net/addresses';
import { Client, refused } from '../support/realtime';
import { sharedServer, type SharedServer } from '../support/shared-server';
import { eventually } from '../support/vendor-cloud';

describe('an address', () => {
  test.each([
    ['198.51.100.9', '198.51.100.9'],
    ['198.51.100.9:40001', '198.51.100.9'],
    [' 198.51.100.9 ', '198.51.100.9'],
    ['::ffff:198.51.100.9', '198.51.100.9'],
    ['[::FFFF:198.51.100.9]:40001', '198.51.100.9'],
    ['::ffff:c633:6409', '198.51.100.9'],
    ['2001:db8:9::1', '2001:db8:9::1'],
    ['[2001:db8:9::1]', '2001:db8:9::1'],
    ['[2001:DB8:9:0::1]:40001', '2001:db8:9::1'],
    ['2001:db8:9:0:0:0:0:1:40001', '2001:db8:9::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['', ''],
    ['unknown', ''],
    ['unknown:40001', ''],
    ['_hidden', ''],
    ['198.51.100', ''],
    ['198.51.100.9:', ''],
    ['198.51.100.9:port', ''],
    ['[2001:db8:9::1', ''],
    ['[198.51.100.9:40001', ''],
    ['2001:db8:9::1::2', ''],
  ])('%j is %j', (text, address) => expect(plainAddress(text)).toBe(address));

  test('counts by IPv4 address or by /64, and text that is no address in one bucket', () => {
    expect(networkOf('198.51.100.9:40001')).toBe('198.51.100.9');
    expect(networkOf('[2001:db8:9::1]:40001')).toBe('2001:db8:9:0::/64');
    expect(networkOf('2001:db8:9::ffff:0:2')).toBe('2001:db8:9:0::/64');
    expect(new Set(['', 'unknown', 'x:1', '_2'].map(networkOf)).size).toBe(1);
  });

  test('of a proxy is trusted in each of its forms', () => {
    const clientOf = clientIp(['10.0.0.0/8', '2001:db8:1::/48']);
    const from = (remoteAddress: string | undefined, forwarded: string) =>
      clientOf({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } } as never);
    expect(from('::ffff:10.0.0.1', '198.51.100.9:1, 10.0.0.2:5000')).toBe('198.51.100.9');
    expect(from('10.0.0.1', '[2001:db8:9::1]:1, [2001:db8:1::2]:5000')).toBe('2001:db8:9::1');
    expect(from('10.0.0.1', '198.51.100.9, unknown')).toBe('');
    expect(from('192.0.2.1', '198.51.100.9')).toBe('192.0.2.1');
    expect(from(undefined, '198.51.100.9')).toBe('');
    const hostOf = (remoteAddress: string, headers: object, proxies = ['10.0.0.0/8']) =>
      requestHost(proxies)({ socket: { remoteAddress }, headers: { host: 'inner', ...headers } } as never);
    const forwarded = { 'x-forwarded-host': 'spoofed.example, stage.example' };
    expect(hostOf('10.0.0.1', forwarded)).toBe('stage.example');
    expect(hostOf('10.0.0.1', {})).toBe('inner');
    expect(hostOf('192.0.2.1', forwarded)).toBe('inner');
    expect(hostOf('10.0.0.1', forwarded, [])).toBe('inner');
    const own = clientIp([])({ socket: { remoteAddress: '::ffff:192.0.2.1' }, headers: {} } as never);
    expect(own).toBe('192.0.2.1');
  });
});

describe('behind a proxy that writes ports', () => {
  let server: SharedServer;
  beforeAll(async () => {
    server = await sharedServer();
  });

  const plans = (forwarded: string) =>
    server.door('').rest('GET', '/v1/plans', { headers: { 'x-forwarded-for': forwarded } });
  const keys = (forwarded: string) =>
    server.door(`lm_usr_${'0'.repeat(64)}`).rest('GET', '/v1/api-keys', { headers: { 'x-forwarded-for': forwarded } });
  const webhook = (forwarded: string) =>
    server.door('').rest('POST', '/v1/webhooks/kick', { body: {}, headers: { 'x-forwarded-for': forwarded } });
  const remaining = async (answer: ReturnType<typeof plans>) =>
    Number((await answer).headers.get('ratelimit-remaining'));

  test('anonymous callers are limited by the address without its port', async () => {
    const statuses: number[] = [];
    for (let port = 40_001; port <= 40_121; port += 1) statuses.push((await plans(`198.51.100.19:${port}`)).status);
    expect(new Set(statuses.slice(0, 120))).toEqual(new Set([200]));
    expect(statuses[120]).toBe(429);
    expect((await plans('198.51.100.19')).status).toBe(429);
  });

  test.each([
    ['IPv6 hosts of one /64', ['[2001:db8:9::1]:40001', '[2001:db8:9::1]:40002', '2001:db8:9::2']],
    ['an IPv4 address that is mapped into IPv6', ['198.51.100.29', '[::ffff:198.51.100.29]:40001', '::ffff:c633:641d']],
    ['texts that are no address', ['nonsense', 'unknown:40001', '_7']],
  ])('%s share a bucket', async (_name, [first, ...others]) => {
    const before = await remaining(plans(first!));
    for (const [n, other] of others.entries()) expect(await remaining(plans(other))).toBe(before - n - 1);
  });

  test('failed credentials and refused webhooks share a bucket each', async () => {
    const first = await keys('198.51.100.39:40001');
    expect([first.status, first.headers.get('ratelimit-remaining')]).toEqual([401, '119']);
    expect(await remaining(keys('198.51.100.39:40002'))).toBe(118);
    const delivered = await webhook('198.51.100.39:40001');
    expect([delivered.status, delivered.headers.get('ratelimit-remaining')]).toEqual([401, '119']);
    expect(await remaining(webhook('198.51.100.39:40002'))).toBe(118);
  });

  test('sockets without a credential are 20 of one address', async () => {
    const from = (port: number) => ({ headers: { 'x-forwarded-for': `198.51.100.49:${port}` } });
    const open: Client[] = [];
    for (let port = 40_001; port <= 40_020; port += 1) open.push(await Client.open(server.ws_url, null, from(port)));
    expect((await refused(server.ws_url, from(40_021))).status).toBe(429);
    for (const client of open) client.end();
  });

  test('the audit log has the address alone', async () => {
    const { door } = await server.account();
    const body = { label: 'Bot', permissions: ['events:read'] };
    const headers = { 'x-forwarded-for': '198.51.100.9:40001' };
    expect((await door.rest('POST', '/v1/api-keys', { body, headers })).status).toBe(201);
    const created = await eventually(async () => {
      const { json } = await door.rest('GET', '/v1/account/audit-log?limit=100');
      return json.data.find(({ ip }: { ip: string | null }) => ip !== null) as { ip: string } | undefined;
    }, 'the entry of the request');
    expect(created.ip).toBe('198.51.100.9');
  });
});
