import { createDocuments, type ReadyDocument } from '../../../api/graphql/compiled/documents';
import { createExecutor } from '../../../api/graphql/compiled/executor';
import { DEFAULT_LIMITS } from '../../../api/graphql/limits/limits';
import { graphqlSample, sampleState } from '../../support/graphql-sample';

describe('what is kept of documents', () => {
  const { schema } = graphqlSample();
  const keep = () => {
    const documents = createDocuments(schema, DEFAULT_LIMITS, { introspection: false });
    return { documents, executor: createExecutor(schema, documents) };
  };
  const repeat = (n: number, line: (i: number) => string) => Array.from({ length: n }, (_, i) => line(i)).join(' ');

  test('what a caller has compiled is bounded too', async () => {
    const { documents, executor } = keep();
    for (let i = 0; i < 400; i += 1) {
      const prepared = documents.prepare(
        `{ thing { leaf { ${repeat(28, (k) => `a${i}_${k}: name`)} } ${repeat(300, () => 'leaf { name }')} } }`,
      ) as ReadyDocument;
      for (let call = 0; call < 3; call += 1) {
        await executor.runCompiled(prepared, prepared.choose(undefined), {}, sampleState());
      }
    }
    expect(documents.bytes()).toBeGreaterThan(32 * 1024 * 1024);
    expect(documents.bytes()).toBeLessThanOrEqual(80 * 1024 * 1024);
  });
});
