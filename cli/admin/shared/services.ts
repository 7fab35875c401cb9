import { createTokens, type Tokens } from '../../../access/authentication/tokens/jwt';
import type { Settings } from '../../../kernel/settings/settings';
import { createReadModels } from '../../../projections/runtime/status/read-models';
import type { FullContext } from '../../runtime/context';
import { createCommit, waitForReadModels } from '../../../app/read-your-writes';
import { READERS } from '../../../bin/areas';
import type { AdminServices } from './operator';

export interface AdminContext extends AdminServices {
  tokens: Tokens;
  settings: Settings;
  /** True when a stored event is not in the read models yet: no projector runs, or it is behind. */
  behind(): boolean;
}

/** Creates the context of `lumio admin` over the configured engines. */
export async function createAdminContext(context: FullContext): Promise<AdminContext> {
  const { db, events, secrets, relay, settings, subject_keys } = context;
  const read_models = createReadModels({ ...context, wait_ms: settings.read_models.wait });
  let behind = false;
  const awaitShown: AdminServices['awaitShown'] = async (context, written) => {
    behind = !(await waitForReadModels(read_models, READERS, context, written)) || behind;
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
    commit: createCommit(events, awaitShown),
  };
}
