import { z } from 'zod';
import type { Act } from '../../app/write-path/act';
import { adminPermission, command, invalid, patch } from '../../app/operation';
import { AdminPlatform, AdminProvider, adminProviders, platformOf } from '../../views/connections/providers';
import { PROVIDER_NOT_FOUND, ProviderSlug } from '../../views/connections/providers';
import type { Services } from '../../app/services';
import { featureFlag, featureFlagStream } from '../../domain/operators/feature-flags';
import { CONNECTION_KINDS, PROVIDERS } from '../../domain/connections/providers';

const platform = ProviderSlug;

/**
 * Switches flags for everybody, and returns the provider afterwards. Each flag is a stream of its own, so a repetition
 * completes an interrupted call.
 */
async function switchProvider(
  { act, slug, to }: { act: Act; slug: string; to: ReadonlyMap<string, boolean> },
  services: Services,
): Promise<AdminProvider> {
  for (const [flag, enabled] of to) {
    await act(featureFlag, featureFlagStream(flag), { type: 'feature_flag:switch', flag, enabled });
  }
  await services.access.announce({});
  const [provider] = await adminProviders(services, slug);
  const said = [...to].map(([flag, enabled]) => [flag.split(':')[2] ?? 'enabled', enabled]);
  return { ...provider!, ...Object.fromEntries(said) };
}

/** Stops only new logins and connections; existing ones stay. Source: spec extra-facts §26, §27. */
export const adminUpdateProvider = command({
  name: 'adminUpdateProvider',
  summary: 'Opens or closes a provider for new logins and connections; what is connected goes on',
  rest: patch('/v1/admin/providers/{platform}'),
  guard: [adminPermission('providers:edit')],
  input: z
    .object({
      platform,
      enabled: z.boolean().nullish().describe('The master switch'),
      login: z.boolean().nullish(),
      channel: z.boolean().nullish(),
      bot: z.boolean().nullish(),
    })
    .refine(
      (input) => [input.enabled, input.login, input.channel, input.bot].some((one) => typeof one === 'boolean'),
      'Nothing to change was given',
    ),
  output: AdminProvider,
  errors: { ...PROVIDER_NOT_FOUND, NO_SUCH_KIND: invalid('{platform} is not connected for {kind}') },
  async run({ input, act, refuse }, services) {
    const provider = PROVIDERS.find(({ slug }) => slug === input.platform);
    if (!provider) throw refuse('PROVIDER_NOT_FOUND');
    const { slug, kinds } = provider;
    const to = new Map<string, boolean>();
    if (typeof input.enabled === 'boolean') to.set(`platform:${slug}`, input.enabled);
    for (const kind of CONNECTION_KINDS) {
      const on = input[kind];
      if (typeof on !== 'boolean') continue;
      if (!kinds.includes(kind)) throw refuse('NO_SUCH_KIND', { platform: slug, kind });
      to.set(`platform:${slug}:${kind}`, on);
    }
    return switchProvider({ act, slug, to }, services);
  },
});

export const adminUpdatePlatform = command({
  name: 'adminUpdatePlatform',
  summary: 'Turns a platform off for new logins and connections of every kind, or on again',
  rest: patch('/v1/admin/platforms/{platform}'),
  guard: [adminPermission('platforms:edit')],
  input: z.object({ platform, enabled: z.boolean() }),
  output: AdminPlatform,
  errors: PROVIDER_NOT_FOUND,
  async run({ input: { platform: named, enabled: on }, act, refuse }, services) {
    if (!PROVIDERS.some(({ slug }) => slug === named)) throw refuse('PROVIDER_NOT_FOUND');
    return platformOf(await switchProvider({ act, slug: named, to: new Map([[`platform:${named}`, on]]) }, services));
  },
});
