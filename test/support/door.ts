/** What an API has answered over HTTP. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** Each test expects a shape of its own. */
  json: any;
}

/** Both protocols of an API at one address. `as` is what is sent as a bearer token, the empty text for none. */
export interface Door {
  url: string;
  rest(
    method: string,
    path: string,
    options?: { as?: string; body?: unknown; headers?: Record<string, string> },
  ): Promise<Answer>;
  gql(query: string, options?: { as?: string; variables?: unknown; headers?: Record<string, string> }): Promise<Answer>;
}

const JSON_BODY = { 'content-type': 'application/json' };

/** `owner` is who asks where a call says nothing; `common` goes with each. */
export function doorAt(url: string, owner: string, common: Record<string, string> = {}): Door {
  async function send(
    method: string,
    path: string,
    headers: Record<string, string>,
    body: string | undefined,
  ): Promise<Answer> {
    const response = await fetch(url + path, { method, headers: { ...common, ...headers }, body, redirect: 'manual' });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== '';
    return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
  }
  const credential = (as = owner): Record<string, string> => (as === '' ? {} : { authorization: `Bearer ${as}` });
  return {
    url,
    rest(method, path, { as, body, headers } = {}) {
      const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
      return send(method, path, { ...(text === undefined ? {} : JSON_BODY), ...credential(as), ...headers }, text);
    },
    gql: (query, { as, variables, headers } = {}) =>
      send('POST', '/v1/gql', { ...JSON_BODY, ...credential(as), ...headers }, JSON.stringify({ query, variables })),
  };
}
