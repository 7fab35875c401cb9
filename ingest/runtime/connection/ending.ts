import type { AdapterSession } from './adapter';

/** Ends a session that can be ended at any moment, and waits until it has. */
export async function endSession(session: AdapterSession & { end(): void }): Promise<void> {
  session.end();
  await session.ended.catch(() => undefined);
}
