/** A piece of work that a member holds. */
export interface Hold {
  member: string;
  /** The member that takes it over as soon as its holder has given it back. */
  wanted_by: string | null;
}

/** The state of one kind of work, as one member sees it. */
export interface DivisionInput {
  me: string;
  /** Living members that do this kind of work; `me` is one of them. */
  members: readonly string[];
  /** Whether the holder of a piece lives: it may be a process of the previous release, which is not in `members`. */
  isLiving: (member: string) => boolean;
  /** Names that `me` offers to do. */
  offered: Iterable<string>;
  holds: ReadonlyMap<string, Hold>;
  /** Free names that were left to another member a round ago. */
  waited: ReadonlySet<string>;
  /** `me` has not yet had its fair share since it joined. */
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
 * Divides the names of one kind among its members. A hold stays while its holder lives and is within its fair share. A
 * free name goes to the member with the highest hash of (name, member) among those below their fair share; when that
 * one has not taken it a round later, to anyone else. A member that has joined takes over from members above the fair
 * share.
 */
export function divide(input: DivisionInput): Division {
  const { me, members, isLiving, holds, waited } = input;
  const free: string[] = [];
  for (const name of input.offered) {
    const hold = holds.get(name);
    if (hold === undefined || !isLiving(hold.member)) free.push(name);
  }
  const { loads, held } = countLoads(input);
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

/** Pieces above the fair share that a member keeps, so that names which go move no others. */
function tolerance(most: number): number {
  return Math.max(1, most >> 3);
}

/** Counts a piece for the member that is about to take it over. */
function countLoads({ holds, isLiving, members }: DivisionInput): { loads: Map<string, number>; held: number } {
  const loads = new Map(members.map((member) => [member, 0]));
  let held = 0;
  for (const { member, wanted_by } of holds.values()) {
    if (!isLiving(member)) continue;
    held += 1;
    const owner = wanted_by !== null && isLiving(wanted_by) ? wanted_by : member;
    const load = loads.get(owner);
    if (load !== undefined) loads.set(owner, load + 1);
  }
  return { loads, held };
}

/** Offered names of members above the fair share, by their hash with `me`, and from none more than its excess. */
function takeOver({ me, offered, holds }: DivisionInput, excess: Map<string, number>, most: number): string[] {
  const own = hash(me);
  const candidates: { name: string; member: string; score: number }[] = [];
  for (const name of offered) {
    const hold = holds.get(name);
    if (hold === undefined || hold.wanted_by !== null || (excess.get(hold.member) ?? 0) <= 0) continue;
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
