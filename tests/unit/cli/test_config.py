"""From `papaver.toml` or MODULE:NAME to a Company, whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from papaver.adapters.fastapi import Poppy
from papaver.cli.config import companies_of, find, the_company
from papaver.company.app import Company
from papaver.protocol.dialect import Version
from papaver.values.errors import PapaverError
from tests.house.second_module import module_named

MINIMAL = (
    'domain = "shop.example"\nname = "Shop"\nbase_url = "https://shop.example/poppy"\nhandler = "{module}:answer"\n'
)
HANDLER = """
async def answer(turn): return 'x'
def slow(turn): return 'x'
class Answers: ...
not_one = 3
"""


@pytest.fixture(autouse=True)
def path_as_before() -> Iterator[None]:
    """A configuration may add its folder to the path of modules; the next test must not see it."""
    before = list(sys.path)
    yield
    sys.path[:] = before


def _written(folder: Path, more: str = "", text: str = MINIMAL) -> Path:
    module = module_named(folder, HANDLER)
    path = folder / "papaver.toml"
    path.write_text(text.replace("{module}", module) + more)
    return path


def _fails(config: Path | None, target: str | None = None) -> PapaverError:
    with pytest.raises(PapaverError) as caught:
        find(config, target)
    return caught.value


def test_a_file_becomes_a_company(tmp_path: Path) -> None:
    """With what it says, and nothing is made on the disk yet."""
    more = """
website = true
accept = "allowed"
logo_uri = "https://shop.example/logo.png"

[[apis]]
type = "openapi"
url = "https://shop.example/openapi.json"
description = "Orders"

[[apis]]
type = "mcp"
url = "https://shop.example/mcp"
description = "Tools"

[limits]
requests_per_user = 7

[texts]
nobody = "Nobody."

[retirements."0.4"]
deprecated = 2027-01-01T00:00:00Z
sunset = 2027-02-01T00:00:00

[server]
port = 9000
tls_cert = "shop.pem"
tls_key = "shop.key"
"""
    found = find(_written(tmp_path, more), None)
    company = the_company(found)
    document = company.offer.document(company.offer.versions[0])
    assert (company.id, company.offer.conversations) == ("https://shop.example", True)
    assert [(api.type, api.url) for api in document.apis] == [
        ("openapi", "https://shop.example/openapi.json"),
        ("mcp", "https://shop.example/mcp"),
    ]
    assert document.web is not None
    assert company.limits.requests_per_user == 7
    retirement = company.offer.retiring()[Version(0, 4)]
    assert (retirement.deprecated, retirement.sunset) == (1798761600.0, 1801440000.0)
    assert (found.server.port, found.server.tls_cert, found.folder) == (9000, "shop.pem", tmp_path)
    assert not (tmp_path / "poppy.db").exists()


def test_without_a_handler_there_are_no_conversations(tmp_path: Path) -> None:
    """A Company may be its website alone."""
    text = MINIMAL.replace('handler = "{module}:answer"\n', "website = true\n")
    assert not the_company(find(_written(tmp_path, text=text), None)).offer.conversations


def test_the_file_here_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `--config` and MODULE:NAME."""
    _written(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert the_company(find(None, None)).offer.domain == "shop.example"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ('domian = "x"\nnmae = "y"\n', "unknown: domian (is it domain?), nmae (is it name?)"),
        ("[server]\nprot = 1\n", "unknown: server.prot (is it server.port?)"),
        ("[limits]\nbody_byte = 1\n", "unknown in [limits]: body_byte (is it body_bytes?)"),
        ("[texts]\nsorry = '1'\n", "unknown in [texts]: sorry; known are "),
        ("[limits]\nbody_bytes = 'many'\n", "limits[...]: expected `int`, got `str`"),
        ("accept = 'some'\n", "accept: Invalid enum value 'some', expected 'all' or 'allowed'"),
        ("server = 3\n", "server: expected `object`, got `int`"),
        (
            "[[apis]]\ntype = 'soap'\nurl = ''\ndescription = ''\n",
            "apis[0].type: Invalid enum value 'soap', expected 'openapi' or 'mcp'",
        ),
        ("not toml", "it is not TOML"),
        ("store = ''\n", 'store is "", expected the path of a file'),
        ("store = '.'\n", 'store is ".", expected the path of a file'),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, more: str, named: str) -> None:
    """The file, and every unknown key at once."""
    error = _fails(_written(tmp_path, more))
    assert error.rule == "config.file"
    assert named in error.description
    assert str(tmp_path) in error.description


def test_a_value_that_a_company_refuses_shows_both_values(tmp_path: Path) -> None:
    """What it is and what it has to be, under the rule of that check."""
    path = _written(tmp_path)
    path.write_text(path.read_text().replace('"shop.example"', '"https://Shop.example"', 1))
    error = _fails(path)
    assert error.rule == "offer.domain-is-a-name"
    assert "https://Shop.example" in error.description


def test_a_limit_out_of_its_range_is_refused(tmp_path: Path) -> None:
    """Under the limits' own rule."""
    assert _fails(_written(tmp_path, "[limits]\niat_window = 900\n")).rule == "configuration.limits"


def test_a_file_that_is_not_there_says_how_to_begin(tmp_path: Path) -> None:
    """`papaver company init`."""
    error = _fails(tmp_path / "papaver.toml")
    assert (error.rule, getattr(error, "next", "")) == ("config.file", "papaver company init")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """Told, not raised from the depths."""
    assert _fails(tmp_path).rule == "config.file"


@pytest.mark.parametrize(
    ("handler", "what"),
    [
        ("nonsense", "is not MODULE:NAME"),
        ("no_such_module_at_all:answer", "there is no module no_such_module_at_all"),
        ("{module}:gone", "has no gone"),
        ("{module}:not_one", "the handler is 3, expected a function such as `async def answer(turn)`"),
        ("{module}:slow", "the handler is slow, which is not async"),
        ("{module}:Answers", "the handler is the class Answers"),
    ],
)
def test_a_handler_that_is_not_there_is_told(tmp_path: Path, handler: str, what: str) -> None:
    """By its name."""
    error = _fails(_written(tmp_path, text=MINIMAL.replace("{module}:answer", handler)))
    assert what in error.description


APP = """
from fastapi import FastAPI
from papaver.adapters.fastapi import Poppy
from papaver.company import Company
from papaver.stores.memory import MemoryStore

def make(domain):
    company = Company(domain=domain, name="Shop", base_url=f"https://{domain}/poppy-{domain}", store=MemoryStore())
    company.conversation(answer)
    return company

async def answer(turn): return "x"

company = make("shop.example")
app = FastAPI()
poppy = Poppy(app, company)
two = FastAPI()
Poppy(two, make("a.example"))
Poppy(two, make("b.example"))

def build():
    return app

async def plain(scope, receive, send): ...
nothing = 3
"""


@pytest.mark.parametrize(
    ("name", "domains", "has_app"),
    [
        ("company", ["shop.example"], False),
        ("poppy", ["shop.example"], False),
        ("app", ["shop.example"], True),
        ("build", ["shop.example"], True),
        ("two", ["b.example", "a.example"], True),
        ("plain", [], True),
    ],
)
def test_module_and_name_lead_to_a_company_or_an_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, domains: list[str], has_app: bool
) -> None:
    """A Company, its Poppy, an app that has some, or a function that makes one."""
    monkeypatch.chdir(tmp_path)
    found = find(None, f"{module_named(tmp_path, APP)}:{name}")
    assert [company.offer.domain for company in found.companies] == domains
    assert (found.app is not None) is has_app


def test_what_is_neither_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what may be named."""
    monkeypatch.chdir(tmp_path)
    assert _fails(None, f"{module_named(tmp_path, APP)}:nothing").rule == "config.target"


def test_a_function_that_is_no_app_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler is no app: nothing could be served."""
    monkeypatch.chdir(tmp_path)
    error = _fails(None, f"{module_named(tmp_path, HANDLER)}:answer")
    assert error.rule == "config.target"
    assert "app:company or app:app" in getattr(error, "next", "")


RAISES = """
def build():
    return {}["gone"]

build()
"""
FACTORY = """
def build():
    import no_such_module_at_all
"""


def test_an_error_in_the_module_shows_its_own_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And none of ours or of the import."""
    monkeypatch.chdir(tmp_path)
    module = module_named(tmp_path, RAISES)
    error = _fails(None, f"{module}:app")
    assert (error.rule, error.description) == ("config.target", f"{module}:app raised KeyError")
    assert f'{module}.py", line 3, in build' in error.detail
    assert error.detail.endswith("KeyError: 'gone'")
    assert "importlib" not in error.detail
    assert "papaver/cli" not in error.detail


@pytest.mark.parametrize("text", ["import no_such_module_at_all\n", FACTORY], ids=["module", "function"])
def test_a_module_that_is_missing_further_in_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The module itself is there: what it imports is not."""
    monkeypatch.chdir(tmp_path)
    module = module_named(tmp_path, text)
    error = _fails(None, f"{module}:build")
    assert f"{module} imports no_such_module_at_all, and there is no such module, line " in error.description
    assert "install no_such_module_at_all" in getattr(error, "next", "")


def test_both_a_file_and_a_name_are_a_usage_error(tmp_path: Path) -> None:
    """One of them has to go."""
    assert _fails(tmp_path / "papaver.toml", "a:b").code == "usage"


def test_one_company_has_to_be_named_where_there_are_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`company allow` is about one."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PapaverError) as caught:
        the_company(find(None, f"{module_named(tmp_path, APP)}:two"))
    assert caught.value.rule == "config.one-company"
    assert "b.example, a.example" in caught.value.description


def test_companies_are_found_in_an_app_s_routes() -> None:
    """However the app came to them."""
    from papaver.stores.memory import MemoryStore

    app = FastAPI()
    company = Company(
        domain="shop.example", name="S", base_url="https://shop.example/p", store=MemoryStore(), website=True
    )
    Poppy(app, company)
    assert companies_of(app) == (company,)
    assert companies_of(object()) == ()
