import { type FakeAnswer, FakeCloud } from './cloud';
import { FakeTokens } from './cloud-tokens';

/** `accounts.spotify.com` and `api.spotify.com`, as far as tokens and the player go. */
export class FakeSpotify extends FakeCloud {
  readonly tokens = new FakeTokens('spotify');
  /** The player of each listener, as the API answers it; without one nothing is played anywhere. */
  readonly players = new Map<string, Record<string, any>>();

  constructor() {
    super();
    this.on('GET /v1/me/player', ({ headers }) => {
      const owner = this.tokens.of(headers.authorization)?.owner;
      if (!owner) return { status: 401, body: { error: { status: 401, message: 'The access token expired' } } };
      const player = this.players.get(owner);
      return player === undefined ? { status: 204 } : { body: player };
    });
    this.on('GET /v1/me', ({ headers }) => {
      const owner = this.tokens.of(headers.authorization)?.owner;
      if (!owner) return { status: 401, body: { error: { status: 401, message: 'The access token expired' } } };
      return { body: { id: owner, display_name: owner, product: 'premium', type: 'user' } };
    });
    this.on('POST /api/token', ({ body }) => this.token(new URLSearchParams(body)));
  }

  private token(form: URLSearchParams): FakeAnswer {
    const code = form.get('code');
    const given = code === null ? this.tokens.refresh(form.get('refresh_token') ?? '') : this.tokens.exchange(code);
    if (given === null) return { status: 400, body: { error: 'invalid_grant' } };
    const { access_token, refresh_token } = given;
    return { body: { access_token, refresh_token, token_type: 'Bearer', expires_in: 3600, scope: '' } };
  }
}
