import fc from 'fast-check';
import { compare, contenders } from '../../support/graphql-contenders';
import { generateRequest } from '../../support/graphql-documents';

test('generated documents answer and do the same, interpreted, compiled and written', async () => {
  const of = contenders();
  const counts: Record<string, number> = { written: 0, compiled: 0, interpreted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (gen) => {
      const request = generateRequest((arbitrary) => gen(() => arbitrary));
      counts[await compare(of, request)]! += 1;
    }),
    { numRuns: 1000, endOnFailure: true },
  );
  // Were most refused or never compiled, little would have been compared.
  expect(counts.compiled! + counts.written!).toBeGreaterThan(300);
  expect(Math.min(counts.compiled!, counts.written!)).toBeGreaterThan(50);
}, 300_000);
