/** Schema of the job library; its tables are private to engines/jobs. */
export const JOB_SCHEMA = 'graphile_worker';
