import { z } from 'zod';
import { channelConnectionsOf, ChannelConnection, offered } from '../../views/connections/connections';
import {
  ConnectionStatus,
  connectionStatusesOf,
  FlaggedConnection,
  flaggedOf,
} from '../../views/connections/connection-statuses';
import {
  AccountApp,
  accountAppsOf,
  credentialModesOf,
  PlatformCredentialMode,
} from '../../services/connections/credential-modes';
import { feature, firstParty, get, permission, query, whole } from '../../app/operation';

const guard = [feature('feature:connections'), permission('connections:read')] as const;

/** Source: spec doc2 §2.10, §4.2. */
export const connectionStatuses = query({
  name: 'connectionStatuses',
  summary: "Whether the active account's channels and the caller's own logins can be used, one for each platform",
  rest: get('/v1/connections/status'),
  pages: whole(),
  guard,
  input: z.object({}),
  output: ConnectionStatus,
  run: ({ caller }, { db }) => connectionStatusesOf(db, caller),
});

/** Source: spec doc2 §2.10, §4.2. */
export const platformCredentialModes = query({
  name: 'platformCredentialModes',
  summary: "With whose app each platform is connected: the installation's or the account's own",
  rest: get('/v1/connections/credential-modes'),
  pages: whole(),
  guard,
  input: z.object({}),
  output: PlatformCredentialMode,
  run: ({ caller: { account_id } }, services) => credentialModesOf(services, account_id),
});

/** Source: spec extra-facts §13. */
export const connectionCredentials = query({
  name: 'connectionCredentials',
  summary: 'The apps that the active account has registered at platforms, without their secrets',
  rest: get('/v1/connections/credentials'),
  pages: whole(),
  guard,
  input: z.object({}),
  output: AccountApp,
  run: ({ caller: { account_id } }, { db }) => accountAppsOf(db, account_id),
});

/** Source: spec doc2 §4.2. */
export const channelConnections = query({
  name: 'channelConnections',
  summary: "The active account's channels, of platforms that are offered for channels",
  rest: get('/v1/connections/channel'),
  pages: whole(),
  guard,
  input: z.object({}),
  output: ChannelConnection,
  run: async ({ caller: { account_id } }, services) =>
    offered(services, 'channel', account_id, await channelConnectionsOf(services, account_id)),
});

/** Source: spec doc1 §5.8, doc2 §4.3. */
export const flaggedConnections = query({
  name: 'flaggedConnections',
  summary: "What must be connected again: the caller's logins, and what they may see of the active account",
  rest: get('/v1/connections/flagged'),
  pages: whole(),
  guard: [firstParty],
  input: z.object({}),
  output: FlaggedConnection,
  run: ({ caller }, { db }) => flaggedOf(db, caller),
});
