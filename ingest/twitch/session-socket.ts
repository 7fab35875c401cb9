import type { EventSubFrame, EventSubSession, Twitch } from '../../vendors/twitch/port';
import { LinkLost, type Link } from '../runtime/connection/adapter';

/** Opens an EventSub session whose frames go to `onFrame`. @throws LinkLost when Twitch opens none */
export function openSession(
  twitch: Pick<Twitch, 'open'>,
  link: Pick<Link, 'heard' | 'full'>,
  onFrame: (frame: EventSubFrame) => void,
  signal: AbortSignal,
): Promise<EventSubSession> {
  const listener = { onFrame, onAlive: (at: number) => link.heard(at), full: () => link.full };
  return twitch.open(listener, signal).catch((cause: unknown) => {
    throw new LinkLost(`Twitch did not open a session: ${(cause as Error).message}`, { cause });
  });
}

/** Pauses the session's socket until the link has stored what waits; resumes the socket that the session has then. */
export async function pauseUntilDrained(
  link: Pick<Link, 'drained'>,
  socket: () => EventSubSession | undefined,
): Promise<void> {
  socket()?.pause();
  await link.drained();
  socket()?.resume();
}
