import { Conduits } from '../../ingest/twitch/conduit/conduits';

test('changes of many channels at a time are announced once, and those after it before the process ends', async () => {
  let announced = 0;
  const wakeups = { notify: () => (announced += 1) };
  const conduits = new Conduits({ wakeups } as never);
  for (let n = 0; n < 100; n += 1) conduits.announce();
  expect(announced).toBe(1);
  await conduits.stop();
  expect(announced).toBe(2);
});
