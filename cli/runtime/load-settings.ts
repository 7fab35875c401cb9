import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { z } from 'zod';
import { METRICS_PORT, type Settings, SettingsSchema } from '../../kernel/settings/settings';
import { environmentName, SETTINGS_PREFIX, SettingsError } from '../../kernel/settings/error';
import { callsPrivate, contradictions, isLoopback } from './settings-rules';

type Tree = { [key: string]: unknown };

export interface LoadOptions {
  env: Readonly<Record<string, string | undefined>>;
  /** Folder of `lumio.config.json`. */
  cwd: string;
  /** Development defaults for values that neither file nor environment sets (webhook secrets). */
  development?: (data_dir: string) => Tree;
}

/**
 * Loads settings from `lumio.config.json` (optional) and the environment, which wins. Design §9.
 * @throws SettingsError naming the key, for a bad value, an unknown key, or contradictory settings
 */
export function loadSettings(options: LoadOptions): Settings {
  const loaded = merge(readFile(resolve(options.cwd, 'lumio.config.json')), readEnvironment(options.env));
  const { host = '127.0.0.1' } = loaded;
  if (loaded.env === undefined && typeof host === 'string' && !isLoopback(host)) {
    throw new SettingsError(
      `LUMIO_ENV: must be set (development or production) when LUMIO_HOST is not a loopback address (${host})`,
    );
  }
  const development = (loaded.env ?? 'development') === 'development';
  const parse = (tree: Tree): Settings => {
    const parsed = SettingsSchema.safeParse(tree);
    if (!parsed.success) throw new SettingsError(explain(parsed.error.issues[0]!, Object.keys(options.env)));
    return parsed.data;
  };
  const own = parse(loaded);
  contradictions(own);
  const data_dir = resolve(options.cwd, own.data_dir);
  // Only now: development defaults are created in the data folder, where a refused start must leave nothing.
  const defaults = development
    ? merge({ ...DEVELOPMENT, outgoing: { allow_loopback: callsPrivate(own) } }, options.development?.(data_dir) ?? {})
    : {};
  return besideOthers(parse(merge(defaults, { ...loaded, data_dir })));
}

/**
 * Chooses a random metrics port when none is set and the service's port is random too, or is the default metrics port.
 */
function besideOthers(settings: Settings): Settings {
  const { port, metrics } = settings;
  if (metrics.port !== undefined || (port !== 0 && port !== METRICS_PORT)) return settings;
  return { ...settings, metrics: { ...metrics, port: 0 } };
}

const DEVELOPMENT: Tree = { graphql: { playground: true }, docs: { swagger_ui: true, openapi_json: true } };

function readFile(path: string): Tree {
  if (!existsSync(path)) return {};
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new SettingsError(`lumio.config.json: not valid JSON (${(error as Error).message})`);
  }
  if (!isTree(value)) throw new SettingsError('lumio.config.json: must be a JSON object');
  return nested(value);
}

/** `"webhooks.kick_secret": …` is `"webhooks": {"kick_secret": …}`. */
function nested(loaded: Tree): Tree {
  return Object.entries(loaded).reduce<Tree>((tree, [key, value]) => {
    const inner = isTree(value) ? nested(value) : value;
    const branch = key.split('.').reduceRight<unknown>((below, part) => ({ [part]: below }), inner);
    return merge(tree, branch as Tree);
  }, {});
}

function readEnvironment(env: LoadOptions['env']): Tree {
  const tree: Tree = {};
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(SETTINGS_PREFIX) || value === undefined) continue;
    const path = name.slice(SETTINGS_PREFIX.length).toLowerCase().split('__');
    let branch = tree;
    for (const part of path.slice(0, -1)) {
      const next = (branch[part] ??= {});
      if (!isTree(next)) throw new SettingsError(`${name}: unknown setting`);
      branch = next;
    }
    branch[path.at(-1)!] = value;
  }
  return tree;
}

/**
 * Message of one line with the key as the person wrote it: the environment variable's whole name, without a list index.
 */
function explain(issue: z.core.$ZodIssue, env_names: readonly string[]): string {
  const unknown = issue.code === 'unrecognized_keys';
  const path = [...issue.path, ...(unknown ? issue.keys.slice(0, 1) : [])].filter((part) => typeof part === 'string');
  const name = environmentName(path);
  const written = env_names.find((one) => one.startsWith(`${name}__`)) ?? name;
  const dotted = written.slice(SETTINGS_PREFIX.length).toLowerCase().replaceAll('__', '.');
  return `${written} (${dotted}): ${unknown ? 'unknown setting' : issue.message}`;
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function merge(under: Tree, over: Tree): Tree {
  const merged: Tree = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key];
    merged[key] = isTree(below) && isTree(value) ? merge(below, value) : value;
  }
  return merged;
}
