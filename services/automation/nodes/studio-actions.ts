import { layers, layersStream } from '../../../domain/studio/layers';
import { soundsChannel } from '../../../domain/studio/sounds';
import { DomainError } from '../../../kernel/errors';
import { fileLink } from '../../studio/file-links';
import { accountFlags } from '../account-flags';
import { done, type Executor, failed, type StepTools } from './executor';

async function hasFeature({ db }: StepTools, account_id: string, flag: string): Promise<boolean> {
  return (await accountFlags(db, [account_id], [flag]))(flag, account_id);
}

/** Plays a sound on all pages of the account. The message is not stored, so it is sent once at most. */
export const playSound: Executor = {
  calls: true,
  input: ({ config }) => ({ ...config }),
  async run({ account_id }, input, tools) {
    const { sound_id, volume = 1 } = input as { sound_id: string; volume?: number };
    if (!(await hasFeature(tools, account_id, 'feature:sounds'))) return failed('not_available');
    const [sound] = await tools.db.query<{ id: string }>(
      'select id from sounds where account_id = $1 and id = $2',
      [account_id, sound_id],
      'automation-sound',
    );
    if (sound === undefined) return failed('sound_not_found');
    const { id } = sound;
    const url = await fileLink(tools.hashes, { kind: 'sound', id, account_id }, Date.now());
    const channel = soundsChannel(account_id);
    const data = { sound_id: id, url, volume, target: null };
    await tools.live.broadcast(channel, { type: 'event', channel, event_type: 'sound:play', data });
    return done;
  },
};

/** Shows or hides a layer, whatever revision the layers have. A later try changes nothing further. */
export const setLayer: Executor = {
  input: ({ config }) => ({ ...config }),
  async run({ account_id }, input, tools) {
    const { overlay_id, layer_id, visible } = input as { overlay_id: string; layer_id: string; visible: boolean };
    if (!(await hasFeature(tools, account_id, 'feature:overlays'))) return failed('not_available');
    const [overlay] = await tools.db.query<{ id: string; key: string }>(
      'select id, key from overlays where account_id = $1 and id = $2',
      [account_id, overlay_id],
      'automation-overlay',
    );
    if (overlay === undefined) return failed('overlay_not_found');
    const { id, key } = overlay;
    const show = { overlay_id: id, account_id, key, layer_id: layer_id.toLowerCase(), visible };
    try {
      await tools.act(layers, layersStream(id), { type: 'layers:show', ...show });
    } catch (error) {
      if (error instanceof DomainError && error.reason === 'UNKNOWN_LAYER') return failed('layer_not_found');
      throw error;
    }
    return done;
  },
};
