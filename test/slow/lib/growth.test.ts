import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { filled, growthOf, LIMIT } from '../../support/growth';
import { GROWTH_CASES } from '../../support/growth-cases';

test('the measure tells what is quadratic from what is linear', () => {
  let sum = 0;
  const quadratic = (text: string) => {
    for (let i = 0; i < text.length; i += 512) for (let j = 0; j < i; j += 8) sum += text.charCodeAt(j);
  };
  const linear = (text: string) => {
    for (let n = 0; n < 20; n += 1) for (let j = 0; j < text.length; j += 1) sum += text.charCodeAt(j);
  };
  const make = (bytes: number) => filled('x', bytes);
  expect(growthOf(make, quadratic)).toBeGreaterThan(LIMIT);
  expect(growthOf(make, linear)).toBeLessThan(LIMIT);
  expect(sum).toBeGreaterThan(0);
});

describe('every parser that strangers can feed takes time in proportion to what it is given', () => {
  let growth: Map<string, number>;
  beforeAll(async () => {
    // In a process of its own, whose memory for new objects holds all that one measure makes: collecting it is not what
    // is measured.
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [
        '--min-semi-space-size=256',
        '--max-semi-space-size=256',
        join(__dirname, '../../../dist/test/support/growth-child.js'),
      ],
      { maxBuffer: 16 * 1024 * 1024 },
    );
    growth = new Map(JSON.parse(stdout) as [string, number][]);
  }, 300_000);

  test.each(GROWTH_CASES.map(({ parser, shape }) => `${parser}: ${shape}`))('%s', (name) => {
    expect(growth.get(name)).toBeLessThan(LIMIT);
  });
});
