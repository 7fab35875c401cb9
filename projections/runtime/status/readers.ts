import type { Readers } from '../../../app/read-your-writes';
import type { EventCatalogue } from '../../../kernel/event';
import type { Projection } from '../../../kernel/projection';

/** Read models that follow from types of events. */
export function readersOf(projections: readonly Projection[], events: EventCatalogue): Readers {
  const namesByType = (fits: (projection: Projection, type: string) => boolean) => {
    const names = new Map(
      [...events.keys()].map((type) => [type, projections.filter((one) => fits(one, type)).map(({ name }) => name)]),
    );
    return (types: readonly string[]): string[] => [...new Set(types.flatMap((type) => names.get(type) ?? []))];
  };
  return {
    shown: namesByType(
      ({ from, awaited = true }, type) => awaited && from.kind === 'domain_events' && from.types.includes(type),
    ),
    rights: namesByType((one, type) => 'revokes' in one && (one.revokes ?? []).includes(type)),
  };
}
