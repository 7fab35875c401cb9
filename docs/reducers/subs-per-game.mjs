// Paid and gifted subscriptions by the category of the stream, from the newest figures of each session.
// lumio replay domain-events --type stream_session:finalized --type stream_session:corrected --reducer …
export const initial = { sessions: {}, games: {} };

const sums = (sessions) => {
  const games = {};
  for (const streams of Object.values(sessions))
    for (const [category, subs] of streams) games[category] = (games[category] ?? 0) + subs;
  return games;
};

export function reduce({ sessions }, { data }) {
  const { session_id, figures } = data;
  const streams = figures.streams.map((one) => [
    one.category ?? 'none',
    (one.new_paid_subs ?? 0) + (one.gifted_subs ?? 0),
  ]);
  const counted = { ...sessions, [session_id]: streams };
  return { sessions: counted, games: sums(counted) };
}
