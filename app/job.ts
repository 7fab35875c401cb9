import type { z } from 'zod';
import { job as declareJob, type JobDeclaration, type JobOptions } from '../kernel/job';
import type { Blobs } from '../engines/blobs/port';
import type { Logger } from '../engines/log/port';
import type { RecordLog } from '../engines/records/port';
import type { Queryable } from '../engines/postgres/port';
import type { HttpClients } from '../vendors/http/port';
import type { LiveMessages } from './services';
import type { Act } from './write-path/act';
import type { Platform } from '../domain/common/vendors';
import type { PersonalTexts, SubjectKeys } from '../privacy/subject-keys/port';
import type { PersonHere } from '../services/chat/person-profiles';
import type { ModerationRequest, ModerationResult } from '../services/chat/moderation-notes';
import type { AnnouncementRequest, SendRequest, SendResult } from '../services/chat/send-chat';
import type { ShoutOutRequest } from '../services/chat/shout-out';
import type { DiscordPostRequest, DiscordPostResult } from '../services/discord/posts';
import type { WebhookCalls } from '../services/automation/automations/webhooks';
import type { VendorConnections } from '../services/connections/vendor-connections';

/** Calls to the chats of accounts, in a process that runs jobs. */
export interface ChatCalls {
  /** As `sendChat`. */
  send(request: SendRequest): Promise<SendResult>;
  /** As `announce`. */
  announce(request: AnnouncementRequest): Promise<SendResult>;
  /** As `shoutOut`. */
  shoutOut(request: ShoutOutRequest): Promise<ModerationResult>;
  /**
   * As `moderateChat`, with `once`; `actor` is the service of the audit log (`bot_module:word_filter`).
   */
  moderate(actor: string, request: ModerationRequest): Promise<ModerationResult>;
  /** As `noteModeration`: publishes and notes an act that {@link moderate} carried out and could not note. */
  noteModeration(actor: string, request: ModerationRequest): Promise<boolean>;
  /** Most characters (code points) of a message. */
  maxCharacters(platform: Platform): number;
  /** As `postToDiscord`. */
  postDiscord(request: DiscordPostRequest): Promise<DiscordPostResult>;
  /** Fetches details of a person, unless they are fresh. */
  enrich(person: PersonHere): Promise<void>;
}

/** Dependencies of a job, besides its payload. */
export interface JobTools {
  /** Reads the database; a job writes only by the effect that it returns. */
  db: Pick<Queryable, 'query'>;
  /** HTTP clients, for jobs that create a client of their vendor's hosts. */
  http: HttpClients;
  /** Vendor connections, for jobs that start or end something there. */
  connections: VendorConnections;
  /** Erases a user for good: their keys, here and in every backup, and the data of all areas. Idempotent. */
  erase(user_id: string): Promise<void>;
  /** Erases what names a person without keys, by their keyed hash. Idempotent. */
  eraseRows(hash: string): Promise<void>;
  blobs: Pick<Blobs, 'get' | 'delete'>;
  /** Runs a command in the job's name; ids of its events derive from the job's key. */
  act: Act;
  /** Appends records. An `external_id` that derives from the job's key counts once over all tries. */
  records: Pick<RecordLog, 'append'>;
  /** Sends messages that are not stored; a later try sends them again. */
  live: LiveMessages;
  /** Calls to the chats of accounts. */
  chats: ChatCalls;
  /** Sends signed webhooks of automations. */
  webhooks: WebhookCalls;
  /** Opens personal texts of rows. */
  texts: PersonalTexts;
  /** Keyed hashes, by which links to files are signed. */
  hashes: Pick<SubjectKeys, 'hashesOf'>;
  log: Logger;
}

export type AreaJob<Payload = unknown> = JobDeclaration<JobTools, Payload>;

/** Declares a job of an area. Files at the first level of `reactors/` are discovered, and their jobs run. */
export const job = <const Shape extends z.ZodRawShape>(options: JobOptions<JobTools, Shape>) => declareJob(options);
