import { z } from 'zod';
import { MAX_INTERVAL_SECONDS, MIN_INTERVAL_SECONDS, scheduleOf } from './schedule-times';
import { trigger } from './node-type';

export const onSchedule = trigger('schedule', {
  summary: 'A pattern of times in a time zone, or an interval.',
  config: {
    cron: z.string().max(200).optional().describe('Five fields: minute, hour, day of the month, month, weekday'),
    time_zone: z.string().max(100).optional().describe('Of the IANA time zone database'),
    interval_seconds: z.int().min(MIN_INTERVAL_SECONDS).max(MAX_INTERVAL_SECONDS).optional(),
  },
  check(config) {
    const schedule = scheduleOf(config);
    return typeof schedule === 'string' ? schedule : null;
  },
});
