import { actFor } from '../../app/write-path/act';
import type { Act } from '../../app/write-path/act';
import type { SessionTokens } from '../../access/authentication/tokens/session-tokens';
import { openSession } from '../../services/identity/sessions';
import type { Tokens } from '../../access/authentication/tokens/jwt';
import { asOperator } from '../../cli/admin/shared/operator';
import type { EventStore } from '../../engines/event-store/port';
import type { Database } from '../../engines/postgres/port';
import { SettingsSchema } from '../../kernel/settings/settings';
import { sessions } from '../../projections/identity/sessions';

/** Sessions over a database and an event store, projected as they are appended. */
export interface SessionHouse {
  act: Act;
  open(user_id: string, account_id: string | null, now?: number): Promise<SessionTokens>;
}

export function sessionHouse(deps: { db: Database; events: EventStore; tokens: Tokens }): SessionHouse {
  const { db, events, tokens } = deps;
  const settings = SettingsSchema.parse({});
  const operator = asOperator('test');
  const act = actFor(operator, {
    events,
    awaitShown: async () => undefined,
    async commit(_request, writes) {
      const result = await events.append(writes, {});
      for (const { stream, events: written } of writes) {
        const first = result.revisions[stream]! - written.length + 1;
        const page = await events.read(stream, first, { limit: written.length });
        await db.transaction((tx) => sessions.apply(page, tx, { rebuilding: false }));
      }
      return result;
    },
  });
  return {
    act,
    open: (user_id, account_id, now = Date.now()) =>
      openSession(
        { act, context: { ...operator.context, now } },
        { db, tokens, settings },
        { user_id, account_id, provider: null },
      ),
  };
}
