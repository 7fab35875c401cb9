import { join } from 'node:path';
import { type Engine, engineFolder, freePort, program, startEngine } from './process';

/**
 * A schema registry in memory, of franz-go's making: ids and subjects as Confluent's, without its compatibility rules.
 * It forgets all when it ends.
 */
export async function startSchemaRegistry(): Promise<Engine> {
  const port = await freePort();
  return startEngine({
    url: `http://127.0.0.1:${port}`,
    port,
    command: program('schema-registry', 'schema-registry'),
    args: [`127.0.0.1:${port}`],
    log: join(engineFolder('registry'), 'output.log'),
  });
}
