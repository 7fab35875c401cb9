import { z } from 'zod';
import { appInput, CredentialModeValue } from '../../services/connections/credential-modes';
import { ConnectionResult } from '../../services/connections/disconnecting';
import { dropApp, INSTALLATION, keptApp, writeApp } from '../../services/connections/oauth-apps';
import { adminPermission, command, del, invalid, notFound, put } from '../../app/operation';
import { SystemConnection, systemConnectionsOf } from '../../views/operators/system-connections';
import { APP_PLATFORMS, systemConnection, systemConnectionStream } from '../../domain/operators/system-connections';

const platform = z.enum(APP_PLATFORMS);
const mode = CredentialModeValue.nullish();

/** Stores the installation's app and modes; the secret is never shown again. Source: spec extra-facts §27. */
export const updateSystemConnection = command({
  name: 'updateSystemConnection',
  summary: "Keeps the installation's app at a platform, or says whose app connections are made with",
  rest: put('/v1/admin/system-connections/{platform}'),
  graphql: { argument: 'input', flat_arguments: ['platform'] },
  guard: [adminPermission('system-connections:edit')],
  input: z.object({
    platform,
    client_id: appInput.client_id.nullish(),
    client_secret: appInput.client_secret.nullish(),
    channel_mode: mode,
    bot_mode: mode,
  }),
  output: SystemConnection,
  errors: {
    BOTH_OR_NONE: invalid('client_id and client_secret belong together'),
    NOTHING_TO_CHANGE: invalid('Nothing to change was given'),
  },
  async run({ input, act, refuse }, services) {
    const { platform, client_id, client_secret, channel_mode, bot_mode } = input;
    if (Boolean(client_id) !== Boolean(client_secret)) throw refuse('BOTH_OR_NONE');
    if (!client_id && !channel_mode && !bot_mode) throw refuse('NOTHING_TO_CHANGE');
    const stream = systemConnectionStream(platform);
    if (client_id && client_secret) {
      // Before the event, so that an announced app is usable.
      await writeApp(services, { owner: INSTALLATION, platform, app: { client_id, client_secret } });
      await act(systemConnection, stream, { type: 'system_connection:set_app', platform, client_id }, { step: 'app' });
    }
    if (channel_mode || bot_mode) {
      const modes = { channel_mode: channel_mode ?? undefined, bot_mode: bot_mode ?? undefined };
      const set = { type: 'system_connection:set_modes', platform, ...modes } as const;
      await act(systemConnection, stream, set, { step: 'modes' });
    }
    const [found] = await systemConnectionsOf(services, platform);
    return found!;
  },
});

/** Deletes the installation's app. Connections made with it work until their tokens end. */
export const deleteSystemConnection = command({
  name: 'deleteSystemConnection',
  summary: "Forgets the installation's app at a platform: what was connected with it must be connected again in time",
  rest: del('/v1/admin/system-connections/{platform}'),
  guard: [adminPermission('system-connections:delete')],
  input: z.object({ platform }),
  output: ConnectionResult,
  errors: { SYSTEM_CONNECTION_NOT_FOUND: notFound('System connection not found') },
  async run({ input: { platform }, act }, services) {
    const remove = { type: 'system_connection:remove_app', platform } as const;
    const kept = await keptApp(services.db, INSTALLATION, platform);
    const { replayed } = await act(systemConnection, systemConnectionStream(platform), remove);
    // On a repetition the reactor deletes the secret, because a new one may have been stored since the first attempt.
    if (!replayed) await dropApp(services.db, INSTALLATION, platform, kept);
    return { success: true };
  },
});

/** Source: spec extra-facts §27. */
export const disconnectSystemBot = command({
  name: 'disconnectSystemBot',
  summary: "Takes the installation's bot off a platform",
  rest: del('/v1/admin/system-connections/{platform}/bot'),
  guard: [adminPermission('system-connections:delete')],
  input: z.object({ platform }),
  output: ConnectionResult,
  errors: { CONNECTION_NOT_FOUND: notFound('Connection not found') },
  async run({ input: { platform }, act }) {
    const gone = { type: 'system_connection:disconnect_bot', platform } as const;
    await act(systemConnection, systemConnectionStream(platform), gone);
    return { success: true };
  },
});
