import { v5 } from 'uuid';
import { MAX_DEPTH } from '../../../domain/automation/automation-runs';
import { onAutomation } from '../../../domain/automation/nodes/triggers';
import type { TemplateEncoding } from '../../../domain/automation/templates/expand';
import { TOPICS } from '../../../domain/common/records';
import { mayEmitBytes, noteEmittedBytes } from '../../events/emitted-bytes';
import { startable } from '../runs/startable';
import { type Executor, expanded, failed } from './executor';

/** Namespaces of ids that derive from steps; any fixed UUIDs do. */
const EVENTS = '3a5c1c9e-7f27-4d8b-8a3f-0f5e9a4f1d52';
const RUNS = 'c2f0a8f4-54a7-4b5e-9f0f-6c1f2c7d9b13';

/** Values of a JSON document that is written afterwards. */
const asGiven: TemplateEncoding = (value) => value;

/** Emits an event once for a step, about the person of the cause; its bytes are those of the account's plan. */
export const emitEvent: Executor = {
  input: ({ config, expand }) => ({ event_type: config.event_type, raw: expanded(config.raw, expand, asGiven) }),
  async run({ account_id, run_id, step_id, depth, cause }, { event_type, raw: members }, { records, db }) {
    const now_ms = Date.now();
    const now = new Date(now_ms).toISOString();
    const type = event_type as string;
    const raw = JSON.stringify(members);
    const bytes = Buffer.byteLength(raw);
    if (!(await mayEmitBytes(db, account_id, bytes, now_ms))) return failed('too_many_bytes');
    await records.append(TOPICS.platform_events, [
      {
        ...{ id: v5(step_id, EVENTS), account_id, type, platform: type.slice(0, type.indexOf(':')).slice(0, 50) },
        ...{ external_id: `lumio:${step_id}`, occurred_at: now, received_at: now, subject: cause.subject },
        ...{ raw, trace: null, cause: run_id, depth: depth + 1 },
      },
    ]);
    return {
      status: 'succeeded',
      async output(tx) {
        await noteEmittedBytes(tx, account_id, bytes, now_ms);
        return 'done';
      },
    };
  },
};

/** Starts another automation with the cause of this run. */
export const runAutomation: Executor = {
  input: ({ config }) => ({ ...config }),
  async run(work, { automation_id: target }, { db }) {
    const { account_id, step_id, cause, event_id, expires_ms, window_ms } = work;
    const depth = work.depth + 1;
    if (depth >= MAX_DEPTH) return failed('too_deep');
    const automation_id = target as string;
    const trigger = onAutomation.type;
    const found = await startable(db, { account_id, automation_id, node_ids: [], trigger });
    if (found === undefined) return failed('not_startable');
    return {
      ...{ status: 'succeeded', output: 'done' },
      starts: {
        ...{ account_id, automation_id, run_id: v5(step_id, RUNS), start_key: `step:${step_id}`, trigger, depth },
        // Its calls expire with those of this run; a wait of its own gives it the whole window again.
        ...{ node_ids: found.node_ids, event_id, at_ms: Math.round(expires_ms) - window_ms, window_ms },
        ...{ permissions: work.permissions === null ? null : [...work.permissions], persons: [...work.persons] },
        ...{ subject: cause.subject, cause: JSON.stringify(cause) },
      },
    };
  },
};
