import type { PlayedItem, PlayerState } from '../../vendors/spotify/port';

/** State of the player at a moment. */
export interface Seen {
  /** Unix milliseconds. */
  at: number;
  /** Null while nothing was played anywhere. */
  player: PlayerState | null;
  /** Last played item; an advertisement or a private session does not change it. */
  item: PlayedItem | null;
}

export interface Change {
  /** `track`, of `spotify:track`. */
  action: 'track' | 'play' | 'pause' | 'skip' | 'volume' | 'device';
  /** New value, which distinguishes two changes with the same action. */
  to: string;
  raw: object;
}

/** Maximum crossfade of two tracks: a track that ends within it was not skipped. */
const CROSSFADE_MS = 12_000;
/** Tolerated difference of a position from the expected one: clocks and the network are no better. */
const DRIFT_MS = 3_000;

/** Changes of the player between two polls, in the order of their events. Pure. Source: spec doc3 §6.2. */
export function changesOf(before: Seen, now: Seen): Change[] {
  const changes: Change[] = [];
  const then = before.player;
  const state = stateOf(now);
  const { device, item } = state;
  const tell = (action: Change['action'], to: string, more: object = {}) =>
    changes.push({ action, to, raw: { ...state, ...more } });

  const device_before = then?.device ?? null;
  if (device && device_before && isAnother(device.id, device_before.id)) {
    tell('device', device.id!, { previous: device_before });
  } else if (device && device_before && isAnother(device.volume_percent, device_before.volume_percent)) {
    const { volume_percent } = device_before;
    tell('volume', String(device.volume_percent), { previous: { volume_percent } });
  }
  // A missing item is not another item.
  const played_now = now.player?.item ?? null;
  if (played_now !== null && played_now.uri !== before.item?.uri) {
    const previous = { item: before.item, progress_ms: then?.progress_ms ?? null };
    if (skipped(before, now)) tell('skip', played_now.uri, { previous });
    tell('track', played_now.uri);
  }
  const played = then?.is_playing === true;
  if (state.is_playing !== played) tell(state.is_playing ? 'play' : 'pause', item?.uri ?? '');
  return changes;
}

/** Published state of the player; when it does not name the item, the last named one. */
export function stateOf({ player, item }: Seen): PlayerState {
  if (player === null) {
    return { item, is_playing: false, progress_ms: null, currently_playing_type: 'unknown', device: null };
  }
  return { ...player, item: player.item ?? (player.currently_playing_type === 'ad' ? null : item) };
}

/** Whether listeners need an update: after a change, or when the position differs from the clock. */
export function isNews(before: Seen, now: Seen): boolean {
  if (changesOf(before, now).length > 0) return true;
  const expected = expectedAt(before, now.at);
  const position = now.player?.progress_ms ?? null;
  return expected !== null && position !== null && Math.abs(position - expected) > DRIFT_MS;
}

/** Whether two values differ; null is unknown, and differs from nothing. */
const isAnother = (now: string | number | null, before: string | number | null): boolean =>
  now !== null && before !== null && now !== before;

function skipped(before: Seen, now: Seen): boolean {
  const left_at = expectedAt(before, now.at);
  return before.item !== null && left_at !== null && left_at < before.item.duration_ms - CROSSFADE_MS;
}

/** Expected position without any user action. */
function expectedAt({ at, player }: Seen, now: number): number | null {
  if (player === null || player.progress_ms === null || player.item === null) return null;
  return player.progress_ms + (player.is_playing ? now - at : 0);
}
