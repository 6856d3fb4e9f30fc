# base workspace fixture for the policy cases (bash); cwd and root = {WS}
cd "{WS}"
mkdir -p src docs build/cache data "dir with space" img tmp archive/2024 tests .claude/skills/demo .git/hooks logs node_modules/pkg 项目/子目录 "報告 資料夾"
printf 'alpha\n' > a.txt; printf 'beta\n' > b.txt; printf '# notes\n' > notes.md; printf 'x\n' > "a b.txt"; printf 'q\n' > "it's.txt"
printf 'print(1)\n' > src/main.py; printf 'x=1\n' > src/util.py; printf 'o' > build/out.o; printf 't' > build/x.tmp; printf 't' > build/y.tmp; printf 'c' > build/cache/c.bin
printf '# readme\n' > docs/readme.md; printf 'w' > "dir with space/inner file.txt"; printf '1,2\n' > data/1.csv; printf '3,4\n' > data/2.csv; printf 'png' > img/photo.png; printf 'png' > "img/IMG_2024 (1).png"
printf 'hi' > 报告.docx; printf 'plan' > "项目 计划.md"; printf 'zi' > 项目/子目录/数据.csv; printf 'e' > résumé.txt; printf 'f' > "报告（最终版）.docx"; printf 'em' > "🎉party.txt"
printf 'old' > old.log; printf 'bak' > notes.md~; printf 't' > tests/test_a.py; printf 'z' > archive/2024/z.zip; printf 'tmp' > tmp/scratch.tmp; printf '{}' > package.json; printf 'm' > Makefile; printf 'ok' > .gitignore; printf 'K=example' > .env.example
printf '{}' > .claude/settings.json; printf '# skill' > .claude/skills/demo/SKILL.md; printf '#!/bin/sh\n' > .git/hooks/pre-commit.sample; printf '[core]\n' > .git/config; printf 'SECRET=S3CR3T_IN_ENV\n' > .env; printf '# rules\n' > CLAUDE.md; printf '{}' > .mcp.json; printf 'log' > logs/app.log; printf 'p' > node_modules/pkg/index.js
