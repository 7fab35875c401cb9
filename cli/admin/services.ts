import { createTokens, type Tokens } from '../../access/tokens';
import type { Settings } from '../../kernel/settings';
import { createReadModels } from '../../projections/runtime/read-models';
import type { FullContext } from '../runtime/context';
import { committing, shown } from '../../access/shown';
import { READERS } from '../../bin/areas';
import type { AdminServices } from './operator';

export interface AdminContext extends AdminServices {
  tokens: Tokens;
  settings: Settings;
  /** True when read models have not yet shown something that was stored: no projector runs, or it is behind. */
  behind(): boolean;
}

/** What the commands of `lumio admin` work on, over the engines of the configuration. */
export async function createAdminContext(context: FullContext): Promise<AdminContext> {
  const { db, events, secrets, relay, settings, subject_keys } = context;
  const read_models = createReadModels({ ...context, wait_ms: settings.read_models.wait });
  let behind = false;
  const awaitShown: AdminServices['awaitShown'] = async (context, written) => {
    behind = !(await shown(read_models, READERS, context, written)) || behind;
  };
  return {
    db,
    events,
    secrets,
    relay,
    settings,
    subject_keys,
    tokens: await createTokens({ db, secrets }),
    behind: () => behind,
    awaitShown,
    commit: committing(events, awaitShown),
  };
}
