import { Metadata, credentials, status, type ServiceError } from '@grpc/grpc-js';
import { Status } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/status_pb';
import { StreamsServiceClient } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v2/streams/streams_grpc_pb';
import {
  AppendRecord,
  AppendRequest,
  SchemaInfo,
  type AppendSessionResponse,
} from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v2/streams/streams_pb';
import { v4 } from 'uuid';
import { KurrentServer } from './kurrentdb-server/server';

/** Answers of a real KurrentDB 26.1 that no call of the adapter's brings about; docs/operating/engines.md says when. */
describe('the test server refuses like KurrentDB 26.1', () => {
  let server: KurrentServer;
  let client: StreamsServiceClient;
  beforeAll(async () => {
    server = await KurrentServer.start();
    client = new StreamsServiceClient(`127.0.0.1:${server.address.port}`, credentials.createInsecure());
  });
  afterAll(async () => {
    client?.close();
    await server?.stop();
  });

  function record({ id = v4(), format = 1 }: { id?: string; format?: 0 | 1 } = {}): AppendRecord {
    const schema = new SchemaInfo();
    schema.setName('x:y');
    schema.setFormat(format);
    const made = new AppendRecord();
    made.setRecordId(id);
    made.setSchema(schema);
    made.setData(Buffer.from('{}'));
    return made;
  }

  function append(stream: string, expected: number | undefined, records: AppendRecord[]) {
    const request = new AppendRequest();
    request.setStream(stream);
    if (expected !== undefined) request.setExpectedRevision(String(expected));
    request.setRecordsList(records);
    return new Promise<AppendSessionResponse>((resolve, reject) => {
      const call = client.appendSession(new Metadata(), (error, response) =>
        error ? reject(error) : resolve(response),
      );
      call.write(request);
      call.end();
    });
  }

  const refusal = (answer: Promise<unknown>) =>
    answer.then(
      () => ({ code: undefined, message: 'it was taken', info: '' }),
      (error: ServiceError) => {
        const [packed] = error.metadata.get('grpc-status-details-bin');
        return { code: error.code, message: error.details, info: packed ? Buffer.from(packed).toString('latin1') : '' };
      },
    );

  test.each([
    ['expected revision -3', 's', -3, () => [record()]],
    ['expected revision -5', 's', -5, () => [record()]],
    ['no records', 's', -1, () => []],
    ['an unspecified format', 's', -1, () => [record({ format: 0 })]],
    ['an id that is no UUID', 's', -1, () => [record({ id: 'x' })]],
  ] as const)('%s: INVALID_ARGUMENT with a BadRequest', async (_, stream, expected, records) => {
    const { code, info } = await refusal(append(stream, expected, [...records()]));
    expect(code).toBe(status.INVALID_ARGUMENT);
    expect(info).toContain('google.rpc.BadRequest');
  });

  test('an expected revision left out means any', async () => {
    for (const revision of [0, 1]) {
      const response = await append('left-out', undefined, [record()]);
      expect(response.getOutputList()[0]!.getStreamRevision()).toBe(String(revision));
    }
  });

  test('a conflict names both revisions, and its reason and domain', async () => {
    for (const _ of [0, 1]) await append('c', -2, [record()]);
    const { code, message, info } = await refusal(append('c', -1, [record()]));
    expect(code).toBe(status.FAILED_PRECONDITION);
    expect(message).toMatch(/on stream 'c'\. Expected revision: -1\. Actual revision: 1\.$/);
    expect(info).toContain('STREAM_REVISION_CONFLICT');
    expect(info).toContain('streams');
    expect(Status.deserializeBinary(Buffer.from(info, 'latin1')).getCode()).toBe(status.FAILED_PRECONDITION);
  });
});
