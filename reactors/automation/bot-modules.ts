import { v5 } from 'uuid';
import { z } from 'zod';
import { job } from '../../app/job';
import { reactor } from '../../app/reactor';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { BOT_MODULE_EVENTS, BOT_MODULES, moduleOwner, TIMED_MESSAGES } from '../../domain/automation/bot-modules';
import { PLATFORMS } from '../../domain/common/vendors';
import { DomainError } from '../../kernel/errors';
import { NotSent } from '../../kernel/job';
import { expandedText } from '../../services/automation/answer-text';
import { beforeCall } from '../../services/automation/called';
import { DROP_SCHEDULE, DROP_SCHEDULES_OF_ACCOUNT, nextDue, SET_SCHEDULE } from '../../services/automation/schedules';
import { moveTurn, nextMessage, timedPlaces } from '../../services/automation/timed-messages';
import { ownChannel } from '../../services/connections/own-channel';
import type { SendResult } from '../../services/chat/send-chat';

const START_TIMED_MESSAGES = 'start-timed-messages';
/** Longest time within which a due message is sent, in milliseconds; it ends when the next one is due. */
const SEND_MS = 60_000;
const PAUSES = { first_ms: 2_000, most_ms: 10_000 };
const TRIES = 20;
/** Namespace of the ids of causes; any fixed UUID does. */
const CAUSES = '0d1f4b3e-6a55-4f0c-9c1e-52b8b7f0a6d1';

const ownerOf = ({ account_id }: { account_id: string }) => moduleOwner(account_id, 'timed_messages');

/** Sends the next timed message of a live channel. */
export const sendTimedMessage = job({
  name: 'send-timed-message',
  payload: { account_id: z.uuid(), platform: z.enum(PLATFORMS), cause_id: z.uuid(), started_ms: z.int().optional() },
  retries: TRIES,
  after_unknown: 'end',
  pauses: PAUSES,
  timeout_ms: 15_000,
  lane: ({ account_id, platform }) => `${account_id}:${platform}`,
  owner: ownerOf,
  isWanted: async ({ account_id, platform }, { db }) =>
    (await timedPlaces(db, account_id)).some((place) => place.platform === platform),
  onUnknown: (place) => (tx) => moveTurn(tx, place),
  async run(place, _attempt, { db, texts, chats, log }) {
    const { account_id, platform, cause_id } = place;
    const text = await beforeCall(async () => {
      const message = await nextMessage(db, place);
      const channel = message === null ? null : await ownChannel(db, account_id, platform);
      if (message === null || channel === null) return null;
      const { channel_id } = channel;
      return expandedText({ db, texts }, message, { account_id, platform, channel_id }, chats.maxCharacters(platform));
    });
    if (text === null) return;
    if (text === '') return (tx) => moveTurn(tx, place);
    let result: SendResult;
    try {
      result = await beforeCall(() =>
        chats.send({
          ...{ account_id, user_id: null, cause_id, platform, text, reply_to: null, live_chat_id: null },
          ...{ for_source_only: false, tries_again: true },
        }),
      );
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      log.info({ account_id, platform, reason: error.reason }, 'a timed message was not sent');
      return;
    }
    if (!result.sent && result.passing) throw new NotSent(result.error);
    if (!result.sent) log.info({ account_id, platform, reason: result.error_code }, 'a timed message was not sent');
    return (tx) => moveTurn(tx, place);
  },
});

/** Starts the message of each live channel of an account. */
export const startTimedMessages = job({
  name: START_TIMED_MESSAGES,
  payload: { account_id: z.uuid() },
  after_unknown: 'repeat',
  owner: ownerOf,
  async run({ account_id }, { key }, { db }) {
    const places = await timedPlaces(db, account_id);
    const started_ms = Date.now();
    const next_ms = await nextDue(db, ownerOf({ account_id }));
    const expires_at = new Date(Math.min(started_ms + SEND_MS, next_ms)).toISOString();
    return (_tx, { enqueue }) =>
      enqueue(
        sendTimedMessage,
        ...places.map((place) => {
          const cause_id = v5(`${key}:${place.platform}`, CAUSES);
          return { key: cause_id, payload: { ...place, cause_id, started_ms }, expires_at };
        }),
      );
  },
});

/** The schedule of timed messages follows the module's config, and waiting acts of a module end with it. */
export const botModuleSchedules = reactor({
  name: 'bot-module-schedules',
  from: 'beginning',
  events: [BOT_MODULE_EVENTS, ACCOUNT_EVENTS],
  on: {
    'bot_module:configured': ({ account_id, module_name, enabled, config }, { keep, cancel }) => {
      const owner = moduleOwner(account_id, module_name);
      if (!enabled) {
        keep(DROP_SCHEDULE, [owner]);
        cancel(owner);
        return;
      }
      if (module_name !== 'timed_messages') return;
      const { interval_seconds } = JSON.parse(config) as { interval_seconds?: number };
      keep(SET_SCHEDULE, [owner, account_id, START_TIMED_MESSAGES, interval_seconds ?? TIMED_MESSAGES.interval]);
    },
    'bot_module:reset': ({ account_id, module_name }, { keep, cancel }) => {
      keep(DROP_SCHEDULE, [moduleOwner(account_id, module_name)]);
      cancel(moduleOwner(account_id, module_name));
    },
    'account:dissolved': ({ account_id }, { keep, cancel }) => {
      keep(DROP_SCHEDULES_OF_ACCOUNT, [account_id]);
      keep('delete from timed_messages where account_id = $1', [account_id]);
      keep('delete from bot_module_acts where account_id = $1', [account_id]);
      for (const name of BOT_MODULES) cancel(moduleOwner(account_id, name));
    },
  },
});
