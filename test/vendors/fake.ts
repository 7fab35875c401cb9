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

/** What a vendor says to who brings a token, whatever it is asked. */
export type LoginAnswer = (asked: Asked, people: ReadonlyMap<string, FakePerson>) => FakeAnswer;

/** A vendor that knows people by their tokens, which the test chooses. */
export class FakeVendor extends FakeCloud {
  /** By access token; one that is taken away is revoked. */
  readonly people = new Map<string, FakePerson>();
  fault: Fault | null = null;

  /** @param logins answers these people, and to whatever there is no route for */
  constructor(private readonly logins: LoginAnswer) {
    super();
  }

  protected override handlerOf(asked: FakeCall): FakeHandler {
    const { fault, logins, people } = this;
    if (fault === 'hang') return () => undefined;
    if (fault !== null) return () => ({ ...fault, body: {} });
    const { authorization = '' } = asked.headers;
    const token = (scheme: string) => new RegExp(`^${scheme} (.+)$`).exec(authorization)?.[1] ?? '';
    const own = [token('Bearer'), token('OAuth'), asked.query.get('access_token') ?? ''].some((one) => people.has(one));
    const route = own ? undefined : this.routeOf(asked);
    return route ?? ((call) => logins({ ...call, token }, people));
  }
}
