"""Lines without any secret, as logs, tools, programs and people write them."""

import base64
import random
import uuid

from tests.unit.policies.fabricated import HEX

_random = random.Random(11)  # the same ones in each run


def _hex(length: int) -> str:
    return "".join(_random.choice(HEX) for _ in range(length))


def _uuid() -> str:
    return str(uuid.UUID(int=_random.getrandbits(128), version=4))


def _b64(length: int) -> str:
    return base64.b64encode(_random.randbytes(length)).decode()


def _url_safe(length: int) -> str:
    return base64.urlsafe_b64encode(_random.randbytes(length)).decode().rstrip("=")


_LOGS = """
INFO turn finished in 1520 ms, input_tokens=1523 output_tokens=88 max_tokens: 4096
usage: cache_read_input_tokens=12 token_count=15 tokens: 2048 total_tokens=2136
password reset for user bob
Password: required
password: incorrect
Login failed for user 'sa'. Reason: Password did not match that for the login provided.
token expired at 2024-01-01T00:00:00Z
token: expired
token refresh scheduled in 3600s for session 42
2026-11-21T00:26:33.120Z INFO serving address=http://127.0.0.1:8000 demo=true
2026-11-21 00:26:33,120 [worker-3] WARN retrying request attempt=2 of 5 delay=0.25s
GET /api/tokens?limit=10 200 12ms
POST /login 302 Location: /home?next=%2Fdashboard
GET /search?key=name&order=asc 200
GET /items?key=primary_key_of_the_table&page=2 200
cache_key=user:1234:profile primary key: user_id
cache miss for key=session:9f86d081 ttl=300
secret santa: party at 18:00
the secret of success: start early
key: value
keys: 12, values: 13
Secret/my-app-config created
secret "db-credentials" not found in namespace "default"
configmap/credentials-helper unchanged
basic authentication is required, bearer token missing
Authorization: required
authorization: Bearer
Authorization header missing
WWW-Authenticate: Bearer realm="candor"
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization: Bearer ${ANTHROPIC_AUTH_TOKEN}
Authorization: Bearer {token}
authorization: granted for role=admin
Cookie: enabled
cookies: 3 set, 2 read
Set-Cookie header too long
ssh://git@github.com/org/repo.git http://localhost:8080/path@2x.png
git clone git@github.com:org/repo.git
https://firstname.lastname@example.com/
ftp://anonymous@ftp.example.com/pub
scheme://user:password@proxy.example
postgres://localhost:5432/candor?sslmode=disable
amqp://mq.example:5672/%2f
connect to redis://cache.example:6379/0 ok
time 12:34:56 file a.py:10 passed=12 failed=3 bypass=enabled
pass: 12 fail: 3 skip: 0
passed: true, passes=4
compass: north, bypass: none
Enter passphrase (empty for no passphrase):
Enter password:
password for bob@example.com:
sudo: a password is required
Permission denied (publickey,password).
use --password to set one
usage: tool [--password PASSWORD] [--token TOKEN] file
  --password TEXT  the password to use
  --token-limit 4096 --max-tokens 100
docker run -p 8080:80 -u 1000:1000 --rm nginx
docker run --user app:app image
curl -sS https://example.com -o out.html
curl -X POST -H 'Content-Type: application/json' http://127.0.0.1:8000/chat
ssh -p 2222 host.example
mkdir -p build/output
cp -p a.txt b.txt
mysql -u root -p
mysqldump --single-transaction db > dump.sql
scp -P 22 file host:/tmp
tar -xpf archive.tar.gz
ps -p 1234 -o rss
toolu_01A09q90qw90lq917835lq9 msg_01XFDUDYJgAACzvnptvVoYEL req_011CSHoEeqs5C35K2UUqR7Fy
cnv_mjuamc6hzdmxulss5irqtd6w4q trn_3ziv4wei6w67q6six5qpa5dc7e apr_bzkguyfeuzmpeqyctlu3mokgqm
session_id=01J9ZQ3W8E6V7YB4T2KXNCMD5F
password=${DB_PASSWORD} token=<redacted> secret=**** api_key=os.getenv('X')
password: ******** token: ...
DB_PASSWORD=changeme
API_KEY=your-api-key
API_KEY=YOUR_API_KEY
token=xxxxxxxxxxxx
export TOKEN=$(cat /run/secrets/token)
password_file: /run/secrets/db_password
secretKeyRef: {name: db, key: password}
secret: "my-app-secret-name"
"key": "value", "token": null, "password": ""
"password": "string?", "secret": "string"
a line about -----BEGIN PRIVATE KEY----- blocks.
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
sk-learn is scikit-learn; task-management-system-v2-release-2024
disk-usage-by-directory-2024-11-20.txt risk-assessment-2024-final-v2
npm_config_registry npm_lifecycle_event npm_package_version
hf_hub_download hf_transfer enabled
pypi-server runs on port 8080
SG.1 SG.2 sig=ok
eyJ is how JSON in base64 begins
AKIA is a prefix; ASIA is another
key-value store, key-1234
glpat is the prefix of a token
1//0 is no address
v1.0-beta v1.0-rc1 v1.0-2024-11-20
region us-east-1 en-us zh-cn
fm2_ is a prefix
drwxr-xr-x 21 root root 4096 Nov 21 00:26 .
-rw------- 1 bob bob 1024 Nov 20 10:00 id_ed25519
PASSWD(1) User Commands
root:x:0:0:root:/root:/bin/bash
Nov 21 00:26:33 host sshd[1234]: Accepted publickey for bob from 10.0.0.1 port 50022 ssh2
Nov 21 00:26:33 host sshd[1234]: Failed password for invalid user admin from 10.0.0.1 port 50022 ssh2
[pool] clients=8 warm=1 memory=1.2GiB rss_bytes=1288490188
candor_http_requests_total{method="GET",route="/conversations/{conversation_id}",status="404"} 1.0
ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"
X-Request-ID: req_akic3r4q2wmrm5bxgopaqcr77a
Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
If-None-Match: W/"0815"
Bearer authentication2 is used
cache_key=turn:65c2011bef2c328a shard=3
CACHE_KEY=turn:65c2011bef2c328a9f01b2c3
PUBLIC_KEY=MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE7a
partition_key=/tenantId sort_key=2026-11-21T10:00:00Z
idempotency_key=Zq9vTr7mKp2xLw4n
Sec-WebSocket-Key: Ja5FAmCKB6UObKSnDfjPrA==
object key: 2026/11/Zq9vTr7mKp2xLw4n.parquet
LOG_KEY=request_id
GPG_KEY=A035C8C19219BA821ECEA86B64E628F8D684696D
pass: step2of5done
pass=2 of 5, first_pass=true, second pass: 12345
PASS tests/unit/test_a.py::test_B2c3D4e5F6
boarding_pass: economy
req_gqSmPsSCdLKRcAQX9VjUPC94 acct_1Zq9vTr7mKp2xLw4n file-Zq9vTr7mKp2xLw4nBd6Rt
api-gateway-service-7d9f8b6c5d-x2k4p tls-secret-2026 default-token-x7k2p
npm-cache-token-bucket-implementation-2026 secret_manager_secret_version_access
api_key_rotation_lambda_function_2026_11
key-rotation-2026-11-21T10-00-00 auth-service-5f6d7c8b9-ua530
pat-na1-is-a-prefix re_compiled_pattern_of_the_long_kind1 sl.strip EAA
7z a out.7z in -mx9
zip -r out.zip in
openssl rsa -in a.pem -pubout
keytool -list -keystore a.jks
--- PASS: TestTokenRefresh2 (0.02s)
Authorization: AWS4-HMAC-SHA256 is computed by the program
curl -u "$USER:$PASS" https://x.example
docker run -u 1000:1000 -p 8080:80 nginx
the requirepass directive and the masterauth option of the server
userpass = "a b:c d"
ldapsearch -x -D cn=admin -W -b dc=x
echo done | sudo tee /etc/x
echo $TOKEN | docker login -u x --password-stdin
chatcmpl-Zq9vTr7mKp2xLw4nBd6RtYc8HjFs finished
token_RefreshTokenGrantTypeHandlerForTheSecondClient2
cache-token-0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c
<property name="password"></property>
the -password option and the -token flag are required
"""
_CODE = """
def f(token: str, password: str | None = None) -> bool:
password=self.password, token=request.headers['x']
password=password, api_key=api_key
self.user, self.password = user, password
userid = passwd = acct = ''
def unix_getpass(prompt='Password: ', stream=None):
username, password = value
token = next(tokens)
token = tokens[0]
token = self._next_token()
token: Token = Token.EOF
token: identifier_of_the_long_kind
secret: bytes = secrets.token_bytes(32)
private_key: Ed25519PrivateKey | None = None
const token = await getToken();
let mapToken = mapToken2;
const browserToken = browser.launchOptions?.channel ?? browser?.browserName;
if (password === confirmPassword) return true;
password: z.string().min(8),
"password": t_string,
"password": {"type": "string", "minLength": 8},
password: String,
secret: process.env.SECRET,
apiKey: process.env["API_KEY"],
api_key=os.environ["OPENAI_API_KEY"]
credentials: "include",
credentials: 'same-origin',
auth_key = settings.auth_key
access_key: Optional[str] = None
SECRET_KEY = env("DJANGO_SECRET_KEY")
password = models.CharField(max_length=128)
password_hash = bcrypt.hashpw(password, salt)
assert token.kind == TokenKind.NAME
for token in tokens: print(token)
while (token != EOF) token = lexer.next();
token_type = "bearer"
"token_type": "bearer",
class TokenGuard: pass
from gateway.http.tokens import Tokens, load_tokens
  File "/app/gateway/http/tokens.py", line 61, in load_tokens
    raise StartError(f"The tokens file {path} cannot be read: {exc.strerror}.") from exc
KeyError: 'password'
ValueError: token: unexpected end
TypeError: f() missing 1 required keyword-only argument: 'password'
pydantic_core.ValidationError: 1 validation error for Settings
  password: Field required [type=missing, input_value={}, input_type=dict]
java.lang.IllegalStateException: token == null
	at com.example.auth.TokenService.refresh(TokenService.java:42)
	at org.apache.http.impl.client.InternalHttpClient.doExecute(InternalHttpClient.java:185)
goroutine 1 [running]: main.main() /tmp/x.go:8 +0x1d
panic: runtime error: index out of range [3] with length 3
#0  0x00007f0000d508a8 in __libc_start_main () from /lib/x86_64-linux-gnu/libc.so.6
thread 'main' panicked at src/main.rs:4:5: called `Option::unwrap()` on a `None` value
SELECT id, password_hash FROM users WHERE token IS NOT NULL;
ALTER USER bob WITH PASSWORD NULL;
CREATE TABLE tokens (id TEXT PRIMARY KEY, secret BYTEA);
<input type="password" name="password" placeholder="Password">
<label for="password">Password:</label>
<xs:element name="password" type="xs:string"/>
<password></password>
<token/>
.password { color: red }
#token: 3px solid
RUN --mount=type=secret,id=npmrc npm ci
uses: actions/checkout@v4 with token: ${{ secrets.GITHUB_TOKEN }}
password: !vault |
password: "{{ vault_db_password }}"
password: <%= ENV["DB_PASSWORD"] %>
password = var.db_password
  --password-stdin < /run/secrets/registry
"password": "required|min:8|confirmed",
"password": "password must be at least 8 characters",
"password": "The password has 12 characters2",
getattr(user, "password", "default")
password: str = ""
token: str = "none"
key: string = "createdAt2"
getSecret("prodDatabase2")
fields = ("user", "password", "address2b")
os.environ["DB_PASSWORD"] = settings.password
config["password"] = read_password()
{"name": "password", "value": "required"}
{"name": "password", "type": "string", "value": null}
<label id="password" value="Password"/>
<add key="TokenLifetime" value="3600"/>
ALTER ROLE bob PASSWORD NULL;
define('PASSWORD_DEFAULT', '2y');
"""
_PROSE = """
The password is checked against the policy, then hashed.
Please choose a password: it needs at least twelve characters.
The token is refreshed every hour; the secret is rotated monthly.
Tokens are counted, not words: 200 000 characters are about 50 000 tokens.
What is the key to a good design? Keep it simple.
Her secret: patience, practice and a good teacher.
A bearer token is whatever the bearer carries.
The basic plan includes 3 projects and 10 users.
Forgot your password? Reset it here.
I forgot my password, what can I do now?
The API key is read from the environment, never from a file.
Put your API key into ANTHROPIC_API_KEY and start the server again.
Credentials: none are needed for the demo model.
Authorization is the question of what somebody may do.
You said that the token limit is 4096, which is too small for this document.
A cookie is a small file. Cookie: a small biscuit.
The author's key idea: memory is a cache.
Ask bob: password resets are his job.
No secrets here: just text, numbers like 1234567890 and dates like 2026-11-21.
密码错误，请重试
请输入密码：
令牌已过期，关键字：memory
密码：不能为空，密码是必填项
密码至少八位，口令每三个月更换一次
密码是什么？
密码是否正确？请再试一次。
口令为空时拒绝登录
令牌是一次性的，密钥由管理员保管
密钥：见环境变量说明
密钥轮换完成，凭证已更新
授权码已发送到您的邮箱，请在十分钟内填写
“密码”两个字不要写进日志
请不要把密码告诉任何人
忘记密码？点击此处重置。
他说：“密码错误”，然后离开了
私钥文件的权限必须是 0600
凭证：无
令牌数量：2048，密码长度：12
访问令牌将于 2026-11-21 过期
这是工作区里的文件，没有任何秘密。
会话已结束，共用时 1520 毫秒，输入 1523 个词元
用户名或密码不正确，还可以尝试 3 次
数据库密码从环境变量读取
金鑰輪換週期：90天
憑證已失效，請重新登入
權杖已過期
授權碼模式（authorization code）
他说保密 码头在哪里
激活码已发送
密碼爲必填項
密 码：必填
密码给你发邮件了
密码如下图所示
提取码：无
关键是保持简单，钥匙在门口
"""


def _locks() -> list[str]:
    lines = []
    for at in range(20):
        lines += [
            f'      "integrity": "sha512-{_b64(64)}",',
            f"    --hash=sha256:{_hex(64)} \\",
            f'      "resolved": "https://registry.example/p{at}/-/p{at}-1.{at}.0.tgz#{_hex(40)}",',
            f'checksum = "{_hex(64)}"',
            f"github.com/x/y{at} v1.{at}.0 h1:{_b64(32)}",
        ]
    return lines


def _ids() -> list[str]:
    lines = []
    for at in range(20):
        lines += [
            f"request {_uuid()} finished in {at} ms",
            f"commit {_hex(40)}",
            f"{_hex(7)} Mend the thing, number {at}",
            f"index {_hex(7)}..{_hex(7)} 100644",
            f'{{"id":"{_uuid()}","hash":"{_hex(64)}","n":{at}}}',
            f"sha256:{_hex(64)} image{at}:latest",
            f"/static/main.{_hex(8)}.js 200 {at}",
            f"etag={_hex(32)} size={at}",
            f"package/part{at}.py,sha256=Ab-{_url_safe(30)},{at}",
            f"package/more{at}.py,sha256=part-{_url_safe(28)},{at}",
            f'W/"e3df{at}-{_url_safe(27)}"',
            f"nonce Q{at}-{_url_safe(33)}",
            f"arn:aws:s3:::bucket-{at}/{_uuid()}.parquet",
            f"data:image/png;base64,iVBORw0KGgo{_b64(60)}",
        ]
    return lines


LINES = [
    *(one for part in (_LOGS, _CODE, _PROSE) for one in part.splitlines() if one),
    *_locks(),
    *_ids(),
]
