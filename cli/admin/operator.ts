import { v7 } from 'uuid';
import type { Caller, RequestContext } from '../../access/caller';
import { anonymous } from '../../access/resolve';
import type { Services } from '../../access/services';
import type { SubjectKeys } from '../../engines/subject-keys/port';

/** The services that an operator's commands work with. */
export type AdminServices = Pick<Services, 'db' | 'events' | 'commit' | 'awaitShown' | 'secrets' | 'relay'> & {
  subject_keys: SubjectKeys;
};

/** A request of the operator: events name a system key as their actor, and `credential_id` says which tool it was. */
export function asOperator(credential_id: string): { caller: Caller; context: RequestContext } {
  return {
    caller: { ...anonymous('127.0.0.1'), kind: 'system_key', credential_id, rate_bucket: 'system', rate_limit: null },
    context: { correlation_id: v7(), trace: null, ip: '127.0.0.1', now: Date.now(), idempotency_seed: null },
  };
}

/** `credential_id` of the commands of `lumio admin`. */
export const OPERATOR = 'lumio-admin';

export const nowText = (): string => new Date().toISOString();

/** Something that the operator named is not there, or cannot be so; the message is for them. */
export class AdminError extends Error {}
