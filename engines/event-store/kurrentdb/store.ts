import {
  BACKWARDS,
  END,
  FORWARDS,
  NO_STREAM,
  StreamNotFoundError,
  WrongExpectedVersionError,
  eventTypeFilter,
  jsonEvent,
} from '@kurrent/kurrentdb-client';
import { v7 } from 'uuid';
import type { Logger } from '../../log/port';
import { encodeAppend } from '../checks';
import { KurrentAppends } from './appends';
import { PlannedAppend } from './claims';
import { comparePositions, fromPosition, INSTALLATION_TYPE, toEvent, typesPattern } from './events';
import { EngineUnavailable } from '../../../kernel/failures';
import { ActiveSet } from '../../active-set';
import { isRefusedLogin, MissingRight, reason } from './errors';
import { KurrentLink, NEEDED_VERSION } from './link';
import { KurrentTail } from './tail';
import type {
  AppendResult,
  EventBatch,
  EventFilter,
  EventStore,
  Position,
  StoredEvent,
  SubscribeOptions,
} from '../port';

export interface KurrentEventStoreOptions {
  /**
   * `kurrentdb://user:password@host:2113?tls=true`, `kurrentdb+discover://…`, several hosts by commas; `esdb://` is the
   * older name.
   */
  url: string;
  log?: Logger;
  /** Milliseconds for which the start waits for a silent server. Default 20 000. */
  connect_for_ms?: number;
  /**
   * Milliseconds for which an append whose outcome is unknown is read back and sent again. Default 30 000, because a
   * failover took up to 19 s (docs/operating/engines.md).
   */
  retry_for_ms?: number;
  /**
   * Milliseconds between checks whether the leader is ahead of a live subscription without arrivals. Default 10 000.
   */
  stalled_after_ms?: number;
}

const INSTALLATION = 'lumio-installation';
const DEFAULT_BATCH = 500;
const STREAM_PAGE = 1000;

/**
 * The event store on KurrentDB 25.1 or newer (design §5, §9). The database is Lumio's own: events of other applications
 * in it would be read as domain events. Besides what is appended it holds a stream `lumio-installation`, whose one
 * event gives the store its identity, and one stream per event id (see {@link PlannedAppend}).
 * @throws Error with one line for the operator: no connection string, no server there, a refused login, a server that
 * is too old
 */
export async function createKurrentEventStore(options: KurrentEventStoreOptions): Promise<EventStore> {
  const link = new KurrentLink(options.url);
  try {
    const id = await connect(link, options);
    return new KurrentEventStore(`kurrentdb:${id}`, link, options);
  } catch (error) {
    await link.close();
    throw error;
  }
}

/** Waits for the server, checks its version, and returns the store's identity, which the first process creates. */
async function connect(link: KurrentLink, { log, connect_for_ms = 20_000 }: KurrentEventStoreOptions): Promise<string> {
  const ask = async () => {
    const server = await link.server();
    if (!server.appends) return new TooOld(link.hosts, server.version);
    const id = await installationId(link);
    await useRights(link);
    return id;
  };
  const onFailure = (error: unknown) =>
    log?.warn({ hosts: link.hosts, reason: reason(error) }, 'KurrentDB does not answer yet');
  const answer = await link
    .persist(ask, { first_ms: 200, most_ms: 2000, within_ms: connect_for_ms, onFailure })
    .catch((failure: unknown) => {
      if (failure instanceof MissingRight) throw new Error(`KurrentDB at ${link.hosts}: ${failure.message}`);
      const error = failure instanceof EngineUnavailable ? failure.cause : failure;
      const what = isRefusedLogin(error) ? 'refuses the login' : 'cannot be used';
      throw new Error(`KurrentDB at ${link.hosts} ${what}: ${reason(error)}`);
    });
  if (answer instanceof TooOld) throw answer;
  return answer;
}

class TooOld extends Error {
  constructor(hosts: string, version: string) {
    super(
      `KurrentDB at ${hosts} is version ${version}; Lumio needs ${NEEDED_VERSION} or newer, which can append to several streams at once`,
    );
  }
}

async function installationId(link: KurrentLink): Promise<string> {
  const client = link.client();
  for (;;) {
    try {
      for await (const { event } of client.readStream(INSTALLATION, { maxCount: 1, requiresLeader: true }))
        return (event!.data as { id: string }).id;
    } catch (error) {
      if (!(error instanceof StreamNotFoundError)) throw error;
    }
    try {
      const event = jsonEvent({ type: INSTALLATION_TYPE, data: { id: v7() } });
      await client.multiStreamAppend([{ streamName: INSTALLATION, expectedState: NO_STREAM, events: [event] }]);
    } catch (error) {
      // Another process has created the identity, which is read again.
      if (!(error instanceof WrongExpectedVersionError)) throw error;
    }
  }
}

/**
 * Tests the rights that tails and appends need: reads one event of `$all`, and repeats the installation's first append,
 * which the server refuses for its revision when the login may write. @throws MissingRight
 */
async function useRights(link: KurrentLink): Promise<void> {
  const client = link.client();
  const need = async (right: string, use: () => Promise<unknown>) => {
    try {
      await use();
    } catch (error) {
      if (!isRefusedLogin(error)) throw error;
      throw new MissingRight(`the login may not ${right}`, { cause: error });
    }
  };
  await need('read $all', async () => {
    for await (const _ of client.readAll({ maxCount: 1, requiresLeader: true })) return;
  });
  await need(`append to streams (tried on ${INSTALLATION})`, async () => {
    const event = jsonEvent({ type: INSTALLATION_TYPE, data: { id: v7() } });
    try {
      await client.multiStreamAppend([{ streamName: INSTALLATION, expectedState: NO_STREAM, events: [event] }]);
    } catch (error) {
      if (!(error instanceof WrongExpectedVersionError)) throw error;
    }
  });
}

interface StreamPage {
  fromRevision: bigint | typeof END;
  maxCount: number;
  backwards: boolean;
}

class KurrentEventStore implements EventStore {
  private readonly appends: KurrentAppends;
  private readonly tails = new ActiveSet<KurrentTail>();
  private readonly under_way = new Set<Promise<unknown>>();
  private closed = false;

  constructor(
    readonly id: string,
    private readonly link: KurrentLink,
    private readonly options: KurrentEventStoreOptions,
  ) {
    this.appends = new KurrentAppends({ link, log: options.log, retry_for_ms: options.retry_for_ms ?? 30_000 });
  }

  async append(...[writes, metadata]: Parameters<EventStore['append']>): Promise<AppendResult> {
    if (this.closed) throw new Error('the event store is closed');
    const appending = this.appends.append(new PlannedAppend(encodeAppend(writes, metadata), writes, metadata));
    this.under_way.add(appending);
    const forget = () => void this.under_way.delete(appending);
    appending.then(forget, forget);
    return appending;
  }

  async read(...[stream, from, options]: Parameters<EventStore['read']>): Promise<StoredEvent[]> {
    const { limit = Infinity, backwards = false } = options ?? {};
    const events: StoredEvent[] = [];
    let next: bigint | typeof END = from === undefined ? (backwards ? END : 0n) : BigInt(from);
    for (;;) {
      const maxCount = Math.min(STREAM_PAGE, limit - events.length);
      const page = await this.again(() => this.streamPage(stream, { fromRevision: next, maxCount, backwards }));
      events.push(...page.events);
      if (page.read < maxCount || page.last === null || events.length >= limit) return events;
      if (backwards && page.last === 0n) return events;
      next = backwards ? page.last - 1n : page.last + 1n;
    }
  }

  async *readAll(after: Position | null, filter: EventFilter = {}, size = DEFAULT_BATCH): AsyncGenerator<EventBatch> {
    const head = await this.head();
    let at = after;
    while (head !== null && (at === null || comparePositions(at, head) < 0)) {
      const from = at;
      const batch = await this.again(() => this.page(from, head, filter, size));
      at = batch.position;
      yield batch;
    }
  }

  subscribe(subscribe: SubscribeOptions, onBatch: (batch: EventBatch) => Promise<void>): KurrentTail {
    return this.tails.add(
      new KurrentTail({
        link: this.link,
        log: this.options.log,
        subscribe,
        batch_size: subscribe.batch_size ?? DEFAULT_BATCH,
        readAll: (after, filter, size) => this.readAll(after, filter, size),
        head: () => this.head(),
        stalled_after_ms: this.options.stalled_after_ms ?? 10_000,
        onBatch,
      }),
    );
  }

  async head(): Promise<Position | null> {
    return this.again(async () => {
      const filter = eventTypeFilter({ regex: typesPattern({}) });
      const read = { direction: BACKWARDS, fromPosition: END, maxCount: 1, filter, requiresLeader: true } as const;
      const newest = this.link.client().readAll(read);
      for await (const resolved of newest) return toEvent(resolved)?.position ?? null;
      return null;
    });
  }

  compare(a: Position, b: Position): number {
    return comparePositions(a, b);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.tails.stop();
    await Promise.allSettled(this.under_way);
    await this.link.close();
  }

  private async streamPage(stream: string, { fromRevision, maxCount, backwards }: StreamPage) {
    const page = { events: [] as StoredEvent[], read: 0, last: null as bigint | null };
    try {
      const direction = backwards ? BACKWARDS : FORWARDS;
      const read = { direction, fromRevision, maxCount, requiresLeader: true } as const;
      for await (const resolved of this.link.client().readStream(stream, read)) {
        page.read += 1;
        page.last = resolved.event?.revision ?? page.last;
        const event = toEvent(resolved);
        if (event) page.events.push(event);
      }
    } catch (error) {
      if (!(error instanceof StreamNotFoundError)) throw error;
    }
    return page;
  }

  /**
   * The next matching events up to `head`; reads are inclusive, so that one more event is requested. Reads from the
   * leader, because a follower may lack events up to the leader's head, and a short page would then count as the end.
   */
  private async page(after: Position | null, head: Position, filter: EventFilter, size: number): Promise<EventBatch> {
    const events: StoredEvent[] = [];
    const options = {
      fromPosition: fromPosition(after),
      maxCount: size + 1,
      requiresLeader: true,
      filter: eventTypeFilter({ regex: typesPattern(filter) }),
    };
    for await (const resolved of this.link.client().readAll(options)) {
      const event = toEvent(resolved);
      if (!event || (after !== null && comparePositions(event.position, after) <= 0)) continue;
      if (comparePositions(event.position, head) > 0) return { events, position: head };
      events.push(event);
      if (events.length === size) return { events, position: event.position };
    }
    return { events, position: head };
  }

  /** Retries a failed read a few times. */
  private again<T>(read: () => Promise<T>): Promise<T> {
    return this.link.persist(read, { first_ms: 30, most_ms: 1500, tries: 7 });
  }
}
