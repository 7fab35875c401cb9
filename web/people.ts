/** Members of payloads with a person's name, by preference. */
const NAMES = ['display_name', 'user_name', 'username', 'nick_name', 'displayName', 'name', 'title'];
/** Members for the channel's owner and moderators, whom the event is not about. */
const OTHERS: ReadonlySet<string> = new Set(['broadcaster', 'moderator', 'channel', 'account']);
const DEEPEST = 4;
const WIDEST = 200;

/** Finds a person's name in a payload; the shallowest, since the person it is about is at the top. */
export function personIn(payload: unknown): string | null {
  let level: unknown[] = [payload];
  for (let depth = 0; depth < DEEPEST; depth++) {
    const objects = level.filter((value) => typeof value === 'object' && value !== null) as Record<string, unknown>[];
    for (const one of objects)
      for (const name of NAMES) {
        const value = one[name];
        if (typeof value === 'string' && value !== '') return value;
      }
    level = objects
      .flatMap((one) => Object.entries(one))
      .flatMap(([name, value]) => (OTHERS.has(name) ? [] : [value]))
      .slice(0, WIDEST);
  }
  return null;
}
