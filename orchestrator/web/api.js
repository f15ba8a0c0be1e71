// Requests to the service. A server with tokens answers 401 at first. The page then asks for the
// token, keeps it as long as the tab lives, and sends it with every request.

import { askToken } from './token.js';

const kTokenKey = 'evald.token';
const kTimeoutMs = 60_000;

/** An error answer, with RFC 9457's members if the service gave them. */
class Problem extends Error {
  constructor(status, detail, remedy) {
    super(detail);
    this.status = status;
    this.remedy = remedy ?? '';
  }
}

export function token() {
  return sessionStorage.getItem(kTokenKey) ?? '';
}

/** fetch() with the token. Asks for a token as long as the service refuses the one used. */
export async function send(path, options = {}) {
  for (let refused = false; ; refused = true) {
    const used = token();
    const headers = { ...options.headers };
    if (used) headers.Authorization = `Bearer ${used}`;
    const response = await fetch(path, { ...options, headers, credentials: 'omit' });
    if (response.status !== 401) return response;
    if (token() !== used) continue;  // another request has got a new token meanwhile
    const given = await askToken(refused || used !== '');
    if (given === null) throw new Problem(401, 'This server wants a token.', 'Reload the page to give one.');
    sessionStorage.setItem(kTokenKey, given);
  }
}

async function problemOf(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // The body is no problem document.
  }
  return new Problem(response.status, body.detail || body.title || `the server answered ${response.status}`, body.remedy);
}

async function json(path, options) {
  let response;
  try {
    response = await send(path, { signal: AbortSignal.timeout(kTimeoutMs), ...options });
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(0, 'The server cannot be reached.', 'Is `evald serve` running? The page tries again by itself.');
  }
  if (!response.ok) throw await problemOf(response);
  return response.json();
}

export function get(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return json(text ? `${path}?${text}` : path, {});
}

/** Like get(), but null if there is nothing (404) or nothing yet (409). */
export async function find(path) {
  try {
    return await get(path);
  } catch (error) {
    if (error.status === 404 || error.status === 409) return null;
    throw error;
  }
}

export function post(path) {
  return json(path, { method: 'POST' });
}

export function patch(path, body) {
  return json(path, { method: 'PATCH', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });
}

export function runPath(id, ...rest) {
  return ['/v1/runs', encodeURIComponent(id), ...rest.map(encodeURIComponent)].join('/');
}
