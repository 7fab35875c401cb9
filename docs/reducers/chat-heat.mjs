// Messages of each minute, by the time of the platform.
// lumio replay chat-events --account <id> --reducer …
export const initial = {};

export function reduce(minutes, { occurred_at }) {
  if (typeof occurred_at !== 'string') return minutes;
  const minute = occurred_at.slice(0, '2026-01-02T03:04'.length);
  minutes[minute] = (minutes[minute] ?? 0) + 1;
  return minutes;
}
