import {
  Server,
  ServerCredentials,
  status,
  Metadata,
  type ServerReadableStream,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { GossipService } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/gossip_grpc_pb';
import {
  ClusterInfo,
  EndPoint,
  MemberInfo,
} from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/gossip_pb';
import { ServerFeaturesService } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/serverfeatures_grpc_pb';
import {
  SupportedMethod,
  SupportedMethods,
} from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/serverfeatures_pb';
import { StreamsService } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/streams_grpc_pb';
import { StreamsServiceService } from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v2/streams/streams_grpc_pb';
import {
  AppendResponse,
  AppendSessionResponse,
  type AppendRequest,
} from '@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v2/streams/streams_pb';
import { NodeLog, ServerLog, type Write } from './log';
import {
  notLeader,
  notLeaderNode,
  appendTimedOut,
  notReady,
  notReadyToAppend,
  recordTooLarge,
  refusal,
  revisionConflict,
  toUuid,
  toWrite,
  transactionTooLarge,
  type NodeAddress,
} from './messages';
import { read } from './reads';
import { Relay } from './relay';

/** What an ACL may keep from a login. */
type Right = 'append' | 'read $all';

const VERSION = '26.1.0';
const MIB = 1024 * 1024;

export interface KurrentServerOptions {
  /**
   * Default 26.1.0. Below 25.1 there are no append sessions; below 26.1 a repetition mixed with new events is an error
   * without details.
   */
  version?: string;
  /** Required of every call for data when given. */
  login?: { username: string; password: string };
  tls?: { key: string; cert: string };
  /** Bytes of one append session. Default 256 MiB. */
  max_append_size?: number;
  /** Bytes of one record; at most those of an append session. Default 16 MiB, or `max_append_size` where it is less. */
  max_record_size?: number;
  /** Bytes of one gRPC message. Default 17 MiB. */
  max_message_size?: number;
  /** The cluster that this server is a node of; alone it leads itself. */
  cluster?: Cluster;
}

export interface Cluster {
  log: ServerLog;
  nodes: readonly KurrentServer[];
  /** Undefined during an election. */
  leader: KurrentServer | undefined;
}

/**
 * A KurrentDB for tests: the published gRPC protocol, as the client's own definitions have it, over a log in memory.
 * Behind a TCP relay, so that links can be cut at any moment.
 */
export class KurrentServer {
  readonly log: ServerLog;
  /** This node's copy of it. */
  readonly copy: NodeLog;
  private readonly id = randomUUID();
  /** `authorization` of the calls seen, by method. */
  readonly seen: { method: string; authorization: string | undefined }[] = [];
  private relay!: Relay;
  private lost_replies = 0;
  private lost_places = 0;
  private readonly denied = new Set<Right>();
  /** Checkpoints sent to subscriptions, `commit/prepare`. */
  readonly checkpoints: string[] = [];
  /** Milliseconds before an append is looked at, whether its client still waits or not. */
  delay_ms = 0;
  /** Milliseconds between storing an append and answering it. */
  answer_delay_ms = 0;

  /** Runs before a subscription is served: what it appends is read in catch-up. */
  before_subscription: (() => Promise<unknown>) | undefined;

  private constructor(
    private readonly grpc: Server,
    private readonly options: KurrentServerOptions,
  ) {
    this.log = options.cluster?.log ?? new ServerLog();
    this.copy = new NodeLog(this.log);
  }

  static async start(options: KurrentServerOptions = {}): Promise<KurrentServer> {
    const max_message_size = options.max_message_size ?? 17 * 1024 * 1024;
    const grpc = new Server({ 'grpc.max_receive_message_length': max_message_size });
    const server = new KurrentServer(grpc, options);
    const { max_append, max_record } = server.sizes;
    if (max_append < max_record) throw new Error('--max-append-size must not be below --max-append-event-size');
    server.serve();
    const credentials = options.tls
      ? ServerCredentials.createSsl(null, [
          { private_key: Buffer.from(options.tls.key), cert_chain: Buffer.from(options.tls.cert) },
        ])
      : ServerCredentials.createInsecure();
    const port = await new Promise<number>((bound, failed) =>
      grpc.bindAsync('127.0.0.1:0', credentials, (error, port) => (error ? failed(error) : bound(port))),
    );
    server.relay = new Relay('127.0.0.1', port);
    await server.relay.up();
    // A server's own events are always there.
    if (server.log.records.length > 0) return server;
    const own = (stream: string, type: string): Write => ({
      stream,
      expected: -2,
      events: [{ id: randomUUID(), type, json: true, data: Buffer.from('{}'), metadata: Buffer.from('{}') }],
    });
    server.log.append([own('$users', '$UserCreated')]);
    server.log.append([own('$stats-127.0.0.1:2113', '$statsCollected')]);
    return server;
  }

  /** Connection string; `login` and parameters are added as given. */
  url({ login = '', scheme = 'kurrentdb', tls = this.options.tls !== undefined, extra = '' } = {}): string {
    return `${scheme}://${login}127.0.0.1:${this.relay.port}?tls=${tls}${extra}`;
  }

  get address(): NodeAddress {
    return { id: this.id, host: '127.0.0.1', port: this.relay.port };
  }

  /** Breaks every connection at once; new ones are taken. */
  cut(): void {
    this.relay.cut();
  }

  /** The connections there are go silent; new ones work. */
  silence(): void {
    this.relay.silence();
  }

  /** The next appends are stored, and their links broken instead of an answer. */
  loseReplies(count: number): void {
    this.lost_replies = count;
  }

  /** Takes connections and answers nothing, like a process that is stopped (SIGSTOP). */
  freeze(): void {
    this.relay.freeze();
  }

  /** Nothing listens any more; the log stays. */
  async down(): Promise<void> {
    await this.relay.down();
    this.log.forgetRecent();
  }

  /** Listens again, at the same port. */
  async up(): Promise<void> {
    await this.relay.up();
  }

  async stop(): Promise<void> {
    if (this.relay.listening) await this.down();
    this.grpc.forceShutdown();
  }

  /** Takes a right from every login. */
  deny(right: Right): void {
    this.denied.add(right);
  }

  /** The next appends are stored, and answered as by a leader that lost its place meanwhile. */
  losePlace(count: number): void {
    this.lost_places = count;
  }

  private isBelow(version: number): boolean {
    return Number.parseFloat(this.options.version ?? VERSION) < version;
  }

  private get sizes(): { max_append: number; max_record: number } {
    const max_append = this.options.max_append_size ?? 256 * MIB;
    return { max_append, max_record: this.options.max_record_size ?? Math.min(16 * MIB, max_append) };
  }

  private serve(): void {
    this.grpc.addService(StreamsService, {
      read: (call: Parameters<typeof read>[1]) => {
        const all = call.request.getOptions()!.hasAll();
        const error = this.gate('read', call.metadata) ?? (all ? this.denial('read $all') : undefined);
        if (error) return void call.emit('error', error);
        const node = { refuse: this.gateOfLeader(call.metadata), checkpoints: this.checkpoints };
        const before = call.request.getOptions()!.hasSubscription() ? this.before_subscription : undefined;
        if (before === undefined) return read(this.copy, call, node);
        void before().then(() => read(this.copy, call, node));
      },
    });
    this.grpc.addService(ServerFeaturesService, {
      getSupportedMethods: (call: { metadata: Metadata }, answer: sendUnaryData<SupportedMethods>) => {
        // Open to everyone, since the client asks without credentials; a wrong login is refused all the same.
        const error = this.gate('getSupportedMethods', call.metadata);
        if (error?.code === status.UNAUTHENTICATED) answer(error);
        else answer(null, this.methods());
      },
    });
    this.grpc.addService(GossipService, {
      read: (call: { metadata: Metadata }, answer: sendUnaryData<ClusterInfo>) => {
        this.gate('gossip', call.metadata);
        answer(null, this.gossip());
      },
    });
    if (this.isBelow(25.1)) return;
    this.grpc.addService(StreamsServiceService, {
      appendSession: (
        call: ServerReadableStream<AppendRequest, AppendSessionResponse>,
        answer: sendUnaryData<AppendSessionResponse>,
      ) => {
        const requests: AppendRequest[] = [];
        call.on('data', (request: AppendRequest) => requests.push(request));
        call.on('error', () => undefined);
        call.on('end', () => {
          const work = () => this.append(call.metadata, requests, answer);
          if (this.delay_ms > 0) return void setTimeout(work, this.delay_ms);
          // A link that breaks in the middle of a session ends it as well; only what the client completed is an append.
          setImmediate(() => void (call.cancelled || work()));
        });
      },
    });
  }

  /** Whether a call may go on. */
  private gate(method: string, metadata: Metadata) {
    const authorization = metadata.get('authorization')[0]?.toString();
    this.seen.push({ method, authorization });
    const { login } = this.options;
    if (!login) return undefined;
    const wanted = `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`;
    if (authorization === undefined) return refusal(status.PERMISSION_DENIED, 'Access Denied');
    return authorization === wanted ? undefined : refusal(status.UNAUTHENTICATED, 'Unauthenticated');
  }

  /** @returns the answer to what the login may not do */
  private denial(right: Right) {
    if (!this.denied.has(right)) return undefined;
    const trailers = new Metadata();
    trailers.set('exception', 'access-denied');
    return refusal(status.PERMISSION_DENIED, 'Access Denied', trailers);
  }

  /** Whether a read that wants the leader may go on here. */
  private gateOfLeader(metadata: Metadata) {
    if (metadata.get('requires-leader')[0]?.toString() !== 'true' || this.leads) return undefined;
    const { leader } = this.options.cluster!;
    return leader ? notLeader(leader.address) : notReady();
  }

  private get leads(): boolean {
    const { cluster } = this.options;
    return !cluster || cluster.leader === this;
  }

  private append(metadata: Metadata, requests: AppendRequest[], answer: sendUnaryData<AppendSessionResponse>): void {
    try {
      const error = this.gate('appendSession', metadata) ?? this.denial('append');
      if (error) throw error;
      if (!this.leads) {
        const { leader } = this.options.cluster!;
        throw leader ? notLeaderNode(leader.address) : notReadyToAppend();
      }
      const writes = requests.map(toWrite);
      if (writes.length === 0) throw refusal(status.FAILED_PRECONDITION, 'Append session has no requests.');
      const names = new Set(writes.map(({ stream }) => stream.toLowerCase()));
      if (names.size < writes.length) throw refusal(status.ABORTED, 'A stream is already part of this append session.');
      const { max_append, max_record } = this.sizes;
      let total = 0;
      for (const { stream, events } of writes)
        for (const { id, data, metadata, type } of events) {
          const size = data.length + metadata.length + type.length;
          if (size > max_record) throw recordTooLarge(stream, id, size, max_record);
          total += size;
        }
      if (total > max_append) throw transactionTooLarge(total, max_append);
      const outcome = this.log.append(writes);
      if (outcome.result === 'wrong') {
        const { stream, expected } = writes[outcome.index]!;
        throw revisionConflict(stream, expected, outcome.current);
      }
      if (outcome.result === 'mixed') {
        const { stream, expected } = writes[outcome.index]!;
        if (this.isBelow(26.1)) throw refusal(status.UNKNOWN, 'Exception was thrown by handler.');
        throw revisionConflict(stream, expected, outcome.current);
      }
      if (this.lost_places > 0) {
        this.lost_places -= 1;
        throw appendTimedOut();
      }
      if (this.lost_replies > 0) {
        this.lost_replies -= 1;
        this.cut();
        return;
      }
      const response = new AppendSessionResponse();
      writes.forEach(({ stream }, index) => {
        const output = new AppendResponse();
        output.setStream(stream);
        output.setStreamRevision(String(outcome.heads[index]));
        response.addOutput(output);
      });
      response.setPosition(String(outcome.position));
      if (this.answer_delay_ms > 0) setTimeout(() => answer(null, response), this.answer_delay_ms);
      else answer(null, response);
    } catch (error) {
      answer(error as Parameters<typeof answer>[0]);
    }
  }

  private methods(): SupportedMethods {
    const methods = new SupportedMethods();
    methods.setEventStoreServerVersion(this.options.version ?? VERSION);
    const add = (service: string, name: string) => {
      const method = new SupportedMethod();
      method.setServiceName(service);
      method.setMethodName(name);
      methods.addMethods(method);
    };
    for (const name of ['read', 'append', 'batchappend']) add('event_store.client.streams.streams', name);
    if (!this.isBelow(25.1)) add('kurrentdb.protocol.v2.streams.streamsservice', 'appendsession');
    return methods;
  }

  private gossip(): ClusterInfo {
    const { nodes, leader } = this.options.cluster ?? { nodes: [this], leader: this };
    const { LEADER, FOLLOWER, UNKNOWN } = MemberInfo.VNodeState;
    const info = new ClusterInfo();
    for (const node of nodes) {
      const member = new MemberInfo();
      member.setInstanceId(toUuid(node.id, true));
      member.setTimeStamp(String(BigInt(Date.now()) * 10_000n));
      member.setState(node === leader ? LEADER : leader ? FOLLOWER : UNKNOWN);
      member.setIsAlive(node.relay.listening);
      const end_point = new EndPoint();
      end_point.setAddress(node.address.host);
      end_point.setPort(node.address.port);
      member.setHttpEndPoint(end_point);
      info.addMembers(member);
    }
    return info;
  }
}
