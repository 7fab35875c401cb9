import { Metadata, status, type ServiceError } from '@grpc/grpc-js';
import { Any } from 'google-protobuf/google/protobuf/any_pb';
import { Timestamp } from 'google-protobuf/google/protobuf/timestamp_pb';
import { StreamIdentifier, UUID } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/shared_pb';
import { Status } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/status_pb';
import { ReadResp, type ReadReq } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/streams_pb';
import { NotLeaderNodeErrorDetails } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v2/errors_pb';
import {
  AppendRecordSizeExceededErrorDetails,
  AppendTransactionSizeExceededErrorDetails,
  StreamRevisionConflictErrorDetails,
} from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v2/streams/errors_pb';
import type { AppendRequest } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v2/streams/streams_pb';
import { isUuid } from '../../../lib/hash/uuid';
import type { LogRecord, Write } from './log';

const TEXT = new TextEncoder();
/** Schema names that the server takes. */
const SCHEMA_NAME = /^[a-zA-Z0-9_.$:-]+$/;

export function refusal(code: status, message: string, trailers = new Metadata()): ServiceError {
  return Object.assign(new Error(message), { code, details: message, metadata: trailers });
}

/** A google.rpc.ErrorInfo: reason and domain. */
function errorInfo(reason: string, domain: string): Uint8Array {
  const text = (field: number, value: string) => {
    const bytes = Buffer.from(value);
    return Buffer.concat([Buffer.from([(field << 3) | 2, bytes.length]), bytes]);
  };
  return Buffer.concat([text(1, reason), text(2, domain)]);
}

interface Details {
  reason: string;
  domain: 'streams' | 'server';
  /** Full name of the message in `bytes`. */
  type: string;
  bytes: Uint8Array;
}

/** An error of the second protocol: a google.rpc.Status with an ErrorInfo first and the details after it. */
function detailed(code: status, message: string, { reason, domain, type, bytes }: Details): ServiceError {
  const part = (type_url: string, value: Uint8Array) => {
    const any = new Any();
    any.setTypeUrl(`type.googleapis.com/${type_url}`);
    any.setValue(value);
    const packed = new Status();
    packed.setCode(code as number);
    packed.setMessage(message);
    packed.setDetails(any);
    return packed.serializeBinary();
  };
  const trailers = new Metadata();
  const parts = [part('google.rpc.ErrorInfo', errorInfo(reason, domain)), part(type, bytes)];
  // Two messages in a row are one message with both details.
  trailers.set('grpc-status-details-bin', Buffer.concat(parts));
  return refusal(code, message, trailers);
}

/** A node's place in its cluster, as others reach it. */
export interface NodeAddress {
  id: string;
  host: string;
  port: number;
}

/** The first protocol's answer of a node that is asked for what only the leader does. */
export function notLeader({ host, port }: NodeAddress): ServiceError {
  const trailers = new Metadata();
  trailers.set('exception', 'not-leader');
  trailers.set('leader-endpoint-host', host);
  trailers.set('leader-endpoint-port', String(port));
  return refusal(status.NOT_FOUND, 'Leader info available', trailers);
}

/** The second protocol's. */
export function notLeaderNode({ id, host, port }: NodeAddress): ServiceError {
  const leader = new NotLeaderNodeErrorDetails.NodeInfo();
  leader.setHost(host);
  leader.setPort(port);
  leader.setNodeId(id);
  const details = new NotLeaderNodeErrorDetails();
  details.setCurrentLeader(leader);
  const message = `The server is not the leader node and cannot handle the request. Please retry your request against the leader node directly at ${host}:${port}`;
  return detailed(status.FAILED_PRECONDITION, message, {
    reason: 'NOT_LEADER_NODE',
    domain: 'server',
    type: 'kurrent.rpc.NotLeaderNodeErrorDetails',
    bytes: details.serializeBinary(),
  });
}

/** A read's answer while the cluster has no leader. */
export const notReady = (): ServiceError => refusal(status.UNAVAILABLE, 'Server Is Not Ready');

/** An append's answer during an election. */
export const notReadyToAppend = (): ServiceError =>
  refusal(status.UNAVAILABLE, 'The server is not yet ready to handle requests. Please try again after 5 seconds.');

/** The answer to an append whose leader lost its place before a majority had it: it may be stored later. */
export const appendTimedOut = (): ServiceError =>
  refusal(
    status.DEADLINE_EXCEEDED,
    'Operation timed out: Append session timed out while waiting for commit confirmation.',
  );

/** A field that the validators refuse, as a google.rpc.BadRequest. */
function badRequest(field: string, description: string): ServiceError {
  const text = (number: number, value: string) => {
    const bytes = Buffer.from(value);
    return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
  };
  const violation = Buffer.concat([text(1, field), text(2, description)]);
  const bytes = Buffer.concat([Buffer.from([10, violation.length]), violation]);
  const type = 'google.rpc.BadRequest';
  return detailed(status.INVALID_ARGUMENT, description, { reason: 'BAD_REQUEST', domain: 'server', type, bytes });
}

/** Its data and metadata are larger than a record may be. */
export function recordTooLarge(stream: string, id: string, size: number, max: number): ServiceError {
  const details = new AppendRecordSizeExceededErrorDetails();
  details.setStream(stream);
  details.setRecordId(id);
  details.setSize(size);
  details.setMaxSize(max);
  return detailed(status.INVALID_ARGUMENT, `The size of record ${id} (${size} B) exceeds the maximum of ${max} B.`, {
    reason: 'APPEND_RECORD_SIZE_EXCEEDED',
    domain: 'streams',
    type: 'kurrentdb.protocol.v2.streams.errors.AppendRecordSizeExceededErrorDetails',
    bytes: details.serializeBinary(),
  });
}

export function revisionConflict(stream: string, expected: number, actual: number): ServiceError {
  const details = new StreamRevisionConflictErrorDetails();
  details.setStream(stream);
  details.setExpectedRevision(String(expected));
  details.setActualRevision(String(actual));
  const revisions = `Expected revision: ${expected}. Actual revision: ${actual}.`;
  const message = `Append failed due to a revision conflict on stream '${stream}'. ${revisions}`;
  return detailed(status.FAILED_PRECONDITION, message, {
    reason: 'STREAM_REVISION_CONFLICT',
    domain: 'streams',
    type: 'kurrentdb.protocol.v2.streams.errors.StreamRevisionConflictErrorDetails',
    bytes: details.serializeBinary(),
  });
}

export function transactionTooLarge(size: number, max: number): ServiceError {
  const details = new AppendTransactionSizeExceededErrorDetails();
  details.setSize(size);
  details.setMaxSize(max);
  return detailed(status.ABORTED, 'The append transaction is too large.', {
    reason: 'APPEND_TRANSACTION_SIZE_EXCEEDED',
    domain: 'streams',
    type: 'kurrentdb.protocol.v2.streams.errors.AppendTransactionSizeExceededErrorDetails',
    bytes: details.serializeBinary(),
  });
}

/** One request of an append session. @throws ServiceError INVALID_ARGUMENT for what the server's validators refuse */
export function toWrite(request: AppendRequest): Write {
  const stream = request.getStream();
  if (stream.trim() === '' || stream === '$$') throw refusal(status.INVALID_ARGUMENT, 'Stream must not be empty.');
  const expected = request.hasExpectedRevision() ? Number(request.getExpectedRevision()) : -2;
  if (expected < 0 && ![-1, -2, -4].includes(expected))
    throw badRequest('expected_revision', 'Expected revision must be -1, -2, -4 or a revision.');
  if (request.getRecordsList().length === 0) throw badRequest('records', 'Records must not be empty.');
  const events = request.getRecordsList().map((record) => {
    const schema = record.getSchema()!;
    if (schema.getFormat() === 0) throw badRequest('schema.format', 'Schema format must be specified.');
    if (!isUuid(record.getRecordId() ?? '')) throw badRequest('record_id', 'Record id must be a UUID.');
    if (!SCHEMA_NAME.test(schema.getName())) throw refusal(status.INVALID_ARGUMENT, 'Schema name is not valid.');
    const properties: Record<string, unknown> = {
      '$schema.name': schema.getName(),
      '$schema.format': schema.getFormat() === 1 ? 'Json' : 'Bytes',
    };
    record.getPropertiesMap().forEach((value, name) => {
      if (name === '') throw refusal(status.INVALID_ARGUMENT, 'Property keys must not be empty.');
      properties[name] = value.toJavaScript();
    });
    return {
      id: record.getRecordId()!,
      type: schema.getName(),
      json: schema.getFormat() === 1,
      data: record.getData_asU8(),
      metadata: TEXT.encode(JSON.stringify(properties)),
    };
  });
  return { stream, expected, events };
}

export function toReadEvent(record: LogRecord, uuid: ReadReq.Options.UUIDOption | undefined): ReadResp {
  const event = new ReadResp.ReadEvent.RecordedEvent();
  const stream = new StreamIdentifier();
  stream.setStreamName(TEXT.encode(record.stream));
  event.setId(toUuid(record.id, uuid?.hasStructured() ?? false));
  event.setStreamIdentifier(stream);
  event.setStreamRevision(String(record.revision));
  event.setCommitPosition(String(record.position));
  event.setPreparePosition(String(record.position));
  event.setData(record.data);
  event.setCustomMetadata(record.metadata);
  const facts = event.getMetadataMap();
  facts.set('type', record.type);
  facts.set('content-type', record.json ? 'application/json' : 'application/octet-stream');
  facts.set('created', String(BigInt(record.created_ms) * 10_000n));
  const read = new ReadResp.ReadEvent();
  read.setEvent(event);
  read.setCommitPosition(String(record.position));
  const response = new ReadResp();
  response.setEvent(read);
  return response;
}

/** @param prepare 0 during catch-up, where the server knows the commit position alone */
export function toCheckpoint(position: bigint, prepare: bigint): ReadResp {
  const checkpoint = new ReadResp.Checkpoint();
  checkpoint.setCommitPosition(String(position));
  checkpoint.setPreparePosition(String(prepare));
  checkpoint.setTimestamp(Timestamp.fromDate(new Date()));
  const response = new ReadResp();
  response.setCheckpoint(checkpoint);
  return response;
}

export function toLastStreamPosition(revision: number): ReadResp {
  const response = new ReadResp();
  response.setLastStreamPosition(String(revision));
  return response;
}

export function toCaughtUp(position: bigint): ReadResp {
  const at = new ReadResp.Position();
  at.setCommitPosition(String(position));
  at.setPreparePosition(String(position));
  const caught_up = new ReadResp.CaughtUp();
  caught_up.setTimestamp(Timestamp.fromDate(new Date()));
  caught_up.setPosition(at);
  const response = new ReadResp();
  response.setCaughtUp(caught_up);
  return response;
}

export function toUuid(id: string, structured: boolean): UUID {
  const uuid = new UUID();
  if (!structured) {
    uuid.setString(id);
    return uuid;
  }
  const bits = BigInt(`0x${id.replaceAll('-', '')}`);
  const halves = new UUID.Structured();
  halves.setMostSignificantBits(String(BigInt.asIntN(64, bits >> 64n)));
  halves.setLeastSignificantBits(String(BigInt.asIntN(64, bits)));
  uuid.setStructured(halves);
  return uuid;
}
