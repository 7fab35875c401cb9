import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';

/** Login that a member acts with on an account. Source: spec doc2 §2.9. */
export const LoginAssignment = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    user_id: z.uuid(),
    login_connection_id: z.uuid(),
    provider: z.string().describe("The platform's slug"),
    assigned_at: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'GqlLoginAssignment' });
export type LoginAssignment = z.output<typeof LoginAssignment>;

/** GraphQL has another name for the time than REST. */
export const ASSIGNMENT_FIELDS = { renamed: { createdAt: 'assigned_at' } } as const;

/** A member's logins on an account. */
export const loginAssignmentsOf = (db: Queryable, account_id: string, user_id: string): Promise<LoginAssignment[]> =>
  db.query<LoginAssignment>(
    `select id, account_id, user_id, login_connection_id, provider, assigned_at from account_login_assignments
     where account_id = $1 and user_id = $2 order by provider`,
    [account_id, user_id],
    'login-assignments',
  );
