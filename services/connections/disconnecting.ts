import { z } from 'zod';
import { connectionReservations } from '../../domain/connections/connection-reservations';
import { connectionOf, connections, connectionsStream } from '../../domain/connections/connections';
import { DomainError } from '../../kernel/errors';
import { notFound } from '../../kernel/operations/errors';
import type { Act } from '../../app/write-path/act';
import { revive } from './connection-grants';
import { announceChannel } from './connection-lookup';
import type { Services } from '../../app/services';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';

/** Answer of a command on a connection. */
export const ConnectionResult = z.object({ success: z.boolean() }).meta({ id: 'ConnectionResult' });
export const CONNECTION_NOT_FOUND = { CONNECTION_NOT_FOUND: notFound('Connection not found') };

interface ConnectionRef {
  account_id: string;
  connection_id: string;
  kind: 'channel' | 'bot';
}

/** Disconnects a channel or bot from an account; a reactor cleans up at the vendor. */
export async function disconnect(
  act: Act,
  services: Pick<Services, 'events' | 'relay'>,
  one: ConnectionRef,
): Promise<void> {
  const { account_id, connection_id } = one;
  const { state } = await aggregateCacheOf(services.events).load(connections, connectionsStream(account_id));
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

/**
 * Clears the reconnect flag, so that refused tokens are tried again. @throws DomainError of {@link
 * CONNECTION_NOT_FOUND}
 */
export async function clearReconnect(act: Act, { db }: Pick<Services, 'db'>, one: ConnectionRef): Promise<void> {
  const { account_id, connection_id, kind } = one;
  await act(
    connections,
    connectionsStream(account_id),
    { type: 'connection:clear_reconnect', account_id, connection_id },
    {
      step: `clear ${connection_id}`,
      precondition: (state) => refuseOther(connectionOf(state, connection_id)?.kind !== kind),
    },
  );
  await revive(db, connection_id);
}

const refuseOther = (other: boolean) => other && new DomainError('CONNECTION_NOT_FOUND', {});
