import { type FakeAnswer, type FakeCall, FakeCloud, type FakeHandler } from './cloud';

/** A person at a vendor, and the app that their token was given to. */
export interface FakePerson {
  id: string;
  name: string;
  email?: string;
  avatar_url?: string;
  client_id: string;
  scopes?: readonly string[];
}

export interface Asked extends FakeCall {
  /** Behind `Bearer` or `OAuth`, whichever the vendor takes; empty where it is the other one. */
  token(scheme: 'Bearer' | 'OAuth'): string;
}

/** What it does instead of answering, until it is null again. */
export type Fault = { status: number; headers?: Record<string, string> } | 'hang';

/** A vendor that knows people by their tokens: one function answers whatever it is asked. */
export class FakeVendor extends FakeCloud {
  /** By access token; one that is taken away is revoked. */
  readonly people = new Map<string, FakePerson>();
  fault: Fault | null = null;

  constructor(private readonly answer: (asked: Asked, people: ReadonlyMap<string, FakePerson>) => FakeAnswer) {
    super();
  }

  protected override handlerOf(): FakeHandler {
    return (call) => {
      if (this.fault === 'hang') return undefined;
      if (this.fault !== null) return { ...this.fault, body: {} };
      const { authorization = '' } = call.headers;
      const token = (scheme: string) => new RegExp(`^${scheme} (.+)$`).exec(authorization)?.[1] ?? '';
      return this.answer({ ...call, token }, this.people);
    };
  }
}
