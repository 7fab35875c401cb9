import type { Presence, PresenceMember } from './port';

/** Presence of a single process. */
export function createLocalPresence(): Presence {
  const channels = new Map<string, Map<string, string>>();
  return {
    async join(channel, { id, info }) {
      let members = channels.get(channel);
      if (!members) channels.set(channel, (members = new Map()));
      members.set(id, info);
    },
    async leave(channel, id) {
      const members = channels.get(channel);
      if (members?.delete(id) && members.size === 0) channels.delete(channel);
    },
    list: async (channel) => byId([...(channels.get(channel) ?? [])].map(([id, info]) => ({ id, info }))),
    close: async () => channels.clear(),
  };
}

export const byId = (members: PresenceMember[]): PresenceMember[] =>
  members.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
