import { z } from 'zod';
import type { Act } from '../../app/write-path/act';
import { adminPermission, command, del, invalid, post } from '../../app/operation';
import type { Services } from '../../app/services';
import { chatErasure, chatErasureStream } from '../../domain/chat/chat-erasures';
import { PLATFORMS } from '../../domain/common/vendors';
import { subjectsOfUser } from '../../services/chat/subjects';

const counts = {
  deleted_message_count: z.int().min(0).describe('Chat messages by the person, over all accounts'),
  affected_account_ids: z.array(z.uuid()).describe('Accounts in whose chats the person wrote'),
};
const platform_user_id = z.string().min(1).max(100);

async function erase(services: Services, act: Act, erasure_id: string, subjects: readonly string[]) {
  const erased = await services.eraseChats(subjects);
  const { hashes, deleted_messages: deleted_message_count, account_ids: affected_account_ids } = erased;
  const noted = { erasure_id, subjects: hashes, deleted_message_count, affected_account_ids };
  await act(chatErasure, chatErasureStream(erasure_id), { type: 'chat:note_erasure', ...noted });
  return { erased_key_count: erased.erased_profiles, deleted_message_count, affected_account_ids };
}

/** Erases a person from the chats of all accounts for good. */
export const eraseChatSubjectData = command({
  name: 'eraseChatSubjectData',
  // Source: spec doc2 §2.10, §4.2 and §4.3.
  summary: 'Erases a person from the chats of all accounts: their messages for good, and their names elsewhere',
  rest: post('/v1/admin/privacy/chat/erase'),
  graphql: { argument: 'input' },
  guard: [adminPermission('admin:privacy-erase')],
  input: z
    .object({
      lumio_user_id: z.uuid().nullish().describe('A registered user: all logins that they have or had'),
      platform: z.enum(PLATFORMS).nullish(),
      user_id: platform_user_id.nullish().describe("The platform's id of the person; together with `platform`"),
    })
    .meta({ id: 'EraseChatSubjectInput' }),
  output: z.object(counts).meta({ id: 'EraseChatSubjectResult' }),
  errors: {
    SUBJECT_NEEDED: invalid('Name one person: either lumio_user_id, or both platform and user_id'),
  },
  async run({ input: { lumio_user_id, platform, user_id }, act, newId, refuse }, services) {
    const by_user = lumio_user_id ? 1 : 0;
    const by_platform = (platform ? 1 : 0) + (user_id ? 1 : 0);
    if (by_user + by_platform === 0 || (by_user > 0 && by_platform > 0) || by_platform === 1)
      throw refuse('SUBJECT_NEEDED');
    const subjects = lumio_user_id ? await subjectsOfUser(services, lumio_user_id) : [`${platform!}:${user_id!}`];
    const { erased_key_count: _keys, ...result } = await erase(services, act, newId('chat-erasure'), subjects);
    return result;
  },
});

/** Erases a member of YouTube channels. */
export const eraseYoutubeMemberData = command({
  name: 'eraseYoutubeMemberData',
  // Source: spec doc2 §2.10, §4.2 and §4.3.
  summary: 'Erases a member of YouTube channels, by the id of their own channel',
  rest: del('/v1/admin/privacy/youtube/member/{id}', { status: 200, envelope: 'item' }),
  graphql: { argument: 'input' },
  guard: [adminPermission('admin:privacy-erase')],
  input: z.object({ id: platform_user_id }).meta({ id: 'EraseYoutubeMemberDataInput' }),
  output: z
    .object({
      erased_key_count: z
        .int()
        .min(0)
        .describe('Profiles of the person and cooldowns of their refreshes, over all accounts'),
      ...counts,
    })
    .meta({ id: 'EraseYoutubeMemberDataResult' }),
  run: ({ input: { id }, act, newId }, services) => erase(services, act, newId('chat-erasure'), [`youtube:${id}`]),
});
