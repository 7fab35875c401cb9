import { play } from './alerts';

/** Sounds at a time; further ones are not played. */
const MOST = 20;

interface Sent {
  sound_id: string;
  url?: string;
  volume?: number;
  target: { type: string; id: string } | null;
}

/** Plays the sounds of the account that are for all pages, or for this one. */
export class Sounds {
  private readonly playing = new Map<HTMLAudioElement, string>();

  constructor(private readonly is_own: (target: { type: string; id: string }) => boolean) {}

  take(event_type: string, data: Record<string, unknown>): void {
    const { sound_id, url, volume = 1, target } = data as unknown as Sent;
    if (target !== null && !this.is_own(target)) return;
    if (event_type === 'sound:stop') this.stop(sound_id);
    if (event_type !== 'sound:play' || url === undefined || this.playing.size >= MOST) return;
    const audio = play(url, volume);
    this.playing.set(audio, sound_id);
    const end = () => void this.playing.delete(audio);
    audio.addEventListener('ended', end);
    audio.addEventListener('error', end);
  }

  private stop(sound_id: string): void {
    for (const [audio, id] of this.playing) {
      if (id !== sound_id) continue;
      audio.pause();
      this.playing.delete(audio);
    }
  }
}
