// Viewers of raids, and those that were still there ten minutes later, from the newest figures of each session.
// lumio replay domain-events --type stream_session:finalized --type stream_session:corrected --reducer …
export const initial = { sessions: {}, viewers: 0, retained: 0 };

export function reduce({ sessions }, { data }) {
  const known = (data.figures.received_raids ?? []).filter(({ retained_viewers }) => retained_viewers !== null);
  const sum = (name) => known.reduce((all, raid) => all + raid[name], 0);
  const counted = { ...sessions, [data.session_id]: [sum('viewers'), sum('retained_viewers')] };
  const total = (place) => Object.values(counted).reduce((all, one) => all + one[place], 0);
  return { sessions: counted, viewers: total(0), retained: total(1) };
}
