import { fontRuns } from '../../read-api/history/files/report-fonts';

const line = (text: string) => fontRuns(text).map((run) => run.text);

test('text from left to right stays as it is', () => {
  expect(line('Boss fight 2')).toEqual(['Boss fight 2']);
  expect(line('ボス戦 now').join('')).toBe('ボス戦 now');
});

test('words from right to left follow each other from right to left, numbers from left to right', () => {
  expect(line('مرحبا بالعالم')).toEqual(['بالعالم', ' ', 'مرحبا']);
  expect(line('שלום 123').join('')).toBe('123 שלום');
  expect(line('live: שלום עולם now').join('')).toBe('live: עולם שלום now');
});

test('brackets turn with their text', () => {
  expect(line('שלום (עולם)').join('')).toBe('(עולם) שלום');
});

test('marks stay with their character, and pictures are left out', () => {
  expect(line('a\u0301 שָׁלוֹם 🎮')).toContain('שָׁלוֹם');
});
