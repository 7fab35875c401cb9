import { status, type ServerWritableStream, type ServiceError } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { ReadReq, ReadResp } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/streams_pb';
import type { LogRecord, NodeLog } from './log';
import { refusal, toCaughtUp, toCheckpoint, toLastStreamPosition, toReadEvent } from './messages';

type ReadCall = ServerWritableStream<ReadReq, ReadResp>;
type Options = ReadReq.Options;

export interface ReadingNode {
  /** The answer of a node that may not serve the read; a subscription is confirmed before it. */
  refuse: ServiceError | undefined;
  /** Collects the checkpoints that are sent. */
  checkpoints: string[];
}

/**
 * The first protocol's Read: a stream or $all, forwards or backwards, filtered or not, once or as a subscription to
 * $all.
 */
export function read(log: NodeLog, call: ReadCall, node: ReadingNode): void {
  const options = call.request.getOptions()!;
  if (options.hasSubscription()) return subscribe(log, call, options, node);
  const { refuse } = node;
  if (refuse) return void call.emit('error', refuse);
  if (isBetweenRecords(log, options)) return void call.emit('error', refusal(status.UNKNOWN, BETWEEN));
  const records = options.hasStream() ? streamRecords(log, call, options) : allRecords(log, options);
  if (!records) return;
  const backwards = options.getReadDirection() === ReadReq.Options.ReadDirection.BACKWARDS;
  const matches = matcher(options);
  let left = BigInt(options.getCount());
  for (const record of backwards ? [...records].reverse() : records) {
    if (left <= 0n) break;
    if (!matches(record)) continue;
    call.write(toReadEvent(record, options.getUuidOption()));
    left -= 1n;
  }
  if (options.hasStream()) call.write(toLastStreamPosition(streamOf(log, options).length - 1));
  call.end();
}

const BETWEEN = 'Trying to read from an invalid position.';

/** The commit position is no record's, though records lie before and behind it. */
function isBetweenRecords(log: NodeLog, options: Options): boolean {
  const position = options.getAll()?.getPosition();
  if (!position) return false;
  const at = BigInt(position.getCommitPosition());
  const { records } = log;
  const newest = records[records.length - 1]?.position ?? 0n;
  return at > 0n && at < newest && !records.some((record) => record.position === at);
}

const streamOf = (log: NodeLog, options: Options): readonly LogRecord[] =>
  log.stream(Buffer.from(options.getStream()!.getStreamIdentifier()!.getStreamName_asU8()).toString());

/** In log order, cut at the revision asked for; undefined when the stream does not exist, which was answered then. */
function streamRecords(log: NodeLog, call: ReadCall, options: Options): readonly LogRecord[] | undefined {
  const stream = options.getStream()!;
  const identifier = stream.getStreamIdentifier()!;
  const records = streamOf(log, options);
  if (records.length === 0) {
    const not_found = new ReadResp.StreamNotFound();
    not_found.setStreamIdentifier(identifier);
    const response = new ReadResp();
    response.setStreamNotFound(not_found);
    call.write(response);
    call.end();
    return undefined;
  }
  if (!stream.hasRevision()) return records;
  const revision = Number(stream.getRevision());
  const backwards = options.getReadDirection() === ReadReq.Options.ReadDirection.BACKWARDS;
  return records.filter((record) => (backwards ? record.revision <= revision : record.revision >= revision));
}

/** Inclusive in the forward direction, exclusive in the other, as the server's pre- and post-positions are. */
function allRecords(log: NodeLog, options: Options): readonly LogRecord[] {
  const all = options.getAll()!;
  const backwards = options.getReadDirection() === ReadReq.Options.ReadDirection.BACKWARDS;
  if (!all.hasPosition()) return all.hasEnd() !== backwards ? [] : log.records;
  const from = BigInt(all.getPosition()!.getCommitPosition());
  return log.records.filter(({ position }) => (backwards ? position < from : position >= from));
}

/**
 * From a position (exclusive) on, then live; a checkpoint after every so many events looked at, and one on the way from
 * past to present.
 */
function subscribe(log: NodeLog, call: ReadCall, options: Options, { refuse, checkpoints }: ReadingNode): void {
  if (!options.hasAll()) {
    call.emit('error', refusal(status.UNIMPLEMENTED, 'subscriptions to one stream are not served here'));
    return;
  }
  if (isBetweenRecords(log, options)) {
    call.emit('error', refusal(status.INVALID_ARGUMENT, BETWEEN));
    return;
  }
  const all = options.getAll()!;
  const filter = options.getFilter();
  const matches = matcher(options);
  const interval = filter ? filter.getCheckpointintervalmultiplier() * (filter.hasMax() ? filter.getMax() : 32) : 0;
  const newest = log.records[log.records.length - 1]?.position ?? 0n;
  let at = all.hasPosition() ? BigInt(all.getPosition()!.getCommitPosition()) : all.hasEnd() ? newest : -1n;
  let looked_at = 0;
  const confirmation = new ReadResp.SubscriptionConfirmation();
  confirmation.setSubscriptionId(randomUUID());
  const confirmed = new ReadResp();
  confirmed.setConfirmation(confirmation);
  call.write(confirmed);
  if (refuse) return void call.emit('error', refuse);

  let live = false;
  const began_at = at;
  const checkpoint = () => {
    const prepare = live ? at : 0n;
    checkpoints.push(`${at}/${prepare}`);
    call.write(toCheckpoint(at, prepare));
  };
  const pass = (record: LogRecord) => {
    if (record.position <= at) return;
    at = record.position;
    if (matches(record)) call.write(toReadEvent(record, options.getUuidOption()));
    looked_at += 1;
    if (!filter || looked_at < interval) return;
    looked_at = 0;
    checkpoint();
  };
  for (const record of log.records) pass(record);
  if (filter && at > began_at) checkpoint();
  live = true;
  call.write(toCaughtUp(at < 0n ? 0n : at));
  log.on('record', pass);
  const end = () => void log.off('record', pass);
  call.on('cancelled', end);
  call.on('close', end);
}

function matcher(options: Options): (record: LogRecord) => boolean {
  const filter = options.getFilter();
  if (!filter) return () => true;
  const by_type = filter.hasEventType();
  const expression = (by_type ? filter.getEventType() : filter.getStreamIdentifier())!;
  const prefixes = expression.getPrefixList();
  const regex = new RegExp(expression.getRegex());
  return (record) => {
    const name = by_type ? record.type : record.stream;
    return prefixes.length > 0 ? prefixes.some((prefix) => name.startsWith(prefix)) : regex.test(name);
  };
}
