import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { unreachable } from '../common/unreachable';

const ids = { sound_id: z.uuid(), account_id: z.uuid() };
/** JSON text of peaks, as clients draw them. */
const waveform = z.string().nullable();

/** Sounds of an account, in one stream of it: their number and bytes are bounded. Source: spec doc2 §2.13, §4.2. */
export const SOUND_EVENTS = events({
  'sound:created': event({
    ...ids,
    name: z.string(),
    filename: z.string(),
    content_type: z.string(),
    size_bytes: z.int(),
    duration_ms: z.int().nullable(),
    blob_key: z.string(),
    sha256: z.string(),
    created_by: z.uuid().nullable(),
    created_at: instant(),
  }),
  'sound:updated': event(
    { ...ids, name: z.string(), duration_ms: z.int().nullable(), waveform, updated_at: instant() },
    { audit: { omit: ['waveform'] } },
  ),
  'sound:deleted': event({ ...ids, blob_key: z.string(), deleted_at: instant() }),
});
export type SoundEvent = EventOf<typeof SOUND_EVENTS>;
type Created = Extract<SoundEvent, { type: 'sound:created' }>;

export type SoundCommand = { now: string } & (
  | ({ type: 'sound:create'; max_sounds: number; max_bytes: number } & Omit<Created, 'type' | 'created_at'>)
  | {
      type: 'sound:update';
      sound_id: string;
      name?: string | undefined;
      duration_ms?: number | null | undefined;
      waveform?: string | undefined;
    }
  /** Peaks that were found in the file; those that a client set stay. */
  | { type: 'sound:draw'; sound_id: string; waveform: string }
  | { type: 'sound:delete'; sound_id: string }
  /** The account is gone. */
  | { type: 'sound:delete_all' }
);

export interface Sound {
  account_id: string;
  name: string;
  size_bytes: number;
  duration_ms: number | null;
  waveform: string | null;
  blob_key: string;
}
/** Sounds of an account by id. */
export type Sounds = Readonly<Record<string, Sound>>;

export const soundsStream = (account_id: string): string => `sounds-${account_id}`;
/** The WebSocket channel of an account's sounds. Source: spec doc3 §4.1. */
export const soundsChannel = (account_id: string): string => `sounds:${account_id}`;

export const sounds: Decider<Sounds, SoundCommand, SoundEvent> = {
  initial: {},
  decide(state, command) {
    const { now } = command;
    switch (command.type) {
      case 'sound:create': {
        const { type: _type, now: _now, max_sounds, max_bytes, ...sound } = command;
        if (sound.sound_id in state) return [];
        const all = Object.values(state);
        if (all.length >= max_sounds) throw new DomainError('PLAN_LIMIT_REACHED', { limit: 'max_sounds' });
        const used = all.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
        if (used + sound.size_bytes > max_bytes)
          throw new DomainError('PLAN_LIMIT_REACHED', { limit: 'max_sound_storage_bytes' });
        return [{ type: 'sound:created', ...sound, created_at: now }];
      }
      case 'sound:update': {
        const { sound_id } = command;
        const sound = soundOf(state, sound_id);
        const { name = sound.name, duration_ms = sound.duration_ms, waveform: peaks = sound.waveform } = command;
        const is_same = name === sound.name && duration_ms === sound.duration_ms && peaks === sound.waveform;
        if (is_same) return [];
        const { account_id } = sound;
        return [{ type: 'sound:updated', sound_id, account_id, name, duration_ms, waveform: peaks, updated_at: now }];
      }
      case 'sound:draw': {
        const { sound_id, waveform: peaks } = command;
        const sound = state[sound_id];
        if (sound === undefined || sound.waveform !== null) return [];
        const { account_id, name, duration_ms } = sound;
        return [{ type: 'sound:updated', sound_id, account_id, name, duration_ms, waveform: peaks, updated_at: now }];
      }
      case 'sound:delete': {
        const { sound_id } = command;
        const { account_id, blob_key } = soundOf(state, sound_id);
        return [{ type: 'sound:deleted', sound_id, account_id, blob_key, deleted_at: now }];
      }
      case 'sound:delete_all':
        return Object.entries(state).map(([sound_id, { account_id, blob_key }]) => ({
          type: 'sound:deleted',
          ...{ sound_id, account_id, blob_key },
          deleted_at: now,
        }));
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'sound:created': {
        const { sound_id, account_id, name, size_bytes, duration_ms, blob_key } = event;
        return { ...state, [sound_id]: { account_id, name, size_bytes, duration_ms, waveform: null, blob_key } };
      }
      case 'sound:updated': {
        const { sound_id, name, duration_ms, waveform: peaks } = event;
        return { ...state, [sound_id]: { ...state[sound_id]!, name, duration_ms, waveform: peaks } };
      }
      case 'sound:deleted': {
        const { [event.sound_id]: _deleted, ...others } = state;
        return others;
      }
      default:
        return unreachable(event);
    }
  },
};

function soundOf(state: Sounds, sound_id: string): Sound {
  const sound = state[sound_id];
  if (sound === undefined) throw new DomainError('SOUND_NOT_FOUND', { sound_id });
  return sound;
}

/** Content types of sounds, by the first bytes of a file; null of any other. Source: spec doc1 §8. */
export function sniffSound(head: Uint8Array): string | null {
  const text = Buffer.from(head.subarray(0, 12)).toString('latin1');
  if (text.startsWith('ID3')) return 'audio/mpeg';
  // A frame of MPEG audio, layer III: eleven set bits, then a version that is not reserved.
  if (head[0] === 0xff && (head[1]! & 0xe6) === 0xe2 && (head[1]! & 0x18) !== 0x08) return 'audio/mpeg';
  if (text.startsWith('RIFF') && text.slice(8, 12) === 'WAVE') return 'audio/wav';
  if (text.startsWith('OggS')) return 'audio/ogg';
  return text.startsWith('fLaC') ? 'audio/flac' : null;
}
export const SOUND_TYPES = ['audio/mpeg', 'audio/wav', 'audio/ogg', 'audio/flac'] as const;
