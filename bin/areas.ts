import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Operation } from '../app/operation';
import type { AreaJob } from '../app/job';
import type { AreaReactor } from '../app/reactor';
import { createUpcasters, upcastersOf } from '../kernel/upcasters';
import { catalogue, type AnyEventSet } from '../kernel/event';
import type { Projection } from '../kernel/projection';
import { accountEvents } from '../projections/accounts/account-events';
import { auditLog } from '../projections/audit/audit-log';
import { readersOf } from '../projections/runtime/status/readers';
import type { Family } from '../realtime/runtime/channel/family';

const AREA = /^([a-z][a-z-]*)\.(js|ts)$/;
/** Folder of a room with its machinery, not with areas. */
const MACHINERY = 'runtime';

/** An area's part in one room: `<room>/<context>/<area>`. */
export interface AreaFile {
  context: string;
  name: string;
  /** Path of the source, or of its compiled form. */
  file: string;
}

/** The areas of a room, ordered by their names. */
export function areasOf(room: string): AreaFile[] {
  const folder = join(__dirname, '..', room);
  const contexts = readdirSync(folder, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && entry.name !== MACHINERY,
  );
  const areas = contexts.flatMap(({ name: context }) =>
    readdirSync(join(folder, context)).flatMap((file) => {
      const name = AREA.exec(file)?.[1];
      return name === undefined ? [] : [{ context, name, file: join(folder, context, file) }];
    }),
  );
  return areas.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
}

/** Exports of one kind from the areas of a room. A declared area is served without being listed anywhere. */
function exported<T>(room: string, is: (value: object) => boolean): T[] {
  return areasOf(room).flatMap(({ file }) => {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- which files there are is known only now
    const area = require(file) as Record<string, unknown>;
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

/** Read models that a command waits for. */
export const READERS = readersOf(PROJECTIONS, EVENTS);
