import { growthOf } from './growth';
import { GROWTH_CASES } from './growth-cases';

/** As a process of its own: prints the growth of every case, by parser and shape. */
process.stdout.write(
  JSON.stringify(GROWTH_CASES.map(({ parser, shape, make, run }) => [`${parser}: ${shape}`, growthOf(make, run)])),
);
