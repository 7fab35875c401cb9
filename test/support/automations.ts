import { randomUUID } from 'node:crypto';
import { type ApiClient, eventually } from './vendor-cloud';

const PATH = '/v1/automations';
type Config = Record<string, unknown>;
/** A node: its type, its config, and the output of the node before that leads to it. */
export type Link = readonly [string, Config?] | readonly [string, Config, string];

/** A chain of nodes, each at the default output of the one before or at the one that it names. */
export function chain(...types: Link[]) {
  const nodes = types.map(([type, config = {}]) => ({ id: randomUUID(), type, config }));
  const edges = nodes.slice(1).map(({ id }, at) => {
    const output = types[at + 1]?.[2];
    return { from: nodes[at]!.id, to: id, ...(output !== undefined && { output }) };
  });
  return { nodes, edges };
}

/** Automations of an account, through its API. */
export class Automations {
  private readonly made: string[] = [];

  constructor(private readonly owner: ApiClient) {}

  /** An enabled automation with this graph. */
  async make(graph: ReturnType<typeof chain>, more: object = {}): Promise<string> {
    const { id } = (await this.owner.send('POST', PATH, { name: 'One', enabled: true, ...more })).body.data;
    this.made.push(id);
    expect(await this.owner.send('PUT', `${PATH}/${id}/graph`, { revision: 0, ...graph })).toMatchObject({
      status: 200,
    });
    return id;
  }

  run(id: string, headers = {}) {
    return this.owner.send('POST', `${PATH}/${id}/run`, {}, headers);
  }

  async runsOf(id: string, query = ''): Promise<any[]> {
    return (await this.owner.get(`${PATH}/${id}/runs${query}`)).body.data;
  }

  /** The runs, once there are as many and all have ended. */
  ended(id: string, count = 1): Promise<any[]> {
    return eventually(async () => {
      const runs = await this.runsOf(id);
      const open = runs.filter(({ status }) => ['pending', 'running', 'waiting'].includes(status));
      return runs.length >= count && open.length === 0 ? runs : undefined;
    }, 'the end of the runs');
  }

  async stepsOf(run_id: string): Promise<any[]> {
    return (await this.owner.get(`${PATH}/runs/${run_id}`)).body.data.steps;
  }

  /** Runs a new automation of these nodes by hand; its run with its steps behind the trigger. */
  async walk(...nodes: Link[]): Promise<{ run: any; steps: any[] }> {
    const id = await this.make(chain(['trigger:manual'], ...nodes));
    expect(await this.run(id)).toMatchObject({ status: 202 });
    const [run] = await this.ended(id);
    return { run, steps: (await this.stepsOf(run.id)).slice(1) };
  }

  /** Deletes the automations that were made. */
  async drop(): Promise<void> {
    for (const id of this.made.splice(0)) await this.owner.send('DELETE', `${PATH}/${id}`, undefined);
  }
}
