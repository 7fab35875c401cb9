import { z } from 'zod';
import { badRequest, command, firstParty, forbidden, patch } from '../../app/operation';
import { changeProfile, profileInput } from '../../services/identity/profiles';
import { setActiveAccountAndReissueToken } from '../../services/identity/session-account';
import { Me, meOf } from '../../views/identity/users';
import { userPreferences, userPreferenceStream } from '../../domain/identity/user-preferences';

const UpdateMeInput = z
  .object({
    ...profileInput,
    active_account_id: z.uuid().optional().describe('An account that the user is a member of'),
    clear_active_account: z.boolean().optional().describe('True: go on without an account'),
    streamer_mode: z.boolean().optional(),
    extension_dev_mode: z.boolean().optional(),
  })
  .refine((changes) => Object.values(changes).some((value) => value !== undefined), 'At least one field must be given')
  .refine(
    ({ active_account_id, clear_active_account }) => active_account_id === undefined || clear_active_account !== true,
    'active_account_id and clear_active_account exclude each other',
  )
  .meta({ id: 'UpdateMeInput' });

/** Source: spec doc2 §4.2. */
export const updateMe = command({
  name: 'updateMe',
  summary: "Changes the caller's own profile and settings, or the account that their session acts on",
  rest: patch('/v1/users/me'),
  graphql: { argument: 'input' },
  guard: [firstParty],
  input: UpdateMeInput,
  output: Me,
  errors: {
    NOT_A_MEMBER: forbidden('This action requires membership of the account'),
    NO_SESSION: badRequest('An API key belongs to one account and cannot switch'),
  },
  async run({ input, caller, context, act, refuse }, services) {
    const { user_id } = caller;
    const { active_account_id, clear_active_account, display_name, email, ...preferences } = input;
    const account_id = clear_active_account === true ? null : (active_account_id ?? caller.account_id);
    const switched = account_id !== caller.account_id;
    if (switched && caller.kind !== 'jwt') throw refuse('NO_SESSION');
    const on = account_id === null || !switched ? null : await services.accounts.on(caller, account_id);
    if (on !== null && on.caller === null) throw refuse('NOT_A_MEMBER');

    await changeProfile(act, services.db, user_id, { display_name, email });
    const changes = { type: 'user_preference:set', user_id, changes: preferences } as const;
    await act(userPreferences, userPreferenceStream(user_id), changes);
    if (!switched || caller.credential_id === null) return meOf(services, caller);
    const own = { session_id: caller.credential_id };
    const token = await setActiveAccountAndReissueToken({ act, caller, context }, services, own, account_id);
    const now = on?.caller ?? { ...caller, permissions: new Set<string>() };
    return meOf(services, { ...now, user_id, account_id }, token);
  },
});
