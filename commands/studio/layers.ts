import { z } from 'zod';
import { command, conflict, invalid, patch, permission, put, type Refuse } from '../../app/operation';
import { layers, layersStream, MAX_CONFIGS_BYTES, MAX_LAYERS, type Layers } from '../../domain/studio/layers';
import { configProblem, layerSettings } from '../../domain/studio/widget-types';
import type { JsonObject } from '../../lib/json/json';
import { inOrder, OverlayLayers, type OverlayLayer } from '../../views/studio/overlays';
import { editableOverlay, NOT_AN_EDITOR, OVERLAY_NOT_FOUND, OVERLAYS, shownName } from './overlay-parts';

const config = z.record(z.string(), z.unknown()).meta({ graphql: 'JSON' });
const members = {
  name: shownName.nullish().describe('Of a new layer by default its type'),
  config: config.nullish().describe('Of a new layer by default empty'),
  visible: z.boolean().nullish().describe('Of a new layer by default true'),
  sort_order: z.int().min(-1_000_000).max(1_000_000).nullish().describe('Of a new layer by default its index'),
  locked: z.boolean().nullish().describe('Of a new layer by default false'),
};

const LAYER_ERRORS = {
  ...OVERLAY_NOT_FOUND,
  ...NOT_AN_EDITOR,
  STALE_REVISION: conflict('The layers were changed meanwhile', { shows: ['revision'] }),
  UNKNOWN_TYPE: invalid('layers: {type} is none of the types of layers'),
  BAD_CONFIG: invalid('layers: {problem}'),
  UNKNOWN_LAYER: invalid('layers: the overlay has no layer {id}'),
  REPEATED_LAYER: invalid('layers: the id {id} is repeated'),
  TOO_MANY_LAYERS: invalid(`An overlay has at most ${MAX_LAYERS} layers`),
  TOO_LARGE_CONFIGS: invalid(`The configs of all layers are larger than ${MAX_CONFIGS_BYTES} bytes`),
};
const revision = z.int().min(0).describe('The revision that the caller changes');
const inputOf = <One extends z.ZodType>(one: One) =>
  z.object({ overlay_id: z.uuid(), revision, layers: z.array(one).max(1_000) });
const edits = {
  guard: [OVERLAYS, permission('overlays:edit')],
  output: OverlayLayers,
  errors: LAYER_ERRORS,
} as const;

function checkedConfig(type: string, given: JsonObject, refuse: Refuse<typeof LAYER_ERRORS>): string {
  const settings = layerSettings(type);
  if (settings === undefined) throw refuse('UNKNOWN_TYPE', { type: type.slice(0, 100) });
  const problem = configProblem(settings, given);
  if (problem !== null) throw refuse('BAD_CONFIG', { problem });
  return JSON.stringify(given);
}

const shown = (overlay_id: string, state: Layers): z.output<typeof OverlayLayers> => ({
  overlay_id,
  revision: state.revision,
  layers: inOrder(Object.values(state.layers)).map((one): OverlayLayer => ({
    ...one,
    config: JSON.parse(one.config) as JsonObject,
  })),
});

/** Replaces the set of an overlay's layers. Source: spec extra-facts §7. */
export const updateOverlayLayers = command({
  name: 'updateOverlayLayers',
  summary: 'Replaces the layers of an overlay; layers with a sent id stay, missing ones are deleted',
  rest: put('/v1/overlays/{overlay_id}/layers'),
  per_minute: 240,
  ...edits,
  input: inputOf(
    z
      .object({
        id: z.uuid().nullish().describe('Of a layer that stays'),
        type: z.string().max(100),
        ...members,
      })
      .meta({ id: 'OverlayLayerInput' }),
  ),
  async run({ input, caller, act, refuse, newId }, services) {
    const { overlay_id } = input;
    const { key } = await editableOverlay(services, caller, overlay_id, refuse);
    const sent = input.layers.map((one, index) => ({
      id: one.id ?? newId(`layer ${index}`),
      is_new: !one.id,
      type: one.type,
      name: one.name ?? one.type,
      config: checkedConfig(one.type, (one.config ?? {}) as JsonObject, refuse),
      visible: one.visible ?? true,
      sort_order: one.sort_order ?? index,
      locked: one.locked ?? false,
    }));
    const of = { overlay_id, account_id: caller.account_id, key, revision: input.revision };
    const { state } = await act(layers, layersStream(overlay_id), { type: 'layers:replace', ...of, layers: sent });
    return shown(overlay_id, state);
  },
});

/** Changes members of single layers. */
export const patchOverlayLayers = command({
  name: 'patchOverlayLayers',
  summary: 'Changes the sent members of the layers that are named by their ids',
  rest: patch('/v1/overlays/{overlay_id}/layers'),
  per_minute: 600,
  ...edits,
  input: inputOf(
    z
      .object({
        id: z.uuid(),
        ...members,
      })
      .meta({ id: 'OverlayLayerPatch' }),
  ),
  async run({ input, caller, act, refuse }, services) {
    const { overlay_id } = input;
    const { key } = await editableOverlay(services, caller, overlay_id, refuse);
    // The type of a layer is known in its stream alone: what is stored fits it.
    const given = ({ layers: known }: Layers) => {
      for (const { id, config: sent } of input.layers) {
        const type = known[id]?.type;
        if (type !== undefined && sent) checkedConfig(type, sent as JsonObject, refuse);
      }
    };
    const sent = input.layers.map((one) => ({
      id: one.id,
      name: one.name ?? undefined,
      config: one.config ? JSON.stringify(one.config) : undefined,
      visible: one.visible ?? undefined,
      sort_order: one.sort_order ?? undefined,
      locked: one.locked ?? undefined,
    }));
    const of = { overlay_id, account_id: caller.account_id, key, revision: input.revision };
    const { state } = await act(
      layers,
      layersStream(overlay_id),
      { type: 'layers:patch', ...of, layers: sent },
      { precondition: given },
    );
    return shown(overlay_id, state);
  },
});
