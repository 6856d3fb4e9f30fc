"""A held-out set for the masking of secrets: cases written from the world, before the code they measure.

The code is not tuned on these. They measure what it misses and what it masks by mistake; `bench policy`
prints both. `⟦…⟧` marks a secret, `‹kind length›` is filled in when the set is made, so no value is stored.
"""

import base64
import random
import re
import string
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

_ENV_FILES = (
    "DB_PASSWORD=⟦‹pw›⟧",
    "export AWS_SECRET_ACCESS_KEY=⟦‹b64 40›⟧",
    "AWS_ACCESS_KEY_ID=⟦AKIA‹AN 16›⟧",
    'MYSQL_ROOT_PASSWORD="⟦‹pw›⟧"',
    "REDIS_URL=redis://:⟦‹an 24›⟧@cache.internal:6379/0",
    "DATABASE_URL=postgres://app:⟦‹pw›⟧@db.internal:5432/app?sslmode=require",
    "SECRET_KEY='django-insecure-⟦‹sym 50›⟧'",
    "JWT_SECRET=⟦‹low 32›⟧",
    "OPENAI_API_KEY=⟦sk-proj-‹url 74›⟧",
    "ANTHROPIC_API_KEY=⟦sk-ant-api03-‹url 93›AA⟧",
    "STRIPE_SECRET_KEY=⟦sk_live_‹an 24›⟧",
    "SENDGRID_API_KEY=⟦SG.‹url 22›.‹url 43›⟧",
    "TWILIO_AUTH_TOKEN=⟦‹hex 32›⟧",
    "SESSION_SECRET=⟦‹hex 64›⟧",
    "SMTP_PASS=⟦‹weak›⟧",
    "MAIL_PASSWORD=⟦‹low 4› ‹low 4› ‹low 4› ‹low 4›⟧",
    "GITHUB_TOKEN=⟦ghp_‹an 36›⟧",
    "RAILS_MASTER_KEY=⟦‹hex 32›⟧",
    "ENCRYPTION_KEY=⟦base64:‹b64pad 32›⟧",
    "ELASTIC_PASSWORD=⟦‹weak›⟧",
    "MINIO_ROOT_PASSWORD=⟦‹weak›⟧",
    "CLOUDFLARE_API_TOKEN=⟦‹url 40›⟧",
    "DATADOG_API_KEY=⟦‹hex 32›⟧",
    "AZURE_CLIENT_SECRET=⟦‹an 3›8Q~‹url 34›⟧",
    "ALIYUN_ACCESS_KEY_SECRET=⟦‹an 30›⟧",
    "TENCENTCLOUD_SECRET_KEY=⟦‹an 32›⟧",
    "DASHSCOPE_API_KEY=⟦sk-‹hex 32›⟧",
)
_STRUCTURED = (
    '{"username": "svc", "password": "⟦‹pw›⟧"}',
    '{"access_token":"⟦‹an 40›⟧","token_type":"bearer","expires_in":3600,"refresh_token":"⟦‹an 44›⟧"}',
    '  "client_secret": "⟦GOCSPX-‹url 28›⟧",',
    '{"auths": {"registry.example.com": {"auth": "⟦‹b64of weak›⟧"}}}',
    '"ConnectionStrings": {"Default": "Server=sql01;Database=crm;User Id=sa;Password=⟦‹pw›⟧;"}',
    '{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\\n⟦‹b64 64›⟧\\n⟦‹b64 64›⟧\\n-----END PRIVATE KEY-----\\n"}',
    '{\\"apiKey\\": \\"⟦‹an 32›⟧\\"}',
    '{"env": [{"name": "DB_PASSWORD", "value": "⟦‹pw›⟧"}]}',
    "spring.datasource.password=⟦‹pw›⟧",
    "spring:\n  datasource:\n    username: app\n    password: ⟦‹pw›⟧",
    "apiVersion: v1\nkind: Secret\ndata:\n  password: ⟦‹b64of pw›⟧",
    "environment:\n  - POSTGRES_PASSWORD=⟦‹weak›⟧",
    "users:\n- name: admin\n  user:\n    token: ⟦‹an 48›⟧",
    "  client-key-data: ⟦‹b64 120›⟧",
    "ansible_become_pass: ⟦‹weak›⟧",
    "redis:\n  auth: ⟦‹an 20›⟧",
    'api_key: "⟦‹hex 32›⟧"',
    "secret_key_base: ⟦‹hex 128›⟧",
    'db_password = "⟦‹pw›⟧"',
    "[client]\nuser = root\npassword = ⟦‹weak›⟧",
    "[pypi]\nusername = __token__\npassword = ⟦pypi-AgEIcHlwaS5vcmc‹url 60›⟧",
    "//npm.example.test/:_authToken=⟦npm_‹an 36›⟧",
    "//npm.example.com/:_password=⟦‹b64of pw›⟧",
    "<password>⟦‹pw›⟧</password>",
    '<add key="ApiSecret" value="⟦‹an 32›⟧" />',
    "machine api.example.com login bot password ⟦‹weak›⟧",
    'network={\n  ssid="home"\n  psk="⟦‹weak›⟧"\n}',
    "db.internal:5432:app:app:⟦‹pw›⟧",
    "root:⟦$6$‹an 12›$‹an 86›⟧:19700:0:99999:7:::",
    "admin:⟦$apr1$‹an 8›$‹an 22›⟧",
    'token = "⟦‹hex 40›⟧"',
    "requirepass ⟦‹weak›⟧",
)
_HEADERS_AND_URLS = (
    "Authorization: Bearer ⟦‹an 40›⟧",
    "authorization: Basic ⟦‹b64of pw›⟧",
    "X-Api-Key: ⟦‹an 32›⟧",
    "x-goog-api-key: ⟦AIza‹url 35›⟧",
    "PRIVATE-TOKEN: ⟦glpat-‹url 20›⟧",
    "Cookie: sessionid=⟦‹low 32›⟧; theme=dark",
    "Set-Cookie: connect.sid=⟦s%3A‹an 32›.‹an 43›⟧; Path=/; HttpOnly",
    "Authorization: token ⟦‹hex 40›⟧",
    "Proxy-Authorization: Basic ⟦‹b64of weak›⟧",
    "X-Vault-Token: ⟦hvs.‹url 90›⟧",
    "X-Auth-Token: ⟦‹uuid›⟧",
    "https://bob:⟦‹weak›⟧@git.example.com/team/repo.git",
    "git clone https://oauth2:⟦glpat-‹url 20›⟧@gitlab.com/x/y.git",
    "mongodb+srv://admin:⟦‹pwurl›⟧@cluster0.mongodb.net/test",
    "amqp://guest:⟦‹weak›⟧@rabbit:5672//",
    "jdbc:mysql://10.0.0.5:3306/app?user=root&password=⟦‹pwurl›⟧&useSSL=false",
    "https://api.example.com/v1/items?api_key=⟦‹hex 32›⟧&page=2",
    "https://hooks.slack.com/services/T‹AN 8›/B‹AN 8›/⟦‹an 24›⟧",
    "https://discord.com/api/webhooks/‹dig 18›/⟦‹url 68›⟧",
    "https://api.telegram.org/bot‹dig 10›:⟦AA‹url 33›⟧/getMe",
    "https://acct.blob.core.windows.net/c/f.txt?sv=2024-08-04&se=2025-01-01&sr=b&sp=r&sig=⟦‹b64url 43›%3D⟧",
    "https://bucket.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=900&X-Amz-Signature=⟦‹hex 64›⟧",
    "otpauth://totp/Acme:bob@example.com?secret=⟦‹B32 32›⟧&issuer=Acme",
    "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=⟦‹uuid›⟧",
    "https://oapi.dingtalk.com/robot/send?access_token=⟦‹hex 64›⟧",
    "grant_type=password&username=bob&password=⟦‹weak›⟧",
    "https://example.com/cb#access_token=⟦‹an 60›⟧&token_type=bearer",
    "wss://stream.example.com/?token=⟦eyJ‹url 30›.eyJ‹url 60›.‹url 43›⟧",
)
_COMMANDS = (
    "mysql -u root -p⟦‹weak›⟧ app < dump.sql",
    "curl -u bob:⟦‹weak›⟧ https://example.com/api",
    "curl -H 'Authorization: Bearer ⟦‹an 36›⟧' https://example.com",
    "sshpass -p '⟦‹pw›⟧' ssh root@10.0.0.7",
    "PGPASSWORD=⟦‹weak›⟧ psql -h db -U app",
    "docker login -u bob -p ⟦‹weak›⟧ registry.example.com",
    "redis-cli -h cache -a ⟦‹an 20›⟧ ping",
    "openssl rsa -in k.pem -passin pass:⟦‹weak›⟧",
    "kubectl create secret generic db --from-literal=password=⟦‹pw›⟧",
    "vault kv put secret/db password=⟦‹weak›⟧",
    "helm install x ./x --set auth.rootPassword=⟦‹weak›⟧",
    "npm config set //npm.example.test/:_authToken ⟦npm_‹an 36›⟧",
    "az login --service-principal -u app -p ⟦‹an 34›⟧ --tenant t",
    "aws configure set aws_secret_access_key ⟦‹b64 40›⟧",
    "gh auth login --with-token <<< ⟦gho_‹an 36›⟧",
    "mongosh --username admin --password ⟦‹weak›⟧",
    "echo '⟦‹weak›⟧' | sudo -S apt update",
    "export TOKEN=⟦‹hex 40›⟧ && ./deploy.sh",
    "net use Z: \\\\srv\\share /user:corp\\bob ⟦‹pw›⟧",
    "$env:API_TOKEN = '⟦‹an 40›⟧'",
    "wget --user=bob --password=⟦‹weak›⟧ ftp://example.com/x",
    "zip -P ⟦‹weak›⟧ out.zip data.csv",
    "unzip -P '⟦‹pw›⟧' out.zip",
    "smbclient //srv/share -U bob%⟦‹weak›⟧",
    "ldapsearch -D cn=admin -w ⟦‹weak›⟧ -b dc=example",
    "ALTER USER app WITH PASSWORD '⟦‹pw›⟧';",
    "CREATE USER 'app'@'%' IDENTIFIED BY '⟦‹pw›⟧';",
    "htpasswd -b .htpasswd bob ⟦‹weak›⟧",
)
_CODE = (
    'const apiKey = "⟦‹an 32›⟧";',
    "client = Client(token='⟦‹an 40›⟧')",
    'conn = psycopg2.connect(host="db", user="app", password="⟦‹weak›⟧")',
    "define('DB_PASSWORD', '⟦‹pw›⟧');",
    'Password: "⟦‹pw›⟧",',
    'private static final String SECRET = "⟦‹an 24›⟧";',
    "os.environ['API_KEY'] = '⟦‹hex 32›⟧'",
    'passwd := "⟦‹weak›⟧"',
    '  config.secret_key = "⟦‹hex 64›⟧"',
    "ENV NPM_TOKEN ⟦npm_‹an 36›⟧",
    'headers: { "X-API-KEY": "⟦‹an 40›⟧" }',
    "requests.get(url, auth=('bob', '⟦‹pw›⟧'))",
    "axios.defaults.headers.common['Authorization'] = 'Bearer ⟦‹an 48›⟧';",
    'variable "db_password" {\n  default = "⟦‹pw›⟧"\n}',
    'let key = b"⟦AIza‹url 35›⟧";',
    'login("bob", password: "⟦‹weak›⟧")',
)
_TOKENS = (
    "the new one is ⟦github_pat_‹an 22›_‹an 59›⟧",
    "use ⟦xoxb-‹dig 12›-‹dig 12›-‹an 24›⟧ for the bot",
    "⟦sk-or-v1-‹hex 64›⟧",
    "⟦hf_‹an 34›⟧ works for me",
    "try ⟦gsk_‹an 52›⟧",
    "deploy with ⟦dop_v1_‹hex 64›⟧",
    "key ⟦LTAI5t‹an 18›⟧ belongs to ops",
    "key id ⟦AKID‹an 32›⟧",
    "⟦eyJhbGciOiJIUzI1NiJ9.eyJ‹url 60›.‹url 43›⟧",
    "shop ⟦shpat_‹hex 32›⟧",
    "⟦ya29.a0‹url 120›⟧",
    "⟦dckr_pat_‹url 27›⟧",
    "⟦figd_‹url 40›⟧ expires tomorrow",
    "⟦PMAK-‹hex 24›-‹hex 34›⟧",
    "⟦lin_api_‹an 40›⟧",
    "⟦ntn_‹dig 11›‹an 35›⟧",
    "⟦sntrys_‹b64 60›_‹b64 43›⟧",
    "⟦glsa_‹an 32›_‹hex 8›⟧",
    "⟦whsec_‹b64 32›⟧",
    "⟦rk_live_‹an 24›⟧",
    "⟦ATATT3xFfGF0‹url 180›⟧",
    "⟦pul-‹hex 40›⟧",
    "⟦tskey-auth-‹an 12›CNTRL-‹an 32›⟧",
    "⟦AGE-SECRET-KEY-1‹B32 58›⟧",
    "⟦r8_‹an 37›⟧",
    "⟦pplx-‹an 48›⟧",
    "⟦xai-‹an 80›⟧",
    "⟦dapi‹hex 32›-2⟧",
    "⟦EAACEdEose0cBA‹an 120›⟧",
    "-----BEGIN RSA PRIVATE KEY-----\n⟦‹b64 64›⟧\n⟦‹b64 64›⟧\n⟦‹b64 20›⟧=\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\n⟦b3BlbnNzaC1rZXktdjEAAAAA‹b64 46›⟧\n⟦‹b64 70›⟧\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN EC PRIVATE KEY-----\n⟦‹b64 64›⟧\n⟦‹b64 64›⟧",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n⟦‹b64 64›⟧\n⟦‹b64 64›⟧\n=‹an 4›\n-----END PGP PRIVATE KEY BLOCK-----",
    "⟦vercel_blob_rw_‹an 16›_‹an 32›⟧",
    "⟦acme_live_‹an 40›⟧",
)
_CHAT_ENGLISH = (
    "my password is ⟦‹pw›⟧, can you log in and check?",
    "The root password for the staging box is ⟦‹weak›⟧.",
    "log in as bob with password ⟦‹pw›⟧",
    "username: bob, pw: ⟦‹pw›⟧",
    "creds: admin / ⟦‹pw›⟧",
    "Use `⟦‹pw›⟧` as the password",
    "I changed the admin password to ⟦‹weak›⟧ yesterday",
    "here's the API key: ⟦‹an 32›⟧",
    "the token is ⟦‹hex 40›⟧ fyi",
    "wifi password = ⟦‹weak›⟧",
    'The passphrase is "⟦‹word› ‹word› ‹word› ‹word›⟧"',
    "secret: ⟦‹hex 32›⟧ (do not share)",
    "set the api key to ⟦‹url 40›⟧ in settings",
    "| password | ⟦‹pw›⟧ |",
    "**Password:** `⟦‹pw›⟧`",
    "You can sign in with bob@example.com / ⟦‹pw›⟧ (password)",
    "the db pass is ⟦‹weak›⟧",
    "ssh passphrase → ⟦‹pw›⟧",
)
_CHAT_CHINESE = (
    "密码是⟦‹pw›⟧，你登录看看",
    "数据库密码：⟦‹weak›⟧",
    "账号 admin 密码 ⟦‹pw›⟧",
    "账号/密码：admin/⟦‹pw›⟧",
    "口令为⟦‹weak›⟧",
    "WiFi密码⟦‹weak›⟧",
    "把 root 的密码改成 ⟦‹pw›⟧ 吧",
    "API密钥是 ⟦‹an 32›⟧",
    "用户名是bob，登录密码是⟦‹weak›⟧。",
    "访问令牌：⟦‹an 40›⟧",
    "解压密码:⟦‹weak›⟧",
    "链接: https://pan.baidu.com/s/1‹an 22› 提取码: ⟦‹low 4›⟧",
    "用“⟦‹pw›⟧”这个密码登录",
    "服务器密码（生产）：⟦‹pw›⟧",
    "密钥如下：⟦‹hex 32›⟧",
    "我的密碼係 ⟦‹weak›⟧",
    "初始密码为 ⟦‹dig 8›⟧，请尽快修改",
    "新的秘钥：⟦‹b64 44›⟧",
    "ＡＰＩ　Ｋｅｙ：⟦‹an 32›⟧",
    "授权码 ⟦‹AZ 16›⟧",
    "支付密码设成了⟦‹dig 6›⟧",
)

SECRETS = {
    "environment files": _ENV_FILES,
    "structured": _STRUCTURED,
    "headers and addresses": _HEADERS_AND_URLS,
    "commands": _COMMANDS,
    "code": _CODE,
    "tokens": _TOKENS,
    "chat, English": _CHAT_ENGLISH,
    "chat, Chinese": _CHAT_CHINESE,
}

ORDINARY = (
    # version control and builds
    "commit ‹hex 40›",
    "‹hex 7› Fix password reset form",
    "index ‹hex 7›..‹hex 7› 100644",
    "Merge: ‹hex 7› ‹hex 7›",
    "git checkout ‹hex 40› -- src/auth/token.py",
    "Docker image sha256:‹hex 64› pulled",
    "FROM python@sha256:‹hex 64›",
    '"integrity": "sha512-‹b64 86›==",',
    'resolved "https://registry.yarnpkg.com/lodash/-/lodash-4.17.21.tgz#‹hex 40›"',
    "certifi==2024.8.30 --hash=sha256:‹hex 64›",
    "‹hex 64›  dist/app.tar.gz",
    "MD5 (file.iso) = ‹hex 32›",
    'checksum = "‹hex 64›"',
    "github.com/pkg/errors v0.9.1 h1:‹b64 43›=",
    'ETag: "‹hex 32›"',
    'content_hash = "‹hex 64›"',
    "SRI: sha384-‹b64 64›",
    "build id ‹uuid›",
    "actions/checkout@‹hex 40› # v4.2.2",
    'rev = "‹hex 40›"',
    # ids
    "request_id=‹uuid› status=200",
    "trace_id: ‹hex 32› span_id: ‹hex 16›",
    "req_‹an 24› finished in 231 ms",
    "msg_‹an 24›",
    "toolu_‹an 24› returned an error",
    "cus_‹an 14› subscribed to price_‹an 24›",
    "arn:aws:iam::‹dig 12›:role/deploy",
    "i-0‹hex 16› is running",
    "conversation ‹uuid› closed",
    "ORDER-‹AN 10› shipped",
    "https://docs.google.com/document/d/‹url 44›/edit",
    "https://www.youtube.com/watch?v=‹url 11›",
    "https://example.com/assets/main.‹hex 20›.js",
    "/static/chunks/‹hex 16›-‹hex 16›.js",
    'ObjectId("‹hex 24›")',
    "01H‹AN 23› is a ULID",
    "0x‹hex 64› was mined",
    "bc1q‹low 38›",
    # encodings
    "data:image/png;base64,iVBORw0KGgo‹b64 300›",
    "![logo](data:image/svg+xml;base64,‹b64 120›)",
    '"thumbnail": "‹b64 160›"',
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI‹b64 43› bob@laptop",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ‹b64 200› ci",
    "SHA256:‹b64 43› bob@laptop (ED25519)",
    "-----BEGIN CERTIFICATE-----\n‹b64 64›\n‹b64 64›\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n‹b64 64›\n-----END PUBLIC KEY-----",
    "Fingerprint: ‹HEX 2›:‹HEX 2›:‹HEX 2›:‹HEX 2›:‹HEX 2›:‹HEX 2›:‹HEX 2›:‹HEX 2›",
    "color: #‹hex 6›;",
    "MAC ‹hex 2›:‹hex 2›:‹hex 2›:‹hex 2›:‹hex 2›:‹hex 2›",
    "2001:db8:‹hex 4›:‹hex 4›::1",
    # source code
    "def check_password(password: str, hashed: bytes) -> bool:",
    "password = request.form['password']",
    "if not password or len(password) < 12:",
    "    token = await fetch_token(client_id)",
    "self.api_key = api_key or os.environ.get('API_KEY')",
    "const { token, refreshToken } = useAuth();",
    "public string Password { get; set; }",
    "password: String,",
    "token: str | None = None",
    "secret_key = settings.SECRET_KEY",
    "password = getpass.getpass('Password: ')",
    "PASSWORD_HASHERS = ['django.contrib.auth.hashers.Argon2PasswordHasher']",
    "AUTH_PASSWORD_VALIDATORS = []",
    "from rest_framework.authtoken.models import Token",
    "raise ValueError('password must not be empty')",
    '<input type="password" name="password" placeholder="Password" />',
    "token = tokens[i + 1]",
    "for key, value in secrets.items():",
    "hash_password(user.password, rounds=12)",
    "next_token = response.get('NextToken')",
    "max_tokens=4096, temperature=0.2",
    'tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")',
    'String password = System.getenv("DB_PASSWORD");',
    "export default { key: 'userSettings', storage }",
    "primary_key=True, nullable=False",
    "KeyError: 'password'",
    'cache_key = f"user:{user_id}:profile"',
    "CREATE TABLE users (id INT PRIMARY KEY, password VARCHAR(255) NOT NULL);",
    "SELECT token, expires_at FROM sessions WHERE user_id = $1;",
    "type Credentials = { username: string; password: string };",
    "func (c *Client) SetToken(token string) {",
    "assert response.json() == {'detail': 'Invalid token'}",
    "test('resets the password', async () => {",
    "private readonly tokenService: TokenService,",
    "import { hashPassword } from './password';",
    "@app.post('/password/reset')",
    "foreign_key: user_id, public_key: true",
    # settings without a secret
    "DB_PASSWORD=",
    "DB_PASSWORD=${DB_PASSWORD}",
    "password: ${{ secrets.DB_PASSWORD }}",
    "API_KEY=your-api-key-here",
    "OPENAI_API_KEY=sk-...",
    "PASSWORD=<your password>",
    'password: "{{ vault_db_password }}"',
    "POSTGRES_PASSWORD_FILE=/run/secrets/db_password",
    "secretName: app-tls",
    "tokenExpiry: 3600",
    "PasswordAuthentication no",
    "passwordPolicy: strong",
    "token_endpoint: https://login.example.com/oauth/token",
    "secretKeyRef:\n  name: db\n  key: password",
    "API_KEY_HEADER=X-Api-Key",
    "ssl_certificate_key /etc/nginx/ssl/site.key;",
    "password = ********",
    "token: null",
    "password_min_length = 12",
    "IdentityFile ~/.ssh/id_ed25519",
    "access_key_rotation_days: 90",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "https://user@example.com/repo.git",
    "postgres://localhost:5432/app",
    "mysql -u root -p",
    'curl -H "Authorization: Bearer $GITHUB_TOKEN" https://api.github.com/user',
    "docker run -e POSTGRES_PASSWORD -p 5432:5432 postgres:16",
    # talk, English
    "The password field is required.",
    "I forgot my password, how do I reset it?",
    "Your password must contain at least 12 characters, one digit and one symbol.",
    "The token has expired; request a new one.",
    "Is the API key stored in an environment variable?",
    "password: required, at least 8 characters",
    "The secret to good tests: small steps.",
    "We count 1234567 tokens per day.",
    'Password authentication failed for user "app"',
    "Error: invalid api key provided",
    "The key is under the doormat.",
    "The password is stored as an Argon2id hash.",
    "Bearer tokens are sent in the Authorization header.",
    "Two-factor authentication: password plus a one-time code",
    "token limit reached: 200000 of 200000",
    "Basic authentication is disabled",
    "My username is bob_2024 and I use version 3.11.9",
    "password reset e-mail was sent to bob@example.com",
    "see docs/passwords-and-tokens.md#rotation",
    # talk, Chinese
    "密码错误，请重新输入",
    "请输入密码：",
    "忘记密码怎么办？",
    "密码长度至少为8位，且包含数字和字母",
    "这个函数检查密码是否为空",
    "密码是用 bcrypt 哈希后保存的",
    "令牌已过期，请重新登录",
    "把密码改为从环境变量读取",
    "密钥管理服务（KMS）的费用是多少？",
    "密码学入门：RSA 与 AES-256 的区别",
    "用户名和密码不匹配",
    "验证码已发送到您的手机",
    "私钥不要提交到 Git 仓库",
    "重置密码的链接有效期为 24 小时",
    "密码：必填，不少于 12 个字符",
    "凭证保存在 ~/.aws/credentials",
    "口令红包怎么领？",
    "请把 API 密钥写进 .env 文件，不要写在代码里",
    "密码强度：弱/中/强",
    "访问令牌的有效期是 3600 秒",
)

_WORDS = (
    *("dragon", "summer", "falcon", "coffee", "orange", "winter", "guitar", "monkey", "rocket"),
    *("purple", "silver", "wizard", "jungle", "planet", "kitten", "thunder", "harbor", "velvet"),
)
_ALPHABETS = {
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "an": string.ascii_letters + string.digits,
    "AN": string.ascii_uppercase + string.digits,
    "AZ": string.ascii_uppercase,
    "low": string.ascii_lowercase + string.digits,
    "dig": string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "b64url": string.ascii_letters + string.digits,
    "url": string.ascii_letters + string.digits + "-_",
    "sym": string.ascii_lowercase + string.digits + "!@#$%^&*(-_=+)",
    "B32": string.ascii_uppercase + "234567",
}
_FILL = re.compile(r"‹(?P<kind>\w+)(?: (?P<arg>\w+))?›")
_SECRET = re.compile(r"⟦([^⟧]*)⟧")


@dataclass(frozen=True, slots=True)
class Case:
    """A text and the secrets in it; none in an ordinary line."""

    group: str
    text: str
    secrets: tuple[str, ...]

    def is_missed(self, masked: str) -> bool:
        """Return whether half of a secret or more is still readable."""
        return any(
            one in masked
            for secret in self.secrets
            for one in (secret[: len(secret) // 2 + 1], secret[len(secret) // 2 :])
        )


def _password(rng: random.Random) -> str:
    word = rng.choice(_WORDS)
    return rng.choice(
        (
            f"{word.title()}{rng.randint(10, 9999)}{rng.choice('!#$*?')}",
            f"{word[:3].upper()}{rng.choice('@#!')}{word[3:]}{rng.randint(100, 999)}",
            f"{rng.choice('ABCXYZ')}{rng.choice('abcxyz')}{rng.randint(10, 99)}!{rng.choice(_WORDS)}",
            "".join(rng.choice(string.ascii_letters + string.digits + "!#*_+") for _ in range(14)),
        )
    )


def _fill(kind: str, arg: str, rng: random.Random) -> str:
    match kind:
        case "pw":
            return _password(rng)
        case "pwurl":
            return re.sub(r"[#?+]", "%21", _password(rng))
        case "weak":
            return f"{rng.choice(_WORDS)}{rng.randint(10, 99999)}"
        case "word":
            return rng.choice(_WORDS)
        case "b64of":
            return base64.b64encode(f"admin:{_fill(arg, '', rng)}".encode()).decode().rstrip("=")
        case "b64pad":
            return base64.b64encode(rng.randbytes(int(arg))).decode()
        case "uuid":
            return str(uuid.UUID(int=rng.getrandbits(128), version=4))
        case _:
            return "".join(rng.choice(_ALPHABETS[kind]) for _ in range(int(arg)))


def _make(group: str, template: str, rng: random.Random) -> Case:
    text = _FILL.sub(lambda found: _fill(found["kind"], found["arg"] or "", rng), template)
    return Case(group, _SECRET.sub(r"\1", text), tuple(_SECRET.findall(text)))


def secret_cases(seed: int) -> Iterator[Case]:
    """Yield every secret in its surroundings, with values made from a seed."""
    rng = random.Random(f"secrets {seed}")
    for group, templates in SECRETS.items():
        for template in templates:
            yield _make(group, template, rng)


def ordinary_cases(seed: int) -> Iterator[Case]:
    """Yield every ordinary line, with values made from a seed."""
    rng = random.Random(f"ordinary {seed}")
    for template in ORDINARY:
        yield _make("ordinary", template, rng)
