// Sends one request to the gateway with the token, and parses the error shape. Asks for a missing token.

import { t } from "/static/i18n.js";
import { keep, recall } from "/static/storage.js";

const TOKEN_KEY = "token";

/** An answer that is no success, or none at all (`code` is then "network"). */
export class ApiError extends Error {
  constructor({ status = 0, code, message, retryable = false, requestId = null, retryAfter_s = null }) {
    super(message);
    Object.assign(this, { status, code, retryable, requestId, retryAfter_s });
  }
}

/** The API's error object, from a body or from an `error` event. */
export function errorFromShape(shape, status = 0) {
  const error = shape?.error ?? {};
  return new ApiError({
    status,
    code: error.code ?? "unknown",
    message: error.message || t("error_status", { status }),
    retryable: error.retryable === true,
    requestId: error.request_id ?? null,
    retryAfter_s: error.details?.retry_after_s ?? null,
  });
}

export const networkError = () => new ApiError({ code: "network", message: t("error_network"), retryable: true });

let askForToken = async () => {};
let tokenAsked = null;

/** `ask(isWrong)` shows the sign-in panel and resolves to a token. */
export function onTokenNeeded(ask) {
  askForToken = ask;
}

async function signIn() {
  const wrong = Boolean(recall(TOKEN_KEY));
  // All requests that were refused at the same time wait for the same panel.
  tokenAsked ??= askForToken(wrong).finally(() => { tokenAsked = null; });
  keep(TOKEN_KEY, await tokenAsked);
}

function headersFor(options) {
  const headers = { Accept: options.accept ?? "application/json", ...options.headers };
  if (options.method === "POST" || options.method === "PATCH") headers["Content-Type"] = "application/json";
  const token = recall(TOKEN_KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  return headers;
}

async function attempt(path, options) {
  const { method = "GET", body, signal } = options;
  try {
    return await fetch(path, {
      method,
      headers: headersFor(options),
      body: method === "POST" || method === "PATCH" ? JSON.stringify(body ?? {}) : undefined,
      signal,
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
    });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw networkError();
  }
}

async function errorFrom(response) {
  const shape = await response.json().catch(() => null);
  const error = errorFromShape(shape, response.status);
  if (!shape?.error) error.retryable = response.status >= 500 || response.status === 429;
  const retryAfter_s = Number(response.headers.get("Retry-After"));
  if (retryAfter_s > 0) error.retryAfter_s = retryAfter_s;
  return error;
}

/** Send, signing in as often as the gateway asks for it. Gives a successful response, or throws `ApiError`. */
export async function request(path, options = {}) {
  for (;;) {
    const tokenSent = recall(TOKEN_KEY);
    const response = await attempt(path, options);
    if (response.ok || (options.anyStatus && response.status !== 401)) return response;
    if (response.status !== 401) throw await errorFrom(response);
    // Somebody else may have signed in while this request was on its way.
    if (recall(TOKEN_KEY) === tokenSent) await signIn();
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
