import { ServerLog } from './log';
import { KurrentServer, type Cluster, type KurrentServerOptions } from './server';

/**
 * Several nodes over one log, as clients see them: one leads and takes appends, the others say who does. The log is
 * what a majority has; a node's own copy of it can be held back.
 */
export class KurrentCluster implements Cluster {
  readonly log = new ServerLog();
  readonly nodes: KurrentServer[] = [];
  leader: KurrentServer | undefined;

  private constructor(private readonly tls: boolean) {}

  static async start(count: number, options: Omit<KurrentServerOptions, 'cluster'> = {}): Promise<KurrentCluster> {
    const cluster = new KurrentCluster(options.tls !== undefined);
    for (let n = 0; n < count; n += 1) cluster.nodes.push(await KurrentServer.start({ ...options, cluster }));
    cluster.elect(0);
    return cluster;
  }

  /** Node `index` leads from now on, with everything that was stored; undefined leaves the cluster without a leader. */
  elect(index: number | undefined): void {
    this.leader = index === undefined ? undefined : this.nodes[index];
    this.leader?.copy.release();
  }

  /** Connection string of all nodes, or of those given. */
  url(nodes: number[] = [...this.nodes.keys()], { scheme = 'kurrentdb', login = '', extra = '' } = {}): string {
    const hosts = nodes.map((index) => `127.0.0.1:${this.nodes[index]!.address.port}`).join(',');
    return `${scheme}://${login}${hosts}?tls=${this.tls}${extra}`;
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.stop();
  }
}
