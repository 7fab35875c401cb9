import { eventUserId } from '../../domain/events/event-users';
import { createStreamElementsAdapter, type TipsSession } from '../../ingest/streamelements/adapter';
import { normaliseTips } from '../../ingest/streamelements/tips';
import { PauseAsked, ConnectionRefused } from '../../ingest/runtime/connection/adapter';
import { createHttpClients } from '../../vendors/http/client';
import { streamElementsApi } from '../../vendors/streamelements/astro';
import { KeptLink } from '../support/kept-link';
import { noMetrics, until } from '../support/projections';
import { fixture } from '../support/webhooks';
import { FakeStreamElements } from '../vendors/streamelements-cloud';

const ACCOUNT = '01900000-0000-7000-8000-000000000001';
const CHANNEL = '5ad23dcc18fff500d78c5348';
const TOKEN = 'header.payload.signature';
const connection = { connection_id: 'tip-token', account_id: ACCOUNT, channel_id: 'twitch' };
const NOW = Date.parse('2026-11-21T10:00:00Z');
const said = (text: Buffer | string) => normaliseTips({ text: text.toString(), received_at: NOW }, connection);
const tip = (name = 'channel.tips') => fixture('streamelements', `${name}.json`);

describe('what Astro says', () => {
  test.each([['channel.tips'], ['channel.tips.moderation.allowed']])(
    '%s is a tip, without its giver’s e-mail',
    (name) => {
      const outcome = said(tip(name));
      expect(outcome).toMatchObject({
        kind: 'ok',
        records: [
          {
            owner: { kind: 'account', account_id: ACCOUNT },
            topic: 'platform-events',
            type: 'streamelements:tip',
            platform: 'streamelements',
            external_id: 'streamelements:67b5f39d07ecd4c594e60f73',
            occurred_at: '2025-02-19T15:07:09.302Z',
            subject: 'streamelements:exampletipper',
          },
        ],
      });
      expect(JSON.stringify(outcome)).not.toMatch(/@|"geo|ZZ/);
      const [{ raw }] = (outcome as unknown as { records: [{ raw: string }] }).records;
      expect(JSON.parse(raw)).toMatchObject({
        donation: { amount: 4.2, currency: 'USD', user: { username: 'ExampleTipper' } },
      });
      expect(eventUserId('streamelements', raw)).toBe('ExampleTipper');
    },
  );

  const changed = (of: object) => {
    const frame = JSON.parse(tip().toString());
    return JSON.stringify({ ...frame, data: { ...frame.data, ...of } });
  };
  test.each([
    [changed({ status: 'pending' }), 'skip', 'not_paid'],
    [changed({ status: 'refunded' }), 'skip', 'not_paid'],
    [changed({ approved: 'pending' }), 'skip', 'not_allowed'],
    [changed({ approved: 'rejected' }), 'skip', 'not_allowed'],
    [changed({ _id: null }), 'park', 'bad_payload'],
    [tip('astro.message.follow'), 'skip', 'unmapped_type'],
    [tip('channel.stream.status'), 'skip', 'unmapped_type'],
    ['nothing', 'park', 'bad_json'],
    ['[]', 'park', 'unknown_type'],
  ])('%#: nothing is stored', (text, kind, reason) => {
    expect(said(text)).toMatchObject({ kind, reason });
  });
});

describe('the gateway', () => {
  const vendor = new FakeStreamElements();
  const http = createHttpClients({ metrics: noMetrics, allow_loopback: true });
  const sessions: TipsSession[] = [];
  const adapterOf = (timings = {}) => {
    const { base_url: api_url, astro_url } = vendor;
    return createStreamElementsAdapter(streamElementsApi(http, { api_url, astro_url }), timings);
  };
  beforeAll(() => vendor.start());
  beforeEach(() => {
    vendor.heal();
    vendor.refused_topics.clear();
    vendor.silent = false;
    vendor.subscribe_error = null;
    vendor.onWelcome = () => {};
    vendor.channels.set(TOKEN, CHANNEL);
  });
  afterEach(async () => {
    for (const session of sessions.splice(0)) await adapterOf().stop(session);
    await until(() => vendor.listening(CHANNEL).length === 0);
  });
  afterAll(async () => {
    await http.close();
    await vendor.close();
  });

  async function opened(resumed: KeptLink | null = null, timings = {}, tokens = [TOKEN]) {
    const adapter = adapterOf(timings);
    const link = new KeptLink(adapter, connection, tokens);
    const session = await (resumed === null ? adapter.connect(link) : adapter.resume(link, resumed.state));
    sessions.push(session);
    return { adapter, link, session };
  }
  const ids = (link: KeptLink) => link.records.map(({ external_id }) => external_id);

  test('tips arrive once, whatever is told twice, and binary frames and noise are passed over', async () => {
    const { link } = await opened();
    vendor.send(Buffer.from([0, 1, 2]));
    for (const noise of ['', '{', 'null', '{"type":"reply"}', '{"type":"response","nonce":"x","error":"e"}'])
      vendor.send(noise);
    const one = vendor.tip(CHANNEL);
    vendor.tell(CHANNEL, 'channel.tips', one);
    const waiting = vendor.tip(CHANNEL, { approved: 'pending' });
    vendor.tell(CHANNEL, 'channel.tips.moderation', { ...waiting, approved: 'allowed' });
    await until(() => link.received.length === 4);
    expect(ids(link)).toEqual([`streamelements:${one._id}`, `streamelements:${waiting._id}`]);
  });

  test('a server that shuts down hands over: nothing is lost between the sockets, and none stays', async () => {
    const { link } = await opened();
    const before = vendor.opened;
    vendor.drain();
    const during = vendor.tip(CHANNEL);
    await until(() => vendor.opened === before + 1 && vendor.listening(CHANNEL).length === 1);
    const after = vendor.tip(CHANNEL);
    await until(() => link.records.length === 2);
    expect(ids(link)).toEqual([during, after].map(({ _id }) => `streamelements:${_id}`));
  });

  test('what the old server says while the new one is welcome already is not lost', async () => {
    const { link } = await opened();
    const [old] = vendor.listening(CHANNEL);
    const late = JSON.parse(tip().toString());
    vendor.onWelcome = () => old!.send(JSON.stringify(late));
    vendor.drain();
    await until(() => link.records.length === 1);
    await until(() => vendor.listening(CHANNEL).length === 1);
    expect(ids(link)).toEqual([`streamelements:${late.data._id}`]);
  });

  test('a server that asks to move again and again gets one socket more, and none is left behind', async () => {
    const { link } = await opened();
    const before = vendor.opened;
    for (let n = 0; n < 20; n += 1) vendor.drain();
    await until(() => vendor.opened > before && vendor.listening(CHANNEL).length === 1);
    vendor.tip(CHANNEL);
    await until(() => link.records.length === 1);
    expect([vendor.opened, link.received.length]).toEqual([before + 1, 1]);
  });

  test('a token to reconnect with that is no good ends the session, and what was paid meanwhile is fetched', async () => {
    const { link, session } = await opened();
    vendor.drain(false);
    vendor.cutAll();
    await expect(session.ended).rejects.toThrow(/closed the connection/);
    const missed = vendor.tip(CHANNEL);
    const { link: next } = await opened(link);
    expect(ids(next)).toContain(`streamelements:${missed._id}`);
    expect(next.gaps).toEqual([]);
    expect(vendor.asked('/kappa/v2/channels/me')).toBeGreaterThan(0);
  });

  test('a new token of the same channel goes on where the former one ended, of another it begins', async () => {
    const { link, session, adapter } = await opened();
    await adapter.stop(session);
    const missed = vendor.tip(CHANNEL);
    vendor.channels.delete(TOKEN);
    vendor.channels.set('new.to.ken', CHANNEL);
    const { link: next } = await opened(link, {}, ['new.to.ken']);
    expect(ids(next)).toContain(`streamelements:${missed._id}`);
    vendor.channels.set('other.to.ken', 'another-channel');
    vendor.tip('another-channel');
    const { link: other } = await opened(next, {}, ['other.to.ken']);
    expect(ids(other)).toEqual([]);
    expect(other.state).toMatchObject({ room: 'another-channel' });
  });

  test('a tip that was made hours before the gap and allowed in it is fetched', async () => {
    const { link, session, adapter } = await opened();
    await adapter.stop(session);
    const hours_ago = (hours: number) => Date.now() - hours * 3_600_000;
    const madeAgo = (hours: number) => vendor.tip(CHANNEL, { createdAt: new Date(hours_ago(hours)).toISOString() });
    const [before_us, allowed] = [madeAgo(7), madeAgo(5)];
    link.keep({ ...(link.state as object), begun: hours_ago(6) });
    const { link: next } = await opened(link);
    expect(ids(next)).toContain(`streamelements:${allowed._id}`);
    expect(ids(next)).not.toContain(`streamelements:${before_us._id}`);
    expect(next.state).toMatchObject({ begun: (link.state as { begun: number }).begun });
  });

  test('a tip from before the channel was connected is not announced at its first reconnect', async () => {
    const paid = vendor.tip(CHANNEL, { createdAt: new Date(Date.now() - 5 * 60_000).toISOString() });
    const { link, session, adapter } = await opened();
    await adapter.stop(session);
    const { link: next } = await opened(link);
    expect(ids(next)).not.toContain(`streamelements:${paid._id}`);
  });

  test.each([
    ['err_token_service_unavailable', 'a passing failure of the gateway'],
    ['the token bucket is empty', 'a text of no known error'],
  ])('%s does not refuse the token', async (error) => {
    vendor.subscribe_error = error;
    const adapter = adapterOf();
    const link = new KeptLink(adapter, connection, [TOKEN]);
    await expect(adapter.connect(link)).rejects.toThrow('StreamElements refuses its tips');
    expect(link.refused).toEqual([]);
  });

  test('however many were paid meanwhile, all are fetched', async () => {
    const { link, session, adapter } = await opened();
    await adapter.stop(session);
    const missed = Array.from({ length: 250 }, () => `streamelements:${vendor.tip(CHANNEL)._id}`);
    const { link: next } = await opened(link);
    expect(ids(next)).toEqual(expect.arrayContaining(missed));
    expect(next.gaps).toEqual([]);
  });

  test('where the tips of a gap cannot be fetched, that is told; where the vendor is away, it is tried again', async () => {
    const { link, session, adapter } = await opened();
    await adapter.stop(session);
    vendor.fail({ path: '/kappa/v2/tips/', status: 403 });
    const { link: next } = await opened(link);
    expect(next.gaps).toEqual([expect.objectContaining({ detail: expect.stringContaining('403') })]);
    vendor.fail({ path: '/kappa/v2/tips/', status: 429, retry_after: 60 });
    await expect(opened(link)).rejects.toThrow('429');
  });

  test('a revoked token is asked for anew, and without another the connection is refused', async () => {
    vendor.channels.set('new.to.ken', CHANNEL);
    vendor.channels.delete(TOKEN);
    const { link } = await opened(null, {}, [TOKEN, 'new.to.ken']);
    expect(link.refused).toEqual([TOKEN]);
    await expect(opened(null, {}, [TOKEN])).rejects.toThrow(ConnectionRefused);
  });

  test('the token is revoked while the gateway is asked: the connection is refused too', async () => {
    const { link } = await opened();
    vendor.channels.delete(TOKEN);
    await expect(opened(link)).rejects.toThrow(ConnectionRefused);
  });

  test('a gateway that is busy says for how long', async () => {
    vendor.refuse = { status: 429, retry_after: 2, times: 1 };
    const failure = await opened().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(PauseAsked);
    expect(failure).toMatchObject({ pause_ms: 2_000 });
  });

  test('without the topic of moderation tips still come, and the status says what is lacking', async () => {
    vendor.refused_topics.add('channel.tips.moderation');
    const { link } = await opened();
    expect(link.statuses).toEqual([['degraded', expect.stringContaining('moderator')]]);
    vendor.tip(CHANNEL);
    await until(() => link.records.length === 1);
  });

  test('a line that is dead in both directions is given up; pings keep it', async () => {
    const { link, session } = await opened(null, { silence_ms: 2_000 });
    const pinging = setInterval(() => vendor.ping(), 50);
    await new Promise((wait) => setTimeout(wait, 2_500));
    expect(link.last_heard).toBeGreaterThan(Date.now() - 2_000);
    clearInterval(pinging);
    await expect(session.ended).rejects.toThrow(/closed the connection/);
  });

  test('no welcome, no session', async () => {
    vendor.silent = true;
    await expect(opened(null, { open_ms: 20 })).rejects.toThrow('in time');
  });
});
