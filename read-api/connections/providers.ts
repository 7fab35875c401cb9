import { z } from 'zod';
import { adminPermission, get, publicAccess, query, whole } from '../../app/operation';
import {
  AdminPlatform,
  AdminProvider,
  adminProviderOf,
  adminProviders as providersOf,
  enabledFor,
  platformOf,
  PROVIDER_NOT_FOUND,
  ProviderSlug,
} from '../../views/connections/providers';
import { CONNECTION_KINDS } from '../../domain/connections/providers';

/** Source: spec doc2 §4.3. */
export const enabledPlatforms = query({
  name: 'enabledPlatforms',
  summary: 'Platforms that people may log in with, or that a bot may be connected to',
  rest: get('/v1/platforms/enabled'),
  guard: [publicAccess],
  input: z.object({}),
  output: z.array(z.string()),
  run: (_request, { db }) => enabledFor(db, ['login', 'bot']),
});

/** Source: spec doc2 §4.1, §4.3. */
export const enabledProviders = query({
  name: 'enabledProviders',
  summary: 'Providers that may be connected now',
  rest: get('/v1/providers/enabled'),
  guard: [publicAccess],
  input: z.object({ connection_type: z.enum(CONNECTION_KINDS).nullish().describe('For what; absent: for anything') }),
  output: z.array(z.string()),
  run: ({ input: { connection_type } }, { db }) =>
    enabledFor(db, connection_type ? [connection_type] : CONNECTION_KINDS),
});

/** Excludes vendors without logins, channels and bots, such as the tip service. Source: spec doc2 §4.2. */
export const adminProviders = query({
  name: 'adminProviders',
  summary: 'Every provider with its switches and how many connections there are',
  rest: get('/v1/admin/providers'),
  pages: whole(),
  guard: [adminPermission('providers:read')],
  input: z.object({}),
  output: AdminProvider,
  run: (_request, services) => providersOf(services),
});

export const adminProvider = query({
  name: 'adminProvider',
  summary: 'One provider with its switches and how many connections there are',
  rest: get('/v1/admin/providers/{platform}'),
  guard: [adminPermission('providers:read')],
  input: z.object({ platform: ProviderSlug }),
  output: AdminProvider,
  errors: PROVIDER_NOT_FOUND,
  run: ({ input: { platform } }, services) => adminProviderOf(services, platform),
});

export const adminPlatforms = query({
  name: 'adminPlatforms',
  summary: 'Every platform with its master switch',
  rest: get('/v1/admin/platforms'),
  pages: whole(),
  guard: [adminPermission('platforms:read')],
  input: z.object({}),
  output: AdminPlatform,
  run: async (_request, services) => (await providersOf(services)).map(platformOf),
});

export const adminPlatform = query({
  name: 'adminPlatform',
  summary: 'One platform with its master switch',
  rest: get('/v1/admin/platforms/{platform}'),
  guard: [adminPermission('platforms:read')],
  input: z.object({ platform: ProviderSlug }),
  output: AdminPlatform,
  errors: PROVIDER_NOT_FOUND,
  run: async ({ input: { platform } }, services) => platformOf(await adminProviderOf(services, platform)),
});
