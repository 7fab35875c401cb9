import { Channel } from '../../realtime/runtime/channel/channel';
import { Forwarding, type ForwardingDeps } from '../../realtime/runtime/forward/forwarding';

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
