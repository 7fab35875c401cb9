import { z } from 'zod';
import { UserApiKey } from './api-keys';

const { id, key_prefix, label, created_at, last_used_at } = UserApiKey.shape;

/** A system key as shown to operators; never the key itself. Source: spec doc1 §5.4. */
export const SystemKey = z
  .object({
    id,
    key_prefix,
    label,
    permissions: z.array(z.string()).describe('`resource:*` is every action of that resource'),
    is_system: z.boolean(),
    created_at,
    last_used_at,
  })
  .meta({ id: 'SystemKey' });
