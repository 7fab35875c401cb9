import { CONTEXTS } from '../../access/authentication/contexts';
import { mintWsToken } from '../../access/authentication/tokens/session-tokens';
import { endSession } from '../../services/identity/session-revocation';
import { account_id, ada, bob } from '../support/credentials';
import { refused } from '../support/realtime';
import { as, bound, byHeader, node, open, real, services, verdict, world } from './house';
import type { Proofs, Row } from './spec';

/** Where the socket is, and who is let in. */
export const UPGRADE: Record<string, Proofs> = {
  address: {
    async address({ path, rule }) {
      expect(path).toBe('GET /v1/ws');
      expect(rule).toContain('snake_case');
      expect(new URL(node.url).pathname).toBe('/v1/ws');
      const client = await open();
      client.send({ type: 'ping' });
      await client.next(({ type }) => type === 'pong', 'the pong');
      for (const message of client.messages)
        for (const member of Object.keys(message)) expect(member).toMatch(/^[a-z_]+$/);
    },
  },

  upgrade: {
    async 'no token (no header and no `?token=`)'() {
      const client = await open(null, real);
      expect(await verdict(client, 'login-assignments:' + account_id)).toBe('subscribed');
      // Ruling c27: the anonymous are refused on overlay and widget channels.
      for (const channel of ['overlay:k', 'widget:w']) expect(await verdict(client, channel)).toBe('UNAUTHORIZED');
    },
    async 'a credential presented but failing validation (expired or bad-signature JWT, refresh or legacy JWT, or a JWT whose session was revoked)'(
      row,
    ) {
      const stale = await world.sessions.open(ada, account_id, Date.now() - 3_600_000);
      const revoked = await world.sessions.open(ada, account_id);
      await endSession(
        world.sessions.act,
        { ...services(), access: { announce: async () => undefined } },
        revoked.session_id,
        'logout',
      );
      const living = await world.sessions.open(ada, account_id);
      const [header, payload, signature] = living.access.token.split('.') as [string, string, string];
      const ended = await bound('shared_overlay', 'overlay:k', Date.now() - 1_000);
      const { token: forgotten } = await bound('widget', 'widget:w');
      await world.t.db.query('delete from bound_tokens where expires_at is null');
      const failing: [string, string][] = [
        [stale.access.token, 'TOKEN_EXPIRED'],
        [`${header}.${payload}.${signature.slice(0, -4)}AAAA`, 'UNAUTHORIZED'],
        [living.refresh.token, 'UNAUTHORIZED'],
        [living.access.token.replace(/^lm_/, ''), 'UNAUTHORIZED'],
        [revoked.access.token, 'UNAUTHORIZED'],
        // Ruling c36: any credential that fails, not JWTs alone.
        [ended.token, 'TOKEN_EXPIRED'],
        [forgotten, 'UNAUTHORIZED'],
        [`lm_svc_${'0'.repeat(64)}`, 'UNAUTHORIZED'],
        ['nonsense', 'UNAUTHORIZED'],
      ];
      const { sessions } = real.realtime.stats();
      for (const [token, error] of failing) {
        for (const answer of [await refused(real.url, byHeader(token)), await refused(`${real.url}?token=${token}`)]) {
          expect(answer.status).toBe(row.status);
          expect([token.slice(0, 8), answer.body]).toEqual([token.slice(0, 8), { error, message: expect.any(String) }]);
        }
      }
      expect(real.realtime.stats().sessions).toBe(sessions);
      expect((row.codes as Row[]).map(({ code }) => code)).toEqual(['TOKEN_EXPIRED', 'UNAUTHORIZED']);
    },
    async 'accepted tokens and transports'() {
      const { access } = await world.sessions.open(ada, account_id);
      const each = [...(await world.oneOfEach()), { kind: 'jwt' as const, token: access.token }];
      expect(new Set(each.map(({ kind }) => kind)).size).toBe(Object.keys(CONTEXTS).length - 1);
      for (const { kind, token } of each) {
        (await open(null, real, byHeader(token).headers)).end();
        // Keys count in the header alone; presented elsewhere they are a credential that fails.
        if (!kind.endsWith('_key')) (await open(token, real)).end();
        else expect((await refused(`${real.url}?token=${token}`)).body.error).toBe('UNAUTHORIZED');
      }
      // A header with a recognised prefix is final.
      const overlay = await bound('overlay', 'overlay:final');
      const wrong = { headers: { authorization: `Bearer lm_svc_${'0'.repeat(64)}` } };
      expect((await refused(`${real.url}?token=${overlay.token}`, wrong)).status).toBe(401);
    },
    async 'dashboard and popout pages'() {
      const { session_id } = await world.sessions.open(bob, account_id);
      const popout = (await world.oneOfEach()).find(({ kind }) => kind === 'popout')!;
      const from = [
        { kind: 'jwt', credential_id: session_id },
        { kind: 'popout', credential_id: popout.id },
      ] as const;
      for (const parent of from) {
        const { token } = await mintWsToken(services(), { ...parent, account_id, user_id: bob }, Date.now());
        const client = await open(token, real);
        const expected = parent.kind === 'jwt' ? 'subscribed' : 'UNAUTHORIZED';
        // Bob's role reads events, what the popout token was given does not; it reads the chat as far as Bob may.
        expect(await verdict(client, `events:${account_id}`)).toBe(expected);
      }
    },
    async 'JWT `exp` during the connection'() {
      const client = await as({ expires_at: Date.now() + 2_000 });
      expect(await client.closed()).toBe(4401);
      expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'TOKEN_EXPIRED' });
    },
  },
};
