import type { Holds } from './holds';

/** The state of one kind of work, as one member sees it. */
export interface DivisionInput {
  me: string;
  /** Active members that do this kind of work; `me` is one of them. */
  members: readonly string[];
  /** Whether a holder is active; a holder of the previous release is not in `members`. */
  isLiving: (member: string) => boolean;
  /** All holds of the kind, and the names that `me` offers to do. */
  holds: Holds;
  /** Free names that were left to another member a round ago. */
  waited: ReadonlySet<string>;
  /** `me` has not yet reached its fair share since it joined. */
  filling: boolean;
}

export interface Division {
  /** Free names that `me` should take. */
  take: string[];
  /** Held names that `me` should take over, at most {@link MAX_MOVES}. */
  want: string[];
  /** Free names that are left to another member. */
  waiting: string[];
  filling: boolean;
}

/** Most pieces that a member takes over from others in one round. */
export const MAX_MOVES = 16;

/**
 * Divides the names of one kind among its members. A hold stays while its holder is active and within its fair share. A
 * free name goes to the member with the highest hash of (name, member) among those below their fair share; when that
 * member has not taken it a round later, to any other. A member that has joined takes over from members above the fair
 * share.
 */
export function divide(input: DivisionInput): Division {
  const { me, members, isLiving, holds, waited } = input;
  const free = holds.free(isLiving);
  const [loads, held] = holds.loads(members, isLiving);
  const [most, least] = bounds(held + free.length, members.length);
  const above = [...loads.values()].some((load) => load > most + tolerance(most));
  const filling = (input.filling || above) && loads.get(me)! < (above ? most : least);
  const excess = new Map([...loads].map(([member, load]) => [member, load - most] as const));

  const result: Division = { take: [], want: [], waiting: [], filling };
  const scores = memberHashes(members);
  for (const name of free.sort()) {
    const first = firstChoice(name, scores, (member) => {
      const load = loads.get(member)!;
      return load < least ? 2 : load < most ? 1 : 0;
    });
    const owner = waited.has(name) ? me : first;
    loads.set(owner, loads.get(owner)! + 1);
    (owner === me ? result.take : result.waiting).push(name);
  }
  const room = (above ? most : least) - loads.get(me)!;
  if (filling && room > 0) result.want = takeOver(input, excess, Math.min(room, MAX_MOVES));
  return result;
}

function bounds(total: number, members: number): [most: number, least: number] {
  return [Math.ceil(total / members), Math.floor(total / members)];
}

/** Pieces above the fair share that a member keeps, so that ended names move no others. */
function tolerance(most: number): number {
  return Math.max(1, most >> 3);
}

/** Offered names of members above the fair share, by their hash with `me`, from each at most its excess. */
function takeOver({ me, holds, isLiving }: DivisionInput, excess: Map<string, number>, most: number): string[] {
  const own = hash(me);
  const candidates: { name: string; member: string; score: number }[] = [];
  for (const name of holds.offered) {
    const hold = holds.get(name);
    if (hold === undefined || (excess.get(hold.member) ?? 0) <= 0) continue;
    if (hold.wanted_by !== null && isLiving(hold.wanted_by)) continue;
    candidates.push({ name, member: hold.member, score: combined(hash(name), own) });
  }
  candidates.sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1));
  const wanted: string[] = [];
  for (const { name, member } of candidates) {
    if (wanted.length === most) break;
    const left = excess.get(member)!;
    if (left <= 0) continue;
    excess.set(member, left - 1);
    wanted.push(name);
  }
  return wanted;
}

function memberHashes(members: readonly string[]): readonly (readonly [member: string, hash: number])[] {
  return [...members].sort().map((member) => [member, hash(member)] as const);
}

/** Rendezvous hashing among the members with the most room. */
function firstChoice(
  name: string,
  members: readonly (readonly [member: string, hash: number])[],
  roomOf: (member: string) => number,
): string {
  const own = hash(name);
  let best = '';
  let highest = -1;
  let most_room = 0;
  for (const [member, member_hash] of members) {
    const room = roomOf(member);
    if (room < most_room) continue;
    const score = combined(own, member_hash);
    if (room === most_room && score <= highest) continue;
    [best, highest, most_room] = [member, score, room];
  }
  return best;
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}

/** The finalizer of MurmurHash3 over both hashes. */
function combined(name: number, member: number): number {
  let value = name ^ Math.imul(member, 0x9e3779b1);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
