import type { JsonObject } from '../../lib/json/json';

/** A personal value as its event keeps it, encrypted under the person's key, and what it is bound to there. */
export interface Sealed {
  /** Base64. */
  sealed: string;
  key: string;
  bound: string;
}

export interface AuditActor {
  /** Kind of the credential, or `service`. */
  kind: string | null;
  /** Id of the user; of the key when the actor has no user. */
  id: string | null;
  /** The member for whom the popout token of `id` acts; absent when that is the same user. */
  acts_for?: string;
}

/** An entry as it is kept: all that its hash covers. */
export interface AuditEntry {
  /** Id of the event that it was made of. */
  id: string;
  /** `account:<id>`, `user:<id>` for entries without an account, or `installation`. */
  chain: string;
  account_id: string | null;
  action: string;
  actor: AuditActor;
  target: { kind: string; id: string };
  /** Personal members are null here and below, and in `personal`. */
  before: JsonObject | null;
  after: JsonObject | null;
  /** By place: `before.<member>`, `after.<member>`, `ip`. */
  personal: Readonly<Record<string, Sealed>>;
  type: string;
  position: string;
  /** RFC 3339 UTC. */
  created_at: string;
}
