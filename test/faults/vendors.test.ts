import { migrate } from '../../engines/postgres/migrate';
import { silenceableLink, type SilenceableLink } from '../support/link';
import { VendorWorkers } from '../support/vendor-workers';
import { type Cluster, startCluster } from './support/cluster';

/** The database is unavailable to one of two workers that hold connections to vendors; the other one reaches it. */
describe('a worker that is cut off from the database', () => {
  let cluster: Cluster;
  let link: SilenceableLink;
  let all: VendorWorkers;
  beforeAll(async () => {
    cluster = await startCluster();
    const url = await cluster.createDatabase();
    await migrate(url);
    link = await silenceableLink(url);
    all = await VendorWorkers.start(url);
  });
  afterAll(async () => {
    await all?.close();
    link?.close();
    await cluster?.dispose();
  });

  test('is replaced at every vendor; what it received meanwhile is stored when the database is back, once', async () => {
    const cut_off = all.begin({ url: link.url });
    for (const how of ['silent', 'refused'] as const) {
      const before = await all.allHeld();
      expect([how, before.length]).toEqual([how, 1]);
      await all.oneReader();
      await all.eachStored();
      const sessions = all.sessionsAtTwitch();
      link.partition(how);
      const successor = all.begin();
      await all.allHeld(before);
      // Both workers receive the same events.
      await all.twoReaders();
      // The one that is cut off opens its sessions again, later than its successor.
      for (const id of sessions) all.twitch.dropSession(id);
      await all.twoReaders();
      link.mend();
      await all.oneReader();
      await all.nothingMissingOrTwice();
      await all.stop(successor);
    }
    all.silence();
    await all.stop(cut_off);
  });
});
