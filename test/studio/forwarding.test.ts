import { setImmediate as nextTurn } from 'node:timers/promises';
import { ERASED_RAW } from '../../domain/common/records';
import { Channel } from '../../realtime/runtime/channel/channel';
import { Forwarding, type ForwardingDeps } from '../../realtime/runtime/forward/forwarding';
import { sendWithPictures } from '../../realtime/studio/drawn';

/** A page of an account, whose three sources are opened; `opening` runs at each. */
function forwardingTo(page: Channel, opening: (sources: readonly Channel[]) => void) {
  const sources: Channel[] = [];
  const forwards = async () => ({ account_id: 'a', types: [] });
  const deps = {
    hub: { channels: new Map([[page.name, page]]), transient: () => undefined, forget: () => undefined },
    families: { of: () => ({ family: { forwards }, id: 'k' }) },
    async open(name: string) {
      const source = new Channel(name, 'event', 'epoch');
      sources.push(source);
      opening(sources);
      return source;
    },
  };
  return { forwarding: new Forwarding(deps as unknown as ForwardingDeps), sources };
}
const tapped = (sources: readonly Channel[]) => sources.filter(({ tap }) => tap !== null).length;

test('a page is forwarded to though a source is lost while the others are opened', async () => {
  const page = new Channel('overlay:k', 'event', 'epoch');
  const { forwarding, sources } = forwardingTo(page, ({ length, 0: first }) => {
    if (length === 3) first!.forget();
  });
  await forwarding.open(page);
  expect([page.tap === null, tapped(sources)]).toEqual([false, 3]);
});

test('a page that goes while its account is opened leaves no source open', async () => {
  const page = new Channel('overlay:k', 'event', 'epoch');
  const { forwarding, sources } = forwardingTo(page, ({ length }) => {
    if (length === 3) page.forget();
  });
  await forwarding.open(page);
  forwarding.sweep(Date.now());
  expect(tapped(sources)).toBe(0);
});

test('an account whose erased messages cannot be read begins again, and those after it remove theirs', async () => {
  const sent: string[] = [];
  const dropped: string[] = [];
  const failures: unknown[] = [];
  const pages = ['overlay:a', 'overlay:b'].map((name) => new Channel(name, 'event', 'epoch'));
  const types = [{ type: 'event_list', flag: null }];
  const id = '0190a000-0000-7000-8000-00000000000e';
  const deps = {
    hub: {
      channels: new Map(pages.map((page) => [page.name, page])),
      transient: (channel: string) => sent.push(channel),
      forget: ({ name }: Channel) => dropped.push(name),
    },
    families: {
      of: (name: string) => ({ family: { forwards: async () => ({ account_id: name, types }) }, id: name }),
    },
    services: { db: { query: async () => [] } },
    features: { enabled: () => true },
    open: async (name: string) => Object.assign(new Channel(name, 'event', 'epoch'), { seq: 1 }),
    outbox: {
      async removals(channel: string) {
        if (channel.includes('overlay:a')) throw new Error('the database is not there');
        return [{ seq: 1, event_type: 'kick:follower', data: `{"id":"${id}","payload":${ERASED_RAW}}` }];
      },
    },
    log: { error: (...failure: unknown[]) => failures.push(failure) },
  };
  const forwarding = new Forwarding(deps as unknown as ForwardingDeps);
  for (const page of pages) await forwarding.open(page);
  await forwarding.removeErased();
  expect({ sent, dropped }).toEqual({ sent: ['overlay:b'], dropped: ['overlay:a'] });
  expect(failures).toHaveLength(1);
});

test('a failure of pictures that come later is logged, and the page has begun without them', async () => {
  const sent: string[] = [];
  const warnings: object[] = [];
  let fail: (error: Error) => void = () => undefined;
  const services = {
    db: { query: async () => [{ platform: 'kick', channel_id: '1' }] },
    pictures: () => new Promise((_read, reject) => (fail = reject)),
    log: { warn: (warning: object) => warnings.push(warning) },
  } as unknown as Parameters<typeof sendWithPictures>[1];
  await sendWithPictures({ account_id: 'a' }, services, (data) => sent.push(data));
  fail(new Error('not read'));
  await nextTurn();
  expect(sent).toEqual(['{"account_id":"a","emotes":[]}']);
  expect(warnings).toEqual([{ err: expect.any(Error), account_id: 'a' }]);
});
