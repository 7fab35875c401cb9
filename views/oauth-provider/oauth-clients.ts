import { z } from 'zod';
import { CLIENT_TYPES, GRANT_TYPES } from '../../domain/oauth-provider/oauth-clients';

const dateTime = z.string().meta({ format: 'date-time' });

/** An OAuth client as administrators see it; never its secret. Source: spec extra-facts §27. */
export const OauthClient = z
  .object({
    client_id: z.uuid(),
    name: z.string(),
    client_type: z.enum(CLIENT_TYPES).meta({ id: 'OauthClientType' }),
    account_id: z.uuid().nullable().describe('What client_credentials act on'),
    redirect_uris: z.array(z.string()),
    scopes: z.array(z.string()),
    grant_types: z.array(z.enum(GRANT_TYPES).meta({ id: 'OauthGrantType' })),
    enabled: z.boolean().describe('A disabled client starts nothing new; what it was given lives on'),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'OauthClient' });
export type OauthClient = z.output<typeof OauthClient>;
