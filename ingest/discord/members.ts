import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { TOPICS } from '../../domain/common/records';
import type { Received } from '../runtime/connection/adapter';
import { readJson, storableJson } from '../runtime/parse/text';
import { eventTime } from '../runtime/parse/times';
import { readTime } from '../../lib/time/vendor-times';
import { CommandUse, normaliseCommand } from './commands';
import * as webhook from '../runtime/webhook/webhook';
import type { Outcome } from '../runtime/webhook/webhook';

/** An event of the gateway for one account, as it is delivered for storing. */
const MemberAct = z.object({
  account_id: z.uuid(),
  action: z.enum(['member_join', 'member_leave', 'boost']),
  /** The session, and the event's number in it: equal when Discord repeats the event. */
  place: z.string(),
  member: z.record(z.string(), z.unknown()),
});
export type MemberAct = z.output<typeof MemberAct>;

/** Maximum members whose boosts are cached, and maximum characters of all their ids. */
const MAX_MEMBERS = 100_000;
const MAX_CHARACTERS = 8 << 20;
/** A boost of an unknown member counts as new when it began less than this long ago. */
const LATELY_MS = 24 * 3_600_000;

/**
 * Distinguishes a new boost from a continuing one: Discord reports only since when a member boosts, with every change
 * of the member. Uses earlier events, and the few members that arrive with a guild (without the intent of presences the
 * bot and those in voice channels); otherwise the age of the boost.
 */
export class Boosts {
  private readonly boosting = new LRUCache<string, boolean>({
    max: MAX_MEMBERS,
    maxSize: MAX_CHARACTERS,
    sizeCalculation: (_boosts, { length }) => length,
  });

  /** @param now Unix milliseconds */
  begins(guild_id: string, user_id: string, premium_since: unknown, now: number): boolean {
    const since = readTime(premium_since);
    const key = `${guild_id}:${user_id}`;
    const before = this.boosting.get(key);
    this.boosting.set(key, since !== null);
    if (since === null || before === true) return false;
    return before === false || now - since < LATELY_MS;
  }
}

/** The gateway's types that become events of a guild's members; null for all others. */
export function actionOf(type: unknown): 'member_join' | 'member_leave' | 'member_update' | null {
  switch (type) {
    case 'GUILD_MEMBER_ADD':
      return 'member_join';
    case 'GUILD_MEMBER_REMOVE':
      return 'member_leave';
    case 'GUILD_MEMBER_UPDATE':
      return 'member_update';
    default:
      return null;
  }
}

/** Converts an event of a member to a record; `raw` is the gateway's payload. Source: spec doc3 §6.2. */
export function normaliseDiscord({ text, received_at }: Received): Outcome {
  const reading = readJson(storableJson(text));
  if (!reading.ok) return webhook.park(reading.reason, reading.detail);
  const command = CommandUse.safeParse(reading.value);
  if (command.success) return normaliseCommand(command.data, received_at);
  const read = MemberAct.safeParse(reading.value);
  if (!read.success) return webhook.park('bad_payload', read.error.issues[0]!.message);
  const { account_id, action, place, member } = read.data;
  const user_id = webhook.idText(webhook.member(member, 'user', 'id'));
  const guild_id = webhook.idText(member.guild_id);
  if (user_id === null || guild_id === null) return webhook.park('bad_payload', 'guild_id or user.id is missing');
  const at = action === 'boost' ? member.premium_since : action === 'member_join' ? member.joined_at : null;
  // A repeated join or boost has another time, which distinguishes the two; an event without a time is identified by
  // its place.
  const once = readTime(at) === null ? place : (webhook.idText(at) ?? place);
  return webhook.ok({
    owner: { kind: 'account', account_id },
    topic: TOPICS.platform_events,
    type: `discord:${action}`,
    platform: 'discord',
    external_id: webhook.externalId('discord', guild_id, user_id, action, once),
    occurred_at: eventTime(received_at, at),
    subject: webhook.subjectOf('discord', user_id),
    raw: JSON.stringify(member),
  });
}
