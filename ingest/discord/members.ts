import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { TOPICS } from '../../domain/records';
import type { Received } from '../runtime/adapter';
import { readJson, storableJson } from '../runtime/text';
import { eventTime, readTime } from '../runtime/times';
import * as webhook from '../runtime/webhook';
import type { Outcome } from '../runtime/webhook';

/** A word of the gateway for one account, as it is handed on to be stored. */
const MemberAct = z.object({
  account_id: z.uuid(),
  action: z.enum(['member_join', 'member_leave', 'boost']),
  /** The session, and the word's number in it: the same when Discord repeats the word. */
  place: z.string(),
  member: z.record(z.string(), z.unknown()),
});
export type MemberAct = z.output<typeof MemberAct>;

/** How many members it is remembered of whether they boost, and most characters of all their ids. */
const MOST_MEMBERS = 100_000;
const MOST_CHARACTERS = 8 << 20;
/** Where nothing is known of a member, a boost that began less than this ago counts as a new one. */
const LATELY_MS = 24 * 3_600_000;

/**
 * Tells a boost that begins from one that goes on: Discord says only since when a member boosts, with every change of
 * the member. Known from a guild's arrival and from earlier words; else by how long ago it began.
 */
export class Boosts {
  private readonly boosting = new LRUCache<string, boolean>({
    max: MOST_MEMBERS,
    maxSize: MOST_CHARACTERS,
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

/** What happened to a member, to a record; `raw` is the gateway's payload. Source: spec doc3 §6.2. */
export function normaliseDiscord({ text, received_at }: Received): Outcome {
  const reading = readJson(storableJson(text));
  if (!reading.ok) return webhook.park(reading.reason, reading.detail);
  const read = MemberAct.safeParse(reading.value);
  if (!read.success) return webhook.park('bad_payload', read.error.issues[0]!.message);
  const { account_id, action, place, member } = read.data;
  const user_id = webhook.idText(webhook.member(member, 'user', 'id'));
  const guild_id = webhook.idText(member.guild_id);
  if (user_id === null || guild_id === null) return webhook.park('bad_payload', 'guild_id or user.id is missing');
  const at = action === 'boost' ? member.premium_since : action === 'member_join' ? member.joined_at : null;
  // Joining or boosting again has another time, so the time tells them apart; a word without one is known by its place.
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
