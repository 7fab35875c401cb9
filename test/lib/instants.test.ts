import fc from 'fast-check';
import { shownInstant } from '../../lib/time/instants';

test('an instant is shown with its milliseconds, or with its microseconds where it has them', () => {
  const digits = fc.string({ unit: fc.constantFrom('0', '0', '1', '9'), maxLength: 6 });
  fc.assert(
    fc.property(digits, (fraction) => {
      const instant = `2026-01-01T10:20:30${fraction === '' ? '' : `.${fraction}`}Z`;
      const micros = fraction.padEnd(6, '0');
      const shown = micros.endsWith('000') ? micros.slice(0, 3) : micros;
      expect([instant, shownInstant(instant)]).toEqual([instant, `2026-01-01T10:20:30.${shown}Z`]);
    }),
    { numRuns: 2000 },
  );
});
