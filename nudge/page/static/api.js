// The page's requests: the same REST operations as everybody's, with the secret of this tab as a header.

const KEY = 'nudge-secret';
const PATIENCE = 20_000; // milliseconds in which another server may take over
let secret = sessionStorage.getItem(KEY);

/** An answer that is an error, in the words of the server. */
export class Refused extends Error {
  constructor(status, body) {
    super(body.message || body.error || `the server answered ${status}`);
    this.status = status;
    this.data = body.data || {};
  }
}

/** Trade the one-time code in the address for the secret. The address is cleared before anything else is done. */
export async function signIn() {
  const code = /^#code=([0-9a-f]{64})$/.exec(location.hash);
  if (!code) return;
  history.replaceState(null, '', location.pathname);
  const answer = await fetch('/page/sign-in', {
    method: 'POST',
    headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({code: code[1]}),
  });
  const body = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, body);
  secret = body.secret;
  sessionStorage.setItem(KEY, secret);
}

export function forgetSecret() {
  secret = null;
  sessionStorage.removeItem(KEY);
}

export function authorized(headers = {}) {
  return secret === null ? headers : {...headers, Authorization: `Bearer ${secret}`};
}

export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

function withParams(path, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params || {})) {
    if (value === undefined || value === null || value === '') continue;
    query.set(name, typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(value) : String(value));
  }
  const text = query.toString();
  return `/api/v1/${path}${text ? `?${text}` : ''}`;
}

/** Send one request. While no server answers, or one hands over to the next, it is sent again with the same id: a
 * change is made once. */
async function send(method, address, body, signal) {
  const headers = authorized(body === undefined ? {} : {'Content-Type': 'application/json'});
  if (method !== 'GET') headers['Nudge-Request-Id'] = crypto.randomUUID();
  const until = performance.now() + PATIENCE;
  for (let wait = 100; ; wait = Math.min(wait * 2, 1000)) {
    let answer;
    try {
      answer = await fetch(address, {method, headers, signal, body: body && JSON.stringify(body)});
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      if (performance.now() > until) throw new Refused(0, {message: 'No server answers. Start one with: nudge serve'});
      await pause(wait);
      continue;
    }
    if (answer.status === 503 && answer.headers.has('Nudge-Retry') && performance.now() < until) {
      await pause(wait);
      continue;
    }
    const content = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refused(answer.status, content);
    return content;
  }
}

export const get = (path, params, signal) => send('GET', withParams(path, params), undefined, signal);
export const post = (path, body) => send('POST', `/api/v1/${path}`, body || {});
export const put = (path, body) => send('PUT', `/api/v1/${path}`, body);
export const remove = (path, params) => send('DELETE', withParams(path, params));
/** A part of a path: a hint's name may have a slash in it. */
export const part = encodeURIComponent;
