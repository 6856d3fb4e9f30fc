"""The tables of protected names, folded: what holds secrets, and which configuration acts.

A name stands here because a program of its own accord looks for it there, or because people by custom keep
secrets under it. What only a person's own habit makes one is not known here.
"""

from collections.abc import Sequence

READABLE = frozenset({".env.example", "example.env"})
"""Names that the patterns below take, and that by custom hold no secret."""

_PRIVATE_KEYS = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")

SECRET_PATTERNS = (
    ".env*",
    "*.env",
    *_PRIVATE_KEYS,
    *(f"{key}[-_~]*" for key in _PRIVATE_KEYS),  # for one service, on a token, an editor's copy
    *(f"{key}.[!pP]*" for key in _PRIVATE_KEYS),  # any copy, but not the public half, `.pub`
    "ssh_host_*_key",
    "*.pem",
    "*.key",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".s3cfg",
    ".boto",
    ".htpasswd",
    ".git-credentials",
    ".gitconfig",
    ".vault-token",
    ".dockercfg",
    ".dockerconfigjson",
    "kubeconfig",
    "*.kubeconfig",
    "*.tfstate",  # Terraform writes every password that it knows into it
    "*.tfstate.backup",
    ".claude.json",
    "credentials.json",
    ".credentials.json",
    "credentials.toml",
    "application_default_credentials.json",
    "client_secret*.json",
    "service[-_]account*.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".candor",
)
"""Each matches one component, a file's or a folder's, so that Grep can be told to leave out the same.

The last one is the gateway's own data, other people's conversations among it.
"""

SECRET_IN_REPOSITORY = ("config", "config.lock", "config.worktree", "credentials")
"""Names below a `.git` at any depth, submodules included: addresses in them carry passwords and tokens."""

SECRET_BELOW: Sequence[tuple[str, str]] = (
    (".docker", "config.json"),
    (".cargo", "credentials"),
    (".gem", "credentials"),
    *((".config", tool) for tool in ("gcloud", "gh", "glab-cli", "hub", "rclone")),
)
"""Folder and name, where the name alone is anybody's: a repository may keep other things in `.docker`."""

INSTRUCTIONS = (
    *("claude.md", "claude.local.md", "agents.md", "agents.override.md", "agents.local.md"),
    *("agent.md", "gemini.md", "qwen.md", "crush.md", "warp.md", "copilot-instructions.md"),
)
"""Files whose text an agent takes for instructions of the project; ours reads the CLAUDE and AGENTS ones."""

ACTING = frozenset(
    {
        # what the agent itself obeys
        *(".claude", ".mcp.json", *INSTRUCTIONS),
        # version control: hooks, filters, aliases; NTFS and FAT know `.git` as `git~1`, too
        *(".git", "git~1", ".gitconfig", ".gitmodules", ".gitattributes", ".hg", ".hgrc"),
        *(".husky", ".githooks", ".git-hooks", ".pre-commit-config.yaml"),
        *("lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml"),
        *(".gitlab-ci.yml", ".gitlab-ci.yaml", ".circleci", ".travis.yml"),
        *(".drone.yml", ".drone.yaml", ".woodpecker.yml", ".woodpecker.yaml", ".woodpecker"),
        *("azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile"),
        # shells and what they start
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".inputrc", ".ripgreprc"),
        *(".kshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".xinitrc", ".xprofile", ".curlrc"),
        *(".xsession", ".xsessionrc", ".pam_environment", ".mkshrc", ".bash_sessions"),
        *(".oh-my-zsh", "microsoft.powershell_profile.ps1", "microsoft.vscode_profile.ps1"),
        *(".wgetrc", ".screenrc", ".tmux.conf", ".pythonrc.py", ".rprofile", ".psqlrc"),
        *(".sqliterc", ".irbrc", ".pryrc", ".lessfilter"),
        # editors and other agents, which run tasks from the folder that they open
        *(".vscode", ".idea", ".devcontainer", ".cursor", ".windsurf", ".codex", ".gemini"),
        *(".devcontainer.json", ".cursorrules", ".windsurfrules", ".zed", ".fleet", ".vim"),
        *(".clinerules", ".roo", ".roorules", ".kiro", ".junie", ".goosehints", ".rules", ".qwen"),
        *(
            ".agents",
            ".amazonq",
            ".augment",
            ".continue",
            ".opencode",
            "opencode.json",
            "opencode.jsonc",
            ".aider.conf.yml",
        ),
        *(".vimrc", ".gvimrc", ".exrc", "_vimrc", "_gvimrc", "_exrc", ".nvimrc", ".nvim.lua"),
        *(".lvimrc", ".ideavimrc", ".nanorc", "vimfiles"),
        *(".emacs", ".emacs.d", ".spacemacs", ".spacemacs.d", ".doom.d", ".dir-locals.el"),
        *(".gdbinit", ".gdbearlyinit", ".lldbinit", ".pdbrc"),
        # package managers and version managers, which run hooks
        *(
            ".yarnrc",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            ".mise.toml",
            "mise.toml",
            ".direnv",
            ".cargo",
            ".bundle",
        ),
    }
)
ACTING_ENDINGS = (".code-workspace", ".sublime-project")
"""What an editor opens in place of a folder, its tasks and builds with it."""

_STARTED_FROM_CONFIG = (
    *("autostart", "bash", "doom", "emacs", "fish", "git", "helix", "kak", "kitty", "nushell"),
    *("nvim", "powershell", "systemd", "tmux", "vim", "zsh"),
)
ACTING_BELOW: Sequence[tuple[str, str]] = (
    *((forge, "workflows") for forge in (".github", ".gitea", ".forgejo")),
    *((".github", part) for part in ("actions", "agents", "chatmodes", "instructions", "prompts")),
    *((".config", program) for program in _STARTED_FROM_CONFIG),
)
ACTING_AT_ROOT = frozenset({"logs"})
"""The gateway's own journal; a `logs` folder further down is anybody's."""
