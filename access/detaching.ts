import { z } from 'zod';
import { connectionReservations } from '../domain/connection-reservations';
import { connectionOf, connections, connectionsStream } from '../domain/connections';
import { DomainError } from '../kernel/errors';
import { notFound } from '../kernel/operation-errors';
import type { Act } from './act';
import { revive } from './connection-grants';
import { announceChannel } from './connection-lookup';
import type { Services } from './services';
import { statesOf } from './states';

/** What a command on a connection answers. */
export const Done = z.object({ success: z.boolean() }).meta({ id: 'ConnectionResult' });
export const CONNECTION_NOT_FOUND = { CONNECTION_NOT_FOUND: notFound('Connection not found') };

interface One {
  account_id: string;
  connection_id: string;
  kind: 'channel' | 'bot';
}

/**
 * Takes a channel or bot off an account, whoever asks for it; what is left at the vendor follows (reactors).
 * @throws DomainError of {@link CONNECTION_NOT_FOUND}
 */
export async function detach(act: Act, services: Pick<Services, 'events' | 'relay'>, one: One): Promise<void> {
  const { account_id, connection_id } = one;
  const { state } = await statesOf(services.events).load(connections, connectionsStream(account_id));
  const found = connectionOf(state, connection_id);
  await act(
    connections,
    connectionsStream(account_id),
    { type: 'connection:disconnect', ...one },
    { step: `disconnect ${connection_id}`, reservations: connectionReservations },
  );
  if (found?.kind === 'channel')
    await announceChannel(services.relay, found.platform, state.channels.get(found.platform)!.platform_channel_id);
}

/** Lets refused tokens be tried again. @throws DomainError of {@link CONNECTION_NOT_FOUND} */
export async function clearReconnect(act: Act, { db }: Pick<Services, 'db'>, one: One): Promise<void> {
  const { account_id, connection_id, kind } = one;
  await act(
    connections,
    connectionsStream(account_id),
    { type: 'connection:clear_reconnect', account_id, connection_id },
    {
      step: `clear ${connection_id}`,
      given: (state) => refuseOther(connectionOf(state, connection_id)?.kind !== kind),
    },
  );
  await revive(db, connection_id);
}

const refuseOther = (other: boolean) => other && new DomainError('CONNECTION_NOT_FOUND', {});
