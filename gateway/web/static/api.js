// Sends one request to the gateway with the token, and parses the error shape. Asks for a missing token.

import { errorWords } from "/static/error-words.js";
import { t } from "/static/i18n.js";
import { currentToken, findToken, signedIn, signedInAs } from "/static/session.js";

/** An answer that is no success, or none at all (`code` is then "network"). `isFinal`: the same request would fail again. */
export class ApiError extends Error {
  constructor({ status = 0, code, message, retryable = false, requestId = null, retryAfter_s = null, files = [], signInPath = null }) {
    super(message);
    Object.assign(this, { status, code, retryable, requestId, retryAfter_s, files, signInPath, isFinal: false });
  }
}

/** The API's error object, from a body or from an `error` event. */
export function errorFromShape(shape, status = 0) {
  const error = shape?.error ?? {};
  return new ApiError({
    status,
    code: error.code ?? "unknown",
    message: errorWords(error) || t("error_status", { status }),
    retryable: error.retryable === true,
    requestId: error.request_id ?? null,
    retryAfter_s: error.details?.retry_after_s ?? null,
    files: error.details?.files ?? [],
    signInPath: error.details?.sign_in ?? null,
  });
}

export const networkError = () => new ApiError({ code: "network", message: t("error_network"), retryable: true });

let askForToken = async () => {};
let tokenAsked = null;
let unreachable = () => {};

/** `ask(isWrong, elsewhere, path)` shows the sign-in panel and resolves to a token; see `findToken`. `path`: of the provider's sign-in. */
export function onTokenNeeded(ask) {
  askForToken = ask;
}

/** `hear()` is called for each request that got no answer at all. */
export function onUnreachable(hear) {
  unreachable = hear;
}

const WITH_BODY = new Set(["POST", "PATCH", "PUT"]);

function headersFor(options) {
  const headers = { Accept: options.accept ?? "application/json", ...options.headers };
  // A form names its own type and boundary.
  if (WITH_BODY.has(options.method) && !(options.body instanceof FormData)) headers["Content-Type"] = "application/json";
  const token = currentToken();
  if (token) headers.Authorization = `Bearer ${token}`;
  return headers;
}

function encoded(method, body) {
  if (body instanceof FormData) return body;
  return WITH_BODY.has(method) ? JSON.stringify(body ?? {}) : undefined;
}

async function attempt(path, options) {
  const { method = "GET", body, signal } = options;
  try {
    // Relative to the page, which may be behind a proxy's prefix.
    return await fetch(`.${path}`, {
      method,
      headers: headersFor(options),
      body: encoded(method, body),
      signal,
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
    });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    unreachable();
    throw networkError();
  }
}

async function takeToken(path) {
  signedIn(await findToken(currentToken(), (isWrong, elsewhere) => askForToken(isWrong, elsewhere, path)));
  // A request of the user before must not be sent in the name of the next one.
  const response = await attempt("/session", {});
  if (response.ok) await signedInAs((await response.json()).user);
}

/** All requests that were refused at the same time wait for the same panel. */
function signIn(path) {
  tokenAsked ??= takeToken(path).finally(() => { tokenAsked = null; });
  return tokenAsked;
}

async function errorFrom(response) {
  const shape = await response.json().catch(() => null);
  const error = errorFromShape(shape, response.status);
  if (!shape?.error) error.retryable = response.status >= 500 || response.status === 429;
  error.isFinal = response.headers.get("X-Should-Retry") === "false";
  const retryAfter_s = Number(response.headers.get("Retry-After"));
  if (retryAfter_s > 0) error.retryAfter_s = retryAfter_s;
  return error;
}

/** Send, signing in as often as the gateway asks for it. Gives a successful response, or throws `ApiError`. */
export async function request(path, options = {}) {
  for (;;) {
    const tokenSent = currentToken();
    const response = await attempt(path, options);
    if (response.ok || (options.anyStatus && response.status !== 401)) return response;
    if (response.status !== 401) throw await errorFrom(response);
    const { signInPath } = await errorFrom(response);
    // Somebody else may have signed in while this request was on its way.
    if (currentToken() === tokenSent) await signIn(signInPath);
  }
}

export async function requestJson(path, options = {}) {
  const response = await request(path, options);
  const text = await response.text().catch(() => { throw networkError(); });
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    throw new ApiError({ status: response.status, code: "unreadable", message: t("error_unreadable"), retryable: true });
  }
}
