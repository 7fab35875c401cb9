import { nextDue, type Schedule, scheduleOf } from '../../domain/automation/nodes/schedule-times';

/** The next due times after an instant. */
function due(schedule: Schedule, from: string, count: number): string[] {
  const found: string[] = [];
  let at = Date.parse(from);
  while (found.length < count) {
    at = nextDue(schedule, at)!;
    found.push(new Date(at).toISOString().slice(0, 16));
  }
  return found;
}
const berlin = (cron: string) => ({ cron, time_zone: 'Europe/Berlin' });

describe('a schedule', () => {
  test.each([
    [{}, 'must be set'],
    [{ cron: '0 0 * * *' }, 'must be set'],
    [{ time_zone: 'Europe/Berlin' }, 'must be set'],
    [{ cron: '0 0 * * *', time_zone: 'Europe/Berlin', interval_seconds: 60 }, 'alone'],
    [{ cron: '0 0 * * *', time_zone: 'Mars/Olympus' }, 'time_zone'],
    [{ cron: '0 0 * * *', time_zone: '+01:00' }, 'time_zone'],
    [{ cron: '0 0 0 * * *', time_zone: 'UTC' }, 'five fields'],
    [{ cron: '@daily', time_zone: 'UTC' }, 'five fields'],
    [{ cron: '61 0 * * *', time_zone: 'UTC' }, 'cron'],
    [{ cron: 'a b c d e', time_zone: 'UTC' }, 'cron'],
    [{ cron: '0 0 30 2 *', time_zone: 'UTC' }, 'comes'],
  ])('%j is refused', (config, problem) => {
    expect(scheduleOf(config)).toContain(problem);
  });

  test('is a pattern with a time zone, or an interval', () => {
    expect(scheduleOf({ cron: ' 0  18 * * mon-fri ', time_zone: 'Europe/Berlin' })).toEqual(berlin('0 18 * * mon-fri'));
    expect(scheduleOf({ interval_seconds: 60 })).toEqual({ interval_seconds: 60 });
    expect(due({ interval_seconds: 90 }, '2026-01-01T00:00:00Z', 2)).toEqual(['2026-01-01T00:01', '2026-01-01T00:03']);
    expect(due(berlin('0 18 * * mon-fri'), '2026-05-01T15:59:59.999Z', 2)).toEqual([
      '2026-05-01T16:00',
      '2026-05-04T16:00',
    ]);
  });

  test('is due once at the first minute after the gap for skipped local times', () => {
    expect(due(berlin('30 2 * * *'), '2026-03-27T12:00:00Z', 3)).toEqual([
      '2026-03-28T01:30',
      '2026-03-29T01:00',
      '2026-03-30T00:30',
    ]);
    expect(due(berlin('15,45 2 * * *'), '2026-03-29T00:30:00Z', 2)).toEqual(['2026-03-29T01:00', '2026-03-30T00:15']);
    expect(due(berlin('0 */2 * * *'), '2026-03-28T22:30:00Z', 3)).toEqual([
      '2026-03-28T23:00',
      '2026-03-29T01:00',
      '2026-03-29T02:00',
    ]);
    // A gap at midnight, and one of half an hour.
    const beirut = { cron: '15 0 * * *', time_zone: 'Asia/Beirut' };
    expect(due(beirut, '2026-03-28T12:00:00Z', 2)).toEqual(['2026-03-28T22:00', '2026-03-29T21:15']);
    const lord_howe = { cron: '15 2 * * *', time_zone: 'Australia/Lord_Howe' };
    expect(due(lord_howe, '2026-10-03T12:00:00Z', 2)).toEqual(['2026-10-03T15:30', '2026-10-04T15:15']);
  });

  test('is due at the first occurrence of local times that occur twice', () => {
    expect(due(berlin('30 2 * * *'), '2026-10-24T12:00:00Z', 2)).toEqual(['2026-10-25T00:30', '2026-10-26T01:30']);
    expect(due(berlin('30 2 * * *'), '2026-10-25T00:30:00Z', 1)).toEqual(['2026-10-26T01:30']);
    expect(due(berlin('30 2 * * *'), '2026-10-25T01:10:00Z', 1)).toEqual(['2026-10-26T01:30']);
    expect(due(berlin('0 3 * * *'), '2026-10-25T00:30:00Z', 1)).toEqual(['2026-10-25T02:00']);
    const new_york = { cron: '30 1 1 11 *', time_zone: 'America/New_York' };
    expect(due(new_york, '2026-10-31T00:00:00Z', 1)).toEqual(['2026-11-01T05:30']);
  });

  test('of every hour or minute is due at each real one', () => {
    expect(due(berlin('10 * * * *'), '2026-03-29T00:00:00Z', 3)).toEqual([
      '2026-03-29T00:10',
      '2026-03-29T01:10',
      '2026-03-29T02:10',
    ]);
    expect(due(berlin('10 * * * *'), '2026-10-24T23:30:00Z', 4)).toEqual([
      '2026-10-25T00:10',
      '2026-10-25T01:10',
      '2026-10-25T02:10',
      '2026-10-25T03:10',
    ]);
    expect(due(berlin('* 2 * * *'), '2026-10-25T00:58:00Z', 3)).toEqual([
      '2026-10-25T00:59',
      '2026-10-25T01:00',
      '2026-10-25T01:01',
    ]);
    expect(due(berlin('* 2 * * *'), '2026-03-28T12:00:00Z', 1)).toEqual(['2026-03-30T00:00']);
    expect(due(berlin('0 * 1 7 *'), '2026-01-01T00:00:00Z', 1)).toEqual(['2026-06-30T22:00']);
  });

  test('agrees with a search minute by minute around changes of the clock', () => {
    const zones = ['Europe/Berlin', 'America/Sao_Paulo', 'Australia/Lord_Howe', 'Africa/Casablanca'];
    const changes = [
      '2026-03-29T01:00Z',
      '2026-10-25T01:00Z',
      '2026-04-04T15:00Z',
      '2026-10-03T15:30Z',
      '2026-02-15T02:00Z',
    ];
    for (const time_zone of zones)
      for (const change of changes) {
        const schedule = { cron: '*/20 * * * *', time_zone };
        const from = Date.parse(change) - 3 * 3_600_000;
        const offsets = new Intl.DateTimeFormat('en', { timeZone: time_zone, minute: 'numeric' });
        const expected = Array.from({ length: 360 }, (_, n) => from + (n + 1) * 60_000).filter(
          (at) => Number(offsets.format(at)) % 20 === 0,
        );
        const found = due(schedule, new Date(from).toISOString(), expected.length);
        expect(found).toEqual(expected.map((at) => new Date(at).toISOString().slice(0, 16)));
      }
  });
});
