import { WebSocket } from 'ws';
import { type ChannelName, LumioClient, type Problem } from '../../clients/js/index';
import { eventually } from './vendor-cloud';

type Json = Record<string, any>;

/** Listens through the client library, as the programs of users do, and keeps what comes. */
export class Listener {
  readonly messages: Json[] = [];
  private readonly problems: Problem[] = [];
  private readonly client: LumioClient;

  private constructor(url: string, token: string) {
    this.client = new LumioClient({
      url,
      token: () => token,
      open: (address, of) => new WebSocket(`${address}?token=${encodeURIComponent(of!)}`),
    });
    this.client.on('problem', (problem) => this.problems.push(problem));
  }

  /** Connected, and accepted on all these channels. */
  static async to(ws_url: string, token: string, ...channels: ChannelName[]): Promise<Listener> {
    const listener = new Listener(ws_url, token);
    try {
      await Promise.all(channels.map((channel) => listener.subscribe(channel)));
    } catch (error) {
      listener.close();
      throw error;
    }
    return listener;
  }

  /** The first message that fits, of those that have come and those to come. */
  next(fits: (message: Json) => boolean): Promise<Json> {
    return eventually(async () => {
      if (this.problems.length > 0) throw new Error(`the connection is in trouble: ${JSON.stringify(this.problems)}`);
      return this.messages.find(fits);
    }, 'a message');
  }

  close(): void {
    this.client.close();
  }

  private subscribe(channel: ChannelName): Promise<void> {
    return new Promise((onSubscribed, fail) => {
      const onEnded = ({ code }: Problem): void => fail(new Error(`not let on ${channel}: ${code}`));
      const options = { onSubscribed: () => onSubscribed(), onEnded };
      this.client.subscribe(channel, (message) => this.messages.push(message), options);
    });
  }
}
