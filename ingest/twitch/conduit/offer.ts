import type { Campaign, Shares } from '../../../engines/leases/port';
import { pause } from '../../../lib/async/signal';

/** Kind of work that every worker with conduits offers, so that its member row shows it. */
export const CONDUIT_WORKERS = 'twitch-conduit-workers';

/** Announces to the other workers that this one receives over conduits. */
export const offerConduits = (shares: Pick<Shares, 'offer'>): Campaign =>
  shares.offer(`${CONDUIT_WORKERS}:any`, (signal) => pause(Infinity, signal));
