"""Inside or not, by the spelling and in fact; protected names."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.paths.protected import find_acting, find_protected_entry, find_secret
from policies.paths.workspace import Place, Workspace, find_form_fault
from policies.verdict import Deny
from policies.visible_text import show
from tests.unit.policies.judging import denied, read_list, read_table


def _locate(path: str, root: Path, *, follow: bool = True) -> Place | str:
    place = denied(lambda: Workspace(root, root).locate(path, follow=follow))
    return place.rule if isinstance(place, Deny) else place


def test_a_path_inside_is_known_by_its_parts(shared_workspace: Path) -> None:
    place = _locate("src//./main.py", shared_workspace)
    assert isinstance(place, Place)
    assert place.parts == place.real_parts == ("src", "main.py")
    assert place.absolute == f"{shared_workspace}/src/main.py"


def test_a_link_stands_for_itself_only_without_a_slash_behind_it(workspace: Path) -> None:
    (workspace / "out").symlink_to("../outdir")
    (workspace / "in").symlink_to("src")
    for path, follow, real in (
        ("in/a/new.txt", True, ("src", "a", "new.txt")),
        ("in/", False, ("src",)),
        ("out", False, ("out",)),
    ):
        place = _locate(path, workspace, follow=follow)
        assert isinstance(place, Place), path
        assert place.real_parts == real
    assert _locate("out/a/b/new.txt", workspace) == "link_outside"
    for path in ("out/", "out/.", "out/x"):
        assert _locate(path, workspace, follow=False) == "link_outside"


def test_nothing_makes_a_folder_of_any_name_a_repository_or_acts_in_one(workspace: Path) -> None:
    def write(path: str) -> str | None:
        found = denied(Workspace(workspace, workspace).locate(path).check_write)
        return found.rule if isinstance(found, Deny) else None

    folder = workspace / "lib"
    (folder / "objects").mkdir(parents=True)
    names = ("HEAD", "refs/x", "commondir", "config", "hooks/update", "objects/y", "main.py")
    assert [name for name in names if write(f"lib/{name}")] == []
    (folder / "HEAD").touch()
    assert [name for name in names if write(f"lib/{name}")] == ["refs/x", "commondir"]
    (folder / "refs").mkdir()
    assert [name for name in names if write(f"lib/{name}")] == list(names[:-1])
    (workspace / "link").symlink_to("lib")
    assert write("link/hooks/x/y") == "protected_path"
    assert write("config") is None


FORMS = r"""
path_empty: {EMPTY}
path_characters: a{U+000A}b ¦ a{U+0000}b ¦ a{U+202E}b ¦ .g{U+200C}it/config ¦ a{U+DCFF}b
path_tilde: ~/x
path_backslash: a\b
path_lookalike: ．．/x ¦ a/‥/x
path_foreign: //server/share ¦ C:/Windows ¦ file:///etc/passwd ¦ http://example.com/x
path_too_long: {LONG_NAME} ¦ {WIDE_NAME} ¦ {LONG_PATH}
"""


def test_spellings_that_programs_read_differently_are_refused() -> None:
    long = {"{LONG_NAME}": "a" * 256, "{WIDE_NAME}": "报" * 100, "{LONG_PATH}": "a/" * 2100}
    for path, rule in read_table(FORMS):
        fault = find_form_fault(long.get(path, path))
        assert (fault and fault.denial.rule) == rule, path
    for path in ("a:b.txt", "a b.txt", "...", "..hidden", "a~", "报告（终）.md"):
        assert find_form_fault(path) is None


SECRETS = r"""
.env ¦ .ENV ¦ app/.env.production ¦ .envrc ¦ keys/server.pem ¦ server.KEY ¦ .ssh/config ¦ id_rsa
.netrc ¦ .npmrc ¦ credentials.json ¦ service-account-prod.json ¦ .candor/candor.db ¦ prod.env
id_ed25519_sk ¦ ID_ECDSA_SK ¦ id_rsa_公司 ¦ id_rsa.bak ¦ id_ed25519~ ¦ ssh_host_rsa_key
AuthKey_密钥.p8 ¦ .s3cfg ¦ .boto ¦ .mylogin.cnf ¦ deploy/kubeconfig ¦ prod.kubeconfig
terraform.tfstate ¦ 部署/terraform.tfstate.backup ¦ .docker/config.json ¦ 项目/.Docker/Config.JSON
.git/config ¦ 子/.GIT/modules/lib/config ¦ .git/worktrees/w/config.worktree ¦ mirror.git/config
git~1/config ¦ .cargo/credentials ¦ .cargo/credentials.toml ¦ .gem/credentials
.config/gh/hosts.yml ¦ .config/gcloud/access_tokens.db ¦ .git/config.lock ¦ .git/credentials
.git/rr-cache/0/postimage ¦ .gitconfig ¦ id_rsa::$DATA
.docker::$INDEX_ALLOCATION/config.json
"""
NO_SECRETS = r"""
.env.example ¦ environment.md ¦ id_rsa.pub ¦ key.txt ¦ monkey.py ¦ a/.ENV.example ¦ example.env
id_ed25519.pub ¦ id_ed25519.PUB ¦ id_rsa_test.py ¦ id_rsa_公司.pub ¦ ssh_host_rsa_key.pub
main.tf ¦ .docker/Dockerfile ¦ .docker/config.json.md ¦ docker/config.json ¦ config.json
.cargo/config.toml ¦ src/credentials/form.tsx ¦ gh/hosts.yml ¦ .config/app.toml ¦ .git/HEAD
config/git ¦ git/config ¦ .git ¦ 密钥说明.md ¦ env：说明.md ¦ a:.pem.txt
"""
ACTING = r"""
mise.toml ¦ app/opencode.json ¦ .claude ¦ .claude/skills/x/SKILL.md ¦ sub/.Claude/settings.json
.git
sub/.git/hooks/pre-commit ¦ .mcp.json ¦ CLAUDE.md ¦ sub/claude.MD ¦ CLAUDE.local.md ¦ agents.MD
文档/AGENTS.md ¦ GEMINI.md ¦ .github/copilot-instructions.md ¦ .github/instructions/python.md
.clinerules/style.md ¦ .bashrc ¦ .vscode/tasks.json ¦ .idea ¦ .gitmodules
.github/workflows/ci.yml ¦ sub/.GitHub/Workflows ¦ logs/a.jsonl ¦ .git./config ¦ git~1/config
.git::$INDEX_ALLOCATION/config ¦ .config/fish/config.fish ¦ .Config/Git/config
家/.config/nvim/init.lua ¦ .config/systemd/user/x.service ¦ .emacs.d/init.el ¦ .spacemacs
.nanorc ¦ .ideavimrc ¦ _vimrc ¦ _gvimrc ¦ _exrc
Documents/PowerShell/Microsoft.PowerShell_profile.ps1 ¦ 项目.code-workspace ¦ p.sublime-project
.githooks/pre-commit ¦ lefthook.yaml ¦ .gitea/workflows/ci.yml ¦ .hgrc ¦ .mcp.jſon
.jj/repo/config.toml ¦ .sl/config
"""
NOT_ACTING = r"""
.gitignore ¦ claude/notes.md ¦ CLAUDE.md.txt ¦ agents/notes.md ¦ our-agents.md ¦ src/logs/x
.github/ISSUE.md ¦ .config/app.toml ¦ config/fish/config.fish ¦ nvim/说明.md ¦ code-workspace.md
notes~1 ¦ profile.md ¦ CLAUDE.md：说明 ¦ workflows/x
"""


def test_secrets_and_configuration_that_acts_are_known_in_any_case_and_at_any_depth() -> None:
    for find, named, like in (
        (find_secret, SECRETS, NO_SECRETS),
        (find_acting, ACTING, NOT_ACTING),
    ):
        assert [p for p in read_list(named) if find(p.split("/")) is None] == []
        assert [p for p in read_list(like) if find(p.split("/")) is not None] == []


def test_the_last_component_is_judged_with_the_one_above_it() -> None:
    assert find_protected_entry((".github", "workflows")) == ".github/workflows"
    assert find_protected_entry(("logs",)) == "logs"
    assert find_protected_entry(("a", "logs")) is None
    assert find_protected_entry(("a", ".env")) == ".env"
    assert find_protected_entry(("a", ".docker", "config.json")) == ".docker/config.json"
    assert find_protected_entry((".docker", "a", "config.json")) is None


def test_a_shown_path_is_short_and_hides_nothing_that_acts() -> None:
    assert show("a\u202eb\n") == "a�b�"
    assert len(show("x" * 500)) < 100


_PARTS = st.sampled_from(
    ["..", ".", "", "src", "up", "out", "in", "a.txt", "new", ".git", "~", "報"]
)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(parts=st.lists(_PARTS, max_size=8), absolute=st.booleans(), follow=st.booleans())
def test_no_accepted_path_leads_outside(
    tmp_path: Path, parts: list[str], *, absolute: bool, follow: bool
) -> None:
    root = tmp_path / "ws"
    (root / "src").mkdir(parents=True, exist_ok=True)
    for name, target in (("up", ".."), ("out", "/etc"), ("in", "src")):
        if not (root / name).is_symlink():
            (root / name).symlink_to(target)
    path = "/".join(parts)
    place = Workspace(root, root).find(f"{root}/{path}" if absolute else path, follow=follow)
    if place is not None:
        head, _, name = f"{root}/{path}".rpartition("/")
        parent = Path(head).resolve()
        itself = not follow and name not in {"", ".", ".."}
        where = parent if itself else (parent / name).resolve()
        assert where.is_relative_to(root.resolve())
