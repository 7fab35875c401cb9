import { z } from 'zod';
import { job } from '../../app/job';
import { reactor } from '../../app/reactor';
import { CHAT_ERASURE_EVENTS } from '../../domain/chat/chat-erasures';

/** Erases the rows that name persons without keys; idempotent. */
export const eraseNamed = job({
  name: 'erase-named',
  payload: { subjects: z.array(z.string()) },
  after_unknown: 'repeat',
  async run({ subjects }, _attempt, { eraseRows }) {
    for (const hash of subjects) await eraseRows(hash);
  },
});

/** Erases the rest after an operator has erased a person from the chats: rows and messages that name them. */
export const chatErasures = reactor({
  name: 'chat-erasures',
  from: 'beginning',
  events: [CHAT_ERASURE_EVENTS],
  on: {
    'chat:pii_erased': ({ erasure_id, subjects }, { enqueue }) =>
      enqueue(eraseNamed, { key: erasure_id, payload: { subjects } }),
  },
});
