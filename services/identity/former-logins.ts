import type { Eraser } from '../../kernel/eraser';

/** Keeps whose account at the provider a login is that ends; parameters: id of the login, provider. */
export const KEEP_FORMER_LOGIN = `
  insert into former_logins (user_id, provider, provider_account_id)
    select user_id, $2, provider_account_id from login_grants where login_connection_id = $1
  on conflict do nothing`;

/** Former logins of a user, and of everybody who logged in by an account at a platform. */
export const formerLoginsEraser: Eraser = {
  tables: ['former_logins'],
  async names({ kind, id }, { db }) {
    const rows = await db.query(`select 1 as one from former_logins where ${whose(kind)} limit 1`, valuesOf(kind, id));
    return rows.length > 0;
  },
  async erase({ kind, id }, { db }) {
    const gone = await db.query(
      `delete from former_logins where ${whose(kind)} returning 1 as one`,
      valuesOf(kind, id),
    );
    return gone.length > 0 ? `${gone.length} former logins erased` : null;
  },
};

const whose = (kind: string): string =>
  kind === 'user' ? 'user_id = $1' : 'provider_account_id = $1 and provider = $2';
const valuesOf = (kind: string, id: string): string[] => (kind === 'user' ? [id] : [id, kind]);
