import { v7 } from 'uuid';
import type { Caller, RequestContext } from '../../access/caller';
import { anonymous } from '../../access/resolve';
import type { Services } from '../../access/services';
import type { SubjectKeys } from '../../engines/subject-keys/port';

/** What is done to a system from its own machine works on. */
export type AdminServices = Pick<Services, 'db' | 'events' | 'commit' | 'settle' | 'secrets' | 'relay'> & {
  subject_keys: SubjectKeys;
};

/** The operator as events name who did it; `credential_id` tells by what. */
export function asOperator(credential_id: string): { caller: Caller; context: RequestContext } {
  return {
    caller: { ...anonymous('127.0.0.1'), kind: 'system_key', credential_id, rate_bucket: 'system', rate_limit: null },
    context: { correlation_id: v7(), trace: null, ip: '127.0.0.1', now: Date.now(), idempotency_seed: null },
  };
}

/** What the operator's request looks like where nothing else is said. */
export const OPERATOR = 'lumio-admin';

export const nowText = (): string => new Date().toISOString();

/** Something that the operator named is not there, or cannot be so; the message is for them. */
export class AdminError extends Error {}
