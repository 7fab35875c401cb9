/** The WebSocket channel of an account's sessions. Source: spec doc3 §4.1. */
export const historyChannel = (account_id: string): string => `history:${account_id}`;
