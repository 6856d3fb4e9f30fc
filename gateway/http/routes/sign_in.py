"""Signing in and out, and who is signed in."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gateway.errors import GatewayError, NotFound
from gateway.http.context import Context, State
from gateway.http.json_response import JsonResponse
from gateway.http.oidc import ProviderUnavailable, SignInRefused
from gateway.http.sign_in import SignIns

router = APIRouter()


@router.get("/session")
async def show_session(context: Context) -> Response:
    """Return who sends this request, and how they signed in."""
    return JsonResponse(_who(context))


@router.get("/users/me")
async def show_user(context: Context) -> Response:
    """Return who sends this request, with what they may use and have used today."""
    quota = await context.chat.conversations.show_quota(context.user_id)
    return JsonResponse({**_who(context), "quota": quota})


@router.get("/auth/sign-in")
async def begin_sign_in(state: State, request: Request) -> Response:
    """Send the browser to the provider."""
    sign_ins = _sign_ins_of(state.sign_ins)
    try:
        url, value = await sign_ins.begin(request)
    except (SignInRefused, ProviderUnavailable) as exc:
        return _told_by_page(sign_ins, request, exc)
    response = RedirectResponse(url, HTTPStatus.SEE_OTHER)
    sign_ins.cookies.set_state(response, value)
    return response


@router.get("/auth/callback")
async def finish_sign_in(state: State, request: Request) -> Response:
    """Start the session of a browser that comes back from the provider."""
    sign_ins = _sign_ins_of(state.sign_ins)
    try:
        secret, max_age_s = await sign_ins.finish(request)
    except (SignInRefused, ProviderUnavailable) as exc:
        return _told_by_page(sign_ins, request, exc)
    response = RedirectResponse(sign_ins.home, HTTPStatus.SEE_OTHER)
    sign_ins.cookies.set_session(response, secret, max_age_s)
    sign_ins.cookies.drop(response, sign_ins.cookies.state)
    return response


@router.post("/auth/sign-out", status_code=HTTPStatus.NO_CONTENT)
async def sign_out(context: Context) -> Response:
    """End the session of this browser."""
    response = Response(status_code=HTTPStatus.NO_CONTENT)
    sign_ins = context.state.sign_ins
    secret = None if sign_ins is None else sign_ins.secret_of(context.request.scope)
    if sign_ins is not None and secret is not None:
        await sign_ins.end(secret, context.user_id)
        sign_ins.cookies.drop(response, sign_ins.cookies.session)
    return response


def _told_by_page(sign_ins: SignIns, request: Request, error: GatewayError) -> Response:
    """Send a person back to the page, which tells the error; raise it for a program."""
    if request.headers.get("sec-fetch-mode") != "navigate":
        raise error
    return RedirectResponse(f"{sign_ins.home}?sign_in={error.code}", HTTPStatus.SEE_OTHER)


def _who(context: Context) -> dict[str, str]:
    state = context.request.state
    return {"user": context.user_id, "role": state.role, "signed_in_by": state.signed_in_by}


def _sign_ins_of(sign_ins: SignIns | None) -> SignIns:
    if sign_ins is None:
        raise NotFound("This server signs nobody in; use a token, if it needs one.")
    return sign_ins
