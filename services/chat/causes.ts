import { createHash } from 'node:crypto';
import type { RequestContext } from '../../access/authentication/caller';
import { actAsService, serviceContext } from '../../app/service-calls';
import type { Services } from '../../app/services';
import type { Act } from '../../app/write-path/act';
import { newId } from '../../app/write-path/event-ids';

/** Commands and context of whoever acts in a chat. */
export interface ChatCause {
  act: Act;
  context: RequestContext;
}

/**
 * Cause of a bot, an automation or an extension: the same key gives the same id, by which messages, announcements,
 * shout-outs and acts of moderators are carried out once.
 */
export function causeOf(
  { events }: Pick<Services, 'events'>,
  service: string,
  key: string,
): ChatCause & { cause_id: string } {
  const context = serviceContext(createHash('sha256').update(`${service}\n${key}`).digest('hex'));
  return { cause_id: newId(context, 'chat'), act: actAsService(service, events, context), context };
}
