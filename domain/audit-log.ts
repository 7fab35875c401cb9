import type { JsonObject } from '../kernel/json';

/** A personal value as its event keeps it, encrypted under the person's key, and what it is bound to there. */
export interface Sealed {
  /** Base64. */
  sealed: string;
  key: string;
  bound: string;
}

/** An entry as it is kept: all that its hash covers. */
export interface AuditEntry {
  /** Id of the event that it was made of. */
  id: string;
  /** `account:<id>`, `user:<id>` for entries without an account, or `installation`. */
  chain: string;
  account_id: string | null;
  action: string;
  actor: { kind: string | null; id: string | null };
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
