import { v7 } from 'uuid';
import type { Caller, RequestContext } from '../../../access/authentication/caller';
import { anonymous } from '../../../access/authentication/resolve';
import type { Services } from '../../../app/services';
import type { SubjectKeys } from '../../../privacy/subject-keys/port';

/** Services of the operator's commands. */
export type AdminServices = Pick<Services, 'db' | 'events' | 'commit' | 'awaitShown' | 'secrets' | 'relay'> & {
  subject_keys: SubjectKeys;
};

/** A request of the operator: events record a system key as the actor, and the tool as its `credential_id`. */
export function asOperator(credential_id: string): { caller: Caller; context: RequestContext } {
  return {
    caller: { ...anonymous('127.0.0.1'), kind: 'system_key', credential_id, rate_bucket: 'system', rate_limit: null },
    context: { correlation_id: v7(), trace: null, ip: '127.0.0.1', now: Date.now(), idempotency_seed: null },
  };
}

/** `credential_id` of the commands of `lumio admin`. */
export const OPERATOR = 'lumio-admin';

export const nowText = (): string => new Date().toISOString();

/** The operator named something missing or impossible; the message is for them. */
export class AdminError extends Error {}
