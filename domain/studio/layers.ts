import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';

/** A layer of an overlay; `config` is JSON text. Source: spec extra-facts §7. */
const layer = z.object({
  id: z.uuid(),
  type: z.string(),
  name: z.string(),
  config: z.string(),
  visible: z.boolean(),
  sort_order: z.int(),
  locked: z.boolean(),
});
export type Layer = z.output<typeof layer>;

/** Changes of an overlay's layers; a change has the changed and removed layers alone. */
export const LAYER_EVENTS = events({
  'overlay:layers_changed': event(
    {
      overlay_id: z.uuid(),
      account_id: z.uuid(),
      key: z.string(),
      revision: z.int(),
      changed: z.array(layer),
      removed: z.array(z.uuid()),
      changed_at: instant(),
    },
    { audit: { omit: ['key', 'changed'] } },
  ),
});
export type LayerEvent = EventOf<typeof LAYER_EVENTS>;

interface Of {
  overlay_id: string;
  account_id: string;
  key: string;
  /** The revision that the caller changes. */
  revision: number;
  now: string;
}
type SetCommand = Of &
  (
    | { type: 'layers:replace'; layers: readonly (Omit<Layer, 'id'> & { id: string; is_new: boolean })[] }
    | { type: 'layers:patch'; layers: readonly LayerPatch[] }
    /** Layers of a new overlay, copied from another. */
    | { type: 'layers:copy'; layers: readonly Layer[] }
  );
/** Shows or hides one layer, at any revision. */
type ShowCommand = Omit<Of, 'revision'> & { type: 'layers:show'; layer_id: string; visible: boolean };
export type LayerCommand = SetCommand | ShowCommand;
export type LayerPatch = { id: string } & {
  [Member in 'name' | 'config' | 'visible' | 'sort_order' | 'locked']?: Layer[Member] | undefined;
};

export interface Layers {
  revision: number;
  layers: Readonly<Record<string, Layer>>;
}

/** Layers of an overlay. */
export const MAX_LAYERS = 100;
/** Configs of all layers, as JSON. */
export const MAX_CONFIGS_BYTES = 512 * 1024;

export const layersStream = (overlay_id: string): string => `overlay-layers-${overlay_id}`;

export const layers: Decider<Layers, LayerCommand, LayerEvent> = {
  initial: { revision: 0, layers: {} },
  decide(state, command) {
    const { overlay_id, account_id, key, now } = command;
    if (command.type !== 'layers:show' && command.revision !== state.revision)
      throw new DomainError('STALE_REVISION', { revision: state.revision });
    const next = command.type === 'layers:show' ? shownIn(state, command) : nextOf(state, command);
    const all = Object.values(next);
    if (all.length > MAX_LAYERS) throw new DomainError('TOO_MANY_LAYERS');
    const bytes = all.reduce((sum, { config }) => sum + Buffer.byteLength(config), 0);
    if (bytes > MAX_CONFIGS_BYTES) throw new DomainError('TOO_LARGE_CONFIGS');
    const changed = all.filter((one) => !isSame(state.layers[one.id], one));
    const removed = Object.keys(state.layers).filter((id) => !(id in next));
    if (changed.length === 0 && removed.length === 0) return [];
    const revision = state.revision + 1;
    const of = { overlay_id, account_id, key };
    return [{ type: 'overlay:layers_changed', ...of, revision, changed, removed, changed_at: now }];
  },
  evolve(state, { revision, changed, removed }) {
    const gone = new Set(removed);
    const kept = Object.values(state.layers).filter(({ id }) => !gone.has(id));
    return { revision, layers: Object.fromEntries([...kept, ...changed].map((one) => [one.id, one])) };
  },
};

function shownIn({ layers: all }: Layers, { layer_id: id, visible }: ShowCommand): Layers['layers'] {
  const known = all[id];
  if (known === undefined) throw new DomainError('UNKNOWN_LAYER', { id });
  return { ...all, [id]: { ...known, visible } };
}

function nextOf(state: Layers, command: SetCommand): Layers['layers'] {
  const seen = new Set<string>();
  for (const { id } of command.layers) {
    if (seen.has(id)) throw new DomainError('REPEATED_LAYER', { id });
    seen.add(id);
  }
  switch (command.type) {
    case 'layers:copy':
      return Object.fromEntries(command.layers.map((one) => [one.id, one]));
    case 'layers:replace':
      return Object.fromEntries(
        command.layers.map(({ is_new, ...one }) => {
          const known = state.layers[one.id];
          if (!is_new && known === undefined) throw new DomainError('UNKNOWN_LAYER', { id: one.id });
          return [one.id, one];
        }),
      );
    case 'layers:patch': {
      const patched = command.layers.map(({ id, ...sent }) => {
        const known = state.layers[id];
        if (known === undefined) throw new DomainError('UNKNOWN_LAYER', { id });
        const { name = known.name, config = known.config, visible = known.visible } = sent;
        const { sort_order = known.sort_order, locked = known.locked } = sent;
        return [id, { ...known, name, config, visible, sort_order, locked }] as const;
      });
      return { ...state.layers, ...Object.fromEntries(patched) };
    }
  }
}

function isSame(before: Layer | undefined, after: Layer): boolean {
  return (
    before !== undefined &&
    before.type === after.type &&
    before.name === after.name &&
    before.config === after.config &&
    before.visible === after.visible &&
    before.sort_order === after.sort_order &&
    before.locked === after.locked
  );
}
