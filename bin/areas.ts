import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Operation } from '../access/operation';
import type { AreaJob } from '../access/job';
import type { AreaReactor } from '../access/reactor';
import { createUpcasters, upcastersOf } from '../kernel/upcasters';
import { catalogue, type AnyEventSet } from '../kernel/event';
import type { Projection } from '../kernel/projection';
import { accountEvents } from '../projections/account-events';
import { auditLog } from '../projections/audit-log';
import { readersOf } from '../projections/runtime/readers';
import type { Family } from '../realtime/runtime/family';

/** The first level of a room is the product: one file an area. */
const AREA = /^[a-z][a-z-]*\.(js|ts)$/;

/**
 * What the areas of a room export of one kind, by file name and then as exported. An area that is declared is served:
 * there is no list to forget.
 */
function exported<T>(room: string, is: (value: object) => boolean): T[] {
  const folder = join(__dirname, '..', room);
  const files = readdirSync(folder).filter((file) => AREA.test(file));
  return files.sort().flatMap((file) => {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- which files there are is known only now
    const area = require(join(folder, file)) as Record<string, unknown>;
    return Object.values(area).filter((value) => typeof value === 'object' && value !== null && is(value)) as T[];
  });
}

const has = (...members: string[]) => {
  return (value: object) => members.every((member) => member in value);
};

/** Every domain event of Lumio. */
export const EVENTS = catalogue(exported<AnyEventSet>('domain', has('declared', 'types')));

/** The upcasters that the areas declare with their events. */
export const UPCASTERS = createUpcasters(upcastersOf(EVENTS));

/** Every operation of Lumio, queries first. */
export const OPERATIONS: readonly Operation[] = ['read-api', 'commands'].flatMap((room) =>
  exported<Operation>(room, has('kind', 'guard', 'input', 'output', 'run')),
);

/** Every family of WebSocket channels of Lumio. */
export const CHANNELS: readonly Family[] = exported<Family>('realtime', has('pattern', 'gate', 'flag'));

/** Every projection of Lumio. */
export const PROJECTIONS: readonly Projection[] = [
  ...exported<Projection>('projections', has('name', 'version', 'tables', 'from', 'apply')),
  accountEvents([...EVENTS.keys()]),
  auditLog(EVENTS),
];

/** Every reactor of Lumio. */
export const REACTORS: readonly AreaReactor[] = exported<AreaReactor>('reactors', has('from', 'types', 'react'));

/** Every job of an area. */
export const JOBS: readonly AreaJob[] = exported<AreaJob>('reactors', has('payload', 'after_unknown', 'run'));

/** The version of each projection. */
export const VERSIONS: ReadonlyMap<string, number> = new Map(PROJECTIONS.map(({ name, version }) => [name, version]));

/** Which read models a command waits for. */
export const READERS = readersOf(PROJECTIONS, EVENTS);
