import { randomUUID } from 'node:crypto';
import { apiKeyStream } from '../../domain/credentials/api-keys';
import { startServer, type TestServer } from '../support/server';
import { ApiClient } from '../support/vendor-cloud';

/** A newer build beside this one has written what this one does not know. */
describe('a stream that a newer build has written to', () => {
  let server: TestServer;
  let api: ApiClient;
  beforeEach(async () => {
    server = await startServer();
    api = new ApiClient(server.base_url, server.credentials.access_token);
  });
  afterEach(() => server?.dispose());

  test.each([
    ['a type', 'api_key:frozen', '{"why":"x"}', /api_key:frozen: stored as version 1, this program has no such type/],
    [
      'a version',
      'api_key:renamed',
      '{"$v":7}',
      /api_key:renamed: stored as version 7, this program knows versions up to/,
    ],
  ])(
    '%s that this one does not know: 503, both protocols say when to try again, and the log names type and version',
    async (_, ...of) => {
      const [type, data, logged] = of;
      const key = { label: 'k', permissions: ['events:read'], expires_at: null };
      const { body } = await api.send('POST', '/v1/api-keys', key);
      const { id } = body.data;
      await server.database!.db.query(
        "select * from append_domain_events('{}', '{1}', '{1}', '{1}', $1, '{-2}', '{1}', $2, '{1}', '{1}', $2, $3, $4)",
        [apiKeyStream(id), randomUUID(), type, data],
      );
      const rename = await api.send('PATCH', `/v1/api-keys/${id}`, { label: 'other' });
      expect(rename).toMatchObject({ status: 503, body: { error: 'INTERNAL_SERVER_ERROR' } });
      expect(rename.headers.get('retry-after')).toBe('5');
      const renamed = await api.gql(`mutation { updateUserApiKey(id: "${id}", label: "other") { id } }`);
      expect(renamed.errors[0].extensions).toMatchObject({ code: 'INTERNAL_SERVER_ERROR', retry_after_seconds: 5 });
      expect(server.output()).toMatch(logged);
    },
  );
});
