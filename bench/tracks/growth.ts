import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { eventLog } from '../../projections/events/events';
import { appendHistory, ask } from '../history';
import { timed } from '../comparison';
import { rounded, type TrackOptions } from '../harness';
import { percentiles } from '../loops';
import { type BenchPostgres, onPostgres } from '../postgres';
import { check, report } from '../report';
import { HttpLoad, requestBytes } from '../http-load';
import { type Lumio, startLumio } from '../system';
import { open, type Opened } from './project';
import { projected } from './webhook';

const PAGE = 25;
const REBUILDS = 3;
/** From this size on a rebuild takes minutes, and its cost per row varies little: one measurement suffices. */
const LARGE = 10_000_000;
const PAGES = 200;
/** Rows per second below which a projector would be broken. */
const SLOWEST = 500;

/**
 * Grows one account's history by factors of ten: the cost per row of a rebuild (CPU of program and engine), and the
 * time of the first and the deepest page of its events, warm and one after the other.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const sizes = options.smoke ? [1_000, 10_000] : [10_000, 100_000, 1_000_000, 10_000_000];
  const lumio = await startLumio(postgres);
  const { account_id } = lumio.credentials;
  const keys = lumio.env.LUMIO_SECRETS__KEYS!;
  let on: Opened | undefined;
  const rows: Grown[] = [];
  let missing = 0;
  try {
    for (const [n, size] of sizes.entries()) {
      const before = sizes[n - 1] ?? 0;
      await appendHistory(lumio.url, keys, [account_id], size - before, before);
      await projected(lumio, 120_000 + (size / SLOWEST) * 1000);
      on ??= await open(lumio.url, keys, await brokerOf(lumio));
      const engines = on;
      await on.db.query('vacuum analyze platform_event_logs');
      const total = await totalOf(lumio);
      missing += Math.abs(total - expected(size));
      const us: number[] = [];
      for (let round = 0; round < (options.smoke || size >= LARGE ? 1 : REBUILDS); round += 1) {
        const work = await timed(postgres.engineCpu, async () => {
          await rebuild({ ...engines, projections: [eventLog], name: 'event-log' });
          return total;
        });
        us.push((work.client_us + work.engine_us) / work.units);
      }
      missing += Math.abs((await totalOf(lumio)) - total);
      const row = {
        rows: total,
        rebuild_us_a_row: rounded(Math.min(...us)),
        ...named('first_page', await costOf(postgres, lumio, 1)),
        ...named('deepest_page', await costOf(postgres, lumio, Math.ceil(total / PAGE))),
      };
      rows.push(row);
      console.log(`growth: ${JSON.stringify(row)}`);
    }
  } finally {
    await on?.close();
    await lumio.stop();
  }
  console.log('\ngrowth: one account, its rows by the factor of ten');
  console.table(rows);
  const from = rows[Math.max(0, sizes.indexOf(100_000))]!;
  const to = rows.at(-1)!;
  const times = (name: keyof Grown) => to[name] / from[name];
  const checks = [
    check(`rebuild, cost per row at ${to.rows} rows over that at ${from.rows}`, times('rebuild_us_a_row'), 2),
    check('first page, p50, likewise', times('first_page_ms'), 1.5),
    check('deepest page, p50, likewise', times('deepest_page_ms'), 1.5),
    check('rows missing or too many', missing, 0),
  ];
  return report('growth', [], { rows, checks }, options);
}

interface Grown {
  rows: number;
  rebuild_us_a_row: number;
  first_page_ms: number;
  deepest_page_ms: number;
  /** CPU of server and engine: on a shared machine times measure the others more than a page. */
  first_page_us: number;
  deepest_page_us: number;
}

const named = <Page extends string>(page: Page, { ms, us }: { ms: number; us: number }) =>
  ({ [`${page}_ms`]: ms, [`${page}_us`]: us }) as Record<`${Page}_ms` | `${Page}_us`, number>;

/** The id of its log, which the checkpoints name. */
async function brokerOf({ url }: Lumio): Promise<string> {
  const named = `select engine from checkpoints where projection = 'event-log' limit 1`;
  return (await ask<{ engine: string }>(url, named))[0]!.engine;
}

/** Each hundredth delivery of a history repeats the previous one. */
const expected = (size: number) => size - size / 100;

async function page({ credentials }: Lumio, load: HttpLoad, number: number): Promise<{ total: number; count: number }> {
  const headers = { authorization: `Bearer ${credentials.system_key}`, 'x-lumio-account': credentials.account_id };
  const request = requestBytes('GET', `/v1/events?limit=${PAGE}&page=${number}`, headers);
  const { status, body } = await load.request(request);
  if (status !== 200) throw new Error(`page ${number}: ${status} ${body.toString()}`);
  const { data, _meta } = JSON.parse(body.toString()) as { data: unknown[]; _meta: { total: number } };
  return { total: _meta.total, count: data.length };
}

/** Uses a connection of its own, because the server closes one that is idle for minutes. */
async function asking<T>({ base_url }: Lumio, work: (load: HttpLoad) => Promise<T>): Promise<T> {
  const load = await HttpLoad.open(base_url, 1);
  try {
    return await work(load);
  } finally {
    load.close();
  }
}

const totalOf = (lumio: Lumio): Promise<number> => asking(lumio, async (load) => (await page(lumio, load, 1)).total);

/** Median time of one page, milliseconds, when warm, and its CPU, microseconds. */
const costOf = (postgres: BenchPostgres, lumio: Lumio, number: number) =>
  asking(lumio, async (load) => {
    const taken: number[] = [];
    const cpu = () => lumio.cpu() + postgres.engineCpu();
    let before = 0;
    for (let n = 0; n < PAGES * 1.2; n += 1) {
      if (n === PAGES * 0.2) before = cpu();
      const from = performance.now();
      const { count } = await page(lumio, load, number);
      if (n >= PAGES * 0.2) taken.push(performance.now() - from);
      if (count === 0) throw new Error(`page ${number} is empty`);
    }
    return { ms: percentiles(taken).p50_ms, us: rounded((cpu() - before) / taken.length) };
  });
