import { type EventDeclaration, GLOBAL_ACCOUNT } from '../../kernel/event';
import type { Json, JsonObject } from '../../lib/json/json';
import type { AuditActor, Sealed } from './audit-log';

/** An event as an entry is made of it. */
export interface AuditedEvent {
  id: string;
  type: string;
  /** Personal members in clear, or null; which of them are sealed says `stored`. */
  data: JsonObject;
  stored?: JsonObject;
  metadata: Readonly<Record<string, string>>;
}

/** Members and their values; personal ones are null there, and beside it as they were sealed. */
export interface AuditDetail {
  members: JsonObject;
  personal: Readonly<Record<string, Sealed>>;
}

/** Entry of an event in the audit log, without the previous values. */
export interface AuditFacts {
  chain: string;
  account_id: string | null;
  action: string;
  actor: AuditActor;
  target: { kind: string; id: string };
  /** Tells apart what of the target it is about; '' when it is the target as such. */
  part: string;
  /** The target has ended, so the entry has no new values. */
  ends: boolean;
  said: AuditDetail;
}

/** Last words of types after which what they name is no more. */
const ENDS = new Set(
  'removed revoked deleted dissolved disconnected unlinked left ended released withdrawn unassigned'.split(' '),
);
/** Last words of the types that add something to an existing target. */
const ADDS = new Set('added assigned connected linked granted invited set'.split(' '));

const wordsOf = (type: string): string[] => type.slice(type.indexOf(':') + 1).split('_');
const prefixOf = (type: string): string => type.slice(0, type.indexOf(':'));
/** A text as a column holds it whole: without what no column can. */
const kept = (text: string): string => text.replace(/[\0\p{Cs}]/gu, '\ufffd');
const text = (value: Json | undefined): string | null =>
  typeof value === 'string' && value !== '' ? kept(value) : null;

/**
 * Target of an event type: its kind and the member with its id. The declaration wins; otherwise `account:role_deleted`
 * with a `role_id` is about the role, `api_key:…` about its `api_key_id` or `key_id`, and so `account:service_key_…`.
 */
export function targetOf(type: string, { audit, schema }: EventDeclaration): readonly [kind: string, member: string] {
  if (audit?.target) return audit.target;
  const part = wordsOf(type).slice(0, -1).join('_');
  const id = part === '' || audit?.by !== undefined ? undefined : idOf(part, schema);
  if (id !== undefined) return [part, id];
  const prefix = prefixOf(type);
  return [prefix, idOf(prefix, schema) ?? `${prefix}_id`];
}

/** `service_key_id` or `key_id` of a `service_key`, as the event has it. */
const idOf = (kind: string, { shape }: EventDeclaration['schema']): string | undefined =>
  [kind, kind.split('_').at(-1)!].map((name) => `${name}_id`).find((name) => name in shape);

/** Null for an event that its declaration leaves out of the audit log. Whatever the data hold, it never throws. */
export function factsOf(event: AuditedEvent, declaration: EventDeclaration): AuditFacts | null {
  const { type, data, metadata } = event;
  const { audit } = declaration;
  if (audit === null) return null;
  const [kind, member] = targetOf(type, declaration);
  const by = audit.by ?? [];
  const own = audit.log === undefined;
  const account_id = own ? accountOf(event) : null;
  const user_id = own ? text(data['user_id']) : null;
  return {
    chain: account_id !== null ? `account:${account_id}` : user_id !== null ? `user:${user_id}` : 'installation',
    account_id,
    action: audit.action ?? type,
    actor: {
      kind: metadata['actor_kind'] ?? null,
      id: metadata['actor_id'] ?? metadata['credential_id'] ?? null,
      ...(metadata['acts_for'] !== undefined && { acts_for: metadata['acts_for'] }),
    },
    target: { kind, id: text(data[member]) ?? JSON.stringify(data[member] ?? null) },
    part: by.length === 0 ? '' : JSON.stringify(by.map((one) => data[one] ?? null)),
    ends: ENDS.has(wordsOf(type).at(-1)!),
    said: saidBy(event, declaration, member),
  };
}

/** The account that the data name. One that only the append names counts where the event is about no user. */
function accountOf({ data, metadata }: AuditedEvent): string | null {
  const named = text(data['account_id']);
  if (named !== null || data['account_id'] !== undefined || text(data['user_id']) !== null) return named;
  const appended = metadata['account_id'];
  return appended === undefined || appended === GLOBAL_ACCOUNT ? null : appended;
}

/** Detail of an entry: the data without target and time, which the entry itself carries. */
function saidBy(event: AuditedEvent, { audit, personal }: EventDeclaration, target: string): AuditDetail {
  const { type, data, stored = data, id } = event;
  const when = `${wordsOf(type).at(-1)!}_at`;
  const hidden = new Set([target, when, ...(audit?.log ? [] : ['account_id']), ...(audit?.omit ?? [])]);
  const members: JsonObject = {};
  const sealed: Record<string, Sealed> = {};
  for (const [name, value] of Object.entries(data)) {
    if (hidden.has(name) || name.endsWith('_hash')) continue;
    const secret = name in personal ? (stored[name] as { $sealed?: string; $key?: string } | null | undefined) : null;
    if (secret?.$sealed !== undefined && secret.$key !== undefined) {
      members[name] = null;
      sealed[name] = { sealed: secret.$sealed, key: secret.$key, bound: id };
    } else {
      members[name] = value;
    }
  }
  return { members, personal: sealed };
}

/** In whose log events of this type are, by what they name. */
export function logOf({ audit, schema: { shape } }: EventDeclaration): 'account' | 'user' | 'installation' {
  if (audit?.log !== undefined) return audit.log;
  return 'account_id' in shape ? 'account' : 'user_id' in shape ? 'user' : 'installation';
}

/** Fault of a declaration that would make unclear entries; null for a sound one. */
export function auditDeclarationError(type: string, declaration: EventDeclaration): string | null {
  const { audit, schema, personal } = declaration;
  if (audit === null) return null;
  const [kind, member] = targetOf(type, declaration);
  const members = Object.keys(schema.shape);
  const unknown = [member, ...(audit.by ?? []), ...(audit.omit ?? [])].find((name) => !members.includes(name));
  if (unknown === member) return `it has no member ${member}: declare audit.target, or audit: null`;
  if (unknown !== undefined) return `audit names ${unknown}, which is no member`;
  const secret = [member, ...(audit.by ?? [])].find((name) => name in personal);
  if (secret !== undefined) return `${secret} is personal: entries are found by it, and it cannot be forgotten there`;
  const words = wordsOf(type);
  const verb = words.at(-1)!;
  const part = words.length > 1 && (ADDS.has(verb) || ENDS.has(verb));
  if (part && kind === prefixOf(type) && audit.target === undefined && audit.by === undefined) {
    return `what is ${verb}? Declare audit.target, or audit.by with the members that tell it apart ([]: nothing does)`;
  }
  return null;
}
