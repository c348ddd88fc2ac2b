"""Addresses to pages, without any network."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote, unquote

from foul.erasure.dashboard import pages
from foul.erasure.dashboard.federation import Federation
from foul.erasure.receipts.chain import FOLDER as RECEIPTS
from foul.erasure.requests import file_request, find_request, parse_number
from foul.erasure.store import Store
from foul.errors import FoulError, UserError

HTML = "text/html; charset=utf-8"
JSON = "application/json; charset=utf-8"


class NotFoundError(Exception):
    """There is no such page; the text says what is missing."""


@dataclass(frozen=True)
class Response:
    """What is sent back."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    kind: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)


def html(text: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(text.encode(), status)


def message(status: HTTPStatus, text: str) -> Response:
    """A page that says why there is no other."""
    return html(pages.message_page(status.phrase, text), status)


def redirect(place: str) -> Response:
    return Response(b"", HTTPStatus.SEE_OTHER, headers={"Location": quote(place, safe="/%")})


class Site:
    """The pages of some federations."""

    def __init__(self, federations: Sequence[Federation], form_token: str) -> None:
        self._federations = {each.name: each for each in federations}
        self._form_token = form_token

    def get(self, path: str) -> Response:
        """The page at a path."""
        return _explained(lambda: self._get(_parts(path)))

    def post(self, path: str, form: Mapping[str, str]) -> Response:
        """File a request; there is nothing else to send here."""
        return _explained(lambda: self._post(_parts(path), form))

    def _get(self, parts: Sequence[str]) -> Response:
        match parts:
            case []:
                return self._start()
            case [name]:
                return html(pages.overview_page(self._named(name)))
            case [name, "requests"]:
                return html(pages.requests_page(self._named(name), self._form_token))
            case [name, "requests", number]:
                return self._request(self._named(name), number)
            case [name, "receipts"]:
                return html(pages.receipts_page(self._named(name)))
            case [name, "receipts", file]:
                return self._receipt(self._named(name), file)
            case [name, "curves"]:
                return html(pages.curves_page(self._named(name)))
            case [name, "lineage"]:
                return html(pages.lineage_page(self._named(name)))
        raise NotFoundError("There is no such page.")

    def _post(self, parts: Sequence[str], form: Mapping[str, str]) -> Response:
        match parts:
            case [name, "requests"]:
                return self._file(self._named(name), form)
        raise NotFoundError("Nothing can be sent to this address.")

    def _named(self, name: str) -> Federation:
        if name not in self._federations:
            known = ", ".join(self._federations)
            raise NotFoundError(f"There is no federation '{name}' here. There is: {known}.")
        return self._federations[name]

    def _start(self) -> Response:
        if len(self._federations) == 1:
            return redirect(f"/{next(iter(self._federations))}")
        return html(pages.start_page(list(self._federations.values())))

    def _request(self, own: Federation, text: str) -> Response:
        state = own.store().state()
        try:
            request = find_request(state, parse_number(text))
        except UserError as error:
            raise NotFoundError(str(error)) from error
        return html(pages.request_page(own, request, state))

    def _receipt(self, own: Federation, name: str) -> Response:
        """A receipt's own file, byte for byte; only names that the chain has lead anywhere."""
        for link in own.receipts().links:
            for file, kind in ((link.file, JSON), (link.page, HTML)):
                if file.name == name and file.is_file():
                    return Response(file.read_bytes(), kind=kind)
        raise NotFoundError(f"There is no receipt '{name}' in {own.run / 'erasure' / RECEIPTS}.")

    def _file(self, own: Federation, form: Mapping[str, str]) -> Response:
        try:
            request = file_request(
                Store.open(own.run),
                form.get("whom", ""),
                form.get("reason", "").strip(),
                pages.day(form.get("due", "")),
                "departed" in form,
            )
        except (UserError, ValueError) as error:
            text = str(error) if isinstance(error, UserError) else "The due date is not a date."
            page = pages.requests_page(own, self._form_token, text, form)
            return html(page, HTTPStatus.UNPROCESSABLE_ENTITY)
        return redirect(f"/{own.name}/requests/{request.id}")


def _parts(path: str) -> list[str]:
    return [unquote(part) for part in path.split("/") if part]


def _explained(answer: Callable[[], Response]) -> Response:
    """The answer, or a page that says what is wrong."""
    try:
        return answer()
    except NotFoundError as error:
        return message(HTTPStatus.NOT_FOUND, str(error))
    except FoulError as error:
        return message(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
