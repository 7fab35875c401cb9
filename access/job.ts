import type { z } from 'zod';
import { job as declareJob, type JobDeclaration, type JobOptions } from '../kernel/job';
import type { Logger } from '../engines/log/port';
import type { Queryable } from '../engines/postgres/port';
import type { HttpClients } from '../vendors/http/port';
import type { VendorConnections } from './vendor-connections';

/** What a job works with, beside its payload. */
export interface JobTools {
  /** Reads what this process knows; what a job writes is the effect that it returns. */
  db: Pick<Queryable, 'query'>;
  /** Calls the outside, for jobs that make a client of their vendor's hosts. */
  http: HttpClients;
  /** What is connected at vendors, for jobs that begin or end something there. */
  connections: VendorConnections;
  /** Erases a user for good: their keys, here and in every backup, and what areas keep of them. Bears repeating. */
  erase(user_id: string): Promise<void>;
  log: Logger;
}

export type AreaJob<Payload = unknown> = JobDeclaration<JobTools, Payload>;

/** Declares a job of an area. Files at the first level of `reactors/` are found, and their jobs run. */
export const job = <const Shape extends z.ZodRawShape>(options: JobOptions<JobTools, Shape>) => declareJob(options);
