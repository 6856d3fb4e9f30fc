"""What operators call things, in English and Chinese: many words for one matter.

A line is a matter: its name, then words and phrases for it, the Chinese ones after the semicolon; an
indented line goes on. English words stand in any one form, their endings are taken off before they are
looked up. Only what can be taken for one another without changing what is told stands together;
opposites never do.
"""

from typing import Final

FAULTS: Final = """
leak: never closes, never close, not close, does not close, do not close, did not close, not released, never released, unreleased, not closed, never closed, never returned, not returned,
  not give back, never gave back, left open, forgot to close, forgot to release, fails to release; 泄漏
  泄露 未释放 没有释放 不释放 未关闭 没有关闭 未归还 没有归还 忘记关闭 忘记释放 没有回收 未回收 不归还
expired: expiry, expiration, out of date, past its validity, ran out of validity, no longer valid; 过期
  到期 已过期 超过有效期
missing: lack, absent, not found, no such, does not exist, do not exist, did not exist, forgotten,
  forgot, was not added, not added, not set, not configured, not present, omitted, left out, incomplete,
  not in the, not part of, does not include, not contain, does not contain, does not cover, never added,
  never set, unset; 缺少 缺失 没有配置 未配置 遗漏 不存在 漏掉 未添加 没有加入 未设置 没有设置 不包含
  缺 未加 未包含 不完整 漏配
wrong: incorrect, misconfigured, misconfiguration, mistaken, bad, faulty, invalid, typo; 错误 不正确
  配错 误配 配置错误 写错 填错 有误
mismatch: not match, does not match, do not match, did not match, incompatible, incompatibility,
  inconsistent, differs from; 不匹配 不一致 不兼容
small: too little, little, too low, too small, too few, too short, too tight, undersized, insufficient,
  not enough, lower, reduce, decrease, shrunk, tiny, tight; 过小 太小 过低 太低 过少 太少 偏小 调小 调低 过短 太短
  不足 不够 降低 减少 减小 缩小 下调 改小
large: too high, too big, too large, too many, too long, oversized, huge, raise, increase, excessive,
  bigger, larger, higher, exceed, above, over the limit, enlarge; 过大 太大 过高 太高
  过多 太多 偏大 调大 调高 超过 超出 超限 增大 加大 提高 上调 改大 过长 太长
unbounded: no limit, without limit, without a limit, without bound, no bound, no eviction, never evict,
  never evicts, no upper bound, unlimited, not bounded; 无上限 没有上限 无限制 无界 没有限制 没有淘汰
  不淘汰 未限制 没有淘汰策略
disabled: switched off, turned off, is off, are off, was off, were off, not enabled, not running, not started, stop; 停用 禁用 未启用 未开启
  没有开启 被关闭 停止 未运行 没有启用 关闭
enabled: switched on, turned on, activated; 开启 启用 打开
deleted: remove, erase, purge; 删除 误删 移除 清除 删掉 删
duplicate: twice, doubled; 重复 两次
stale: outdated, old value, old version, obsolete; 陈旧 旧值 旧数据 老版本 旧版本 旧的
forever: endless, infinite, again and again, without end, indefinitely, never stops, spins; 无限 死循环
  不断 无休止 空转 反复
rejected: refuse, deny, forbidden, not allowed; 拒绝 禁止 阻断 拦截 被拒
corrupt: corruption, damaged; 损坏 破损
overflow: out of range; 溢出 越界
attack: ddos, malware, miner, mining, crypto miner, compromised, break-in, intrusion, cryptomining; 攻击
  入侵 挖矿 木马
deadlock: deadlocked, wait on each other; 死锁 互相等待
race: race condition, concurrently, concurrent, concurrency, not thread safe, data race; 竞态 并发竞争
  竞争 并发 线程不安全 竞态条件
backtracking: backtracked, backtrack; 回溯
zombie: defunct, not reaped, without reaping; 僵尸 僵尸进程 不回收子进程
clockskew: clock skew, clock drift, clock drifted, clocks drifted, clocks drifted apart, time drift,
  clock skewed, system time was wrong, clock is ahead, clock is behind; 时钟漂移 时间偏差 时钟偏差
  时钟不一致 时间不同步 时间超前
poison: poison message, malformed, undecodable, cannot be decoded, deserialize, deserialization,
  unparsable; 毒消息 反序列化 格式错误 脏数据
rebalance: rebalancing, kicked out of the group; 重平衡 再均衡 踢出消费组
hotkey: hot key, hot keys, hot spot, hotspot, hot partition, skewed key; 热点 热键 热点键
bigkey: big key, big keys, large key, huge key; 大键 大对象
nullpointer: null pointer, npe, nullpointerexception, nonetype; 空指针
throttle: cfs, rate limit, rate limited, rate limiting; 限流 节流
lag: replication lag, replication delay, lagged behind, lags behind, lag behind, was behind, delayed
  replica; 主从延迟 复制延迟 同步延迟 主从复制延迟 主从同步延迟
swap: swapping; 交换分区
hardware: bad sector, raid, ecc; 硬件 坏道 坏盘
scan: full scan, full table scan, table scan, scanned the whole table, scans the whole table; 全表扫描
  扫全表
stampede: thundering herd, cache stampede, cache avalanche, cache breakdown, expired at the same time; 雪崩 缓存雪崩 击穿 缓存击穿 惊群
penetration: cache penetration, nonexistent keys; 穿透 缓存穿透
splitbrain: split brain; 脑裂
failover: fail over, switchover; 主备切换 故障切换 倒换 主从切换
recursion: recursive, stackoverflow, stack overflow; 递归 栈溢出
skew: skewed, imbalance, unbalanced, uneven; 倾斜 数据倾斜 不均 不均衡 分布不均
fragmentation: fragmented; 碎片 碎片化
bloat: bloated, dead tuples, vacuum; 膨胀
packetloss: packet loss, lost packets, retransmission, retransmit; 网络丢包 重传
flapping: flap; 抖动 闪断
rounding: precision, float, floating point; 精度 四舍五入 舍入 浮点
leapsecond: leap second; 闰秒
readonly: read only; 只读
unassigned: not assigned; 未分配
redelivery: redeliver, delivered twice, delivered again; 重新投递 重复投递 再次投递
overlap: overlapping; 重叠 并行执行
uncommitted: not committed, never committed, left uncommitted; 未提交 没有提交 没提交 未能提交
backpressure: back pressure; 反压 背压
power: power outage, power supply; 断电 掉电 电源
cut: severed, unplugged; 挖断 中断 断开
bug: defect, regression; 缺陷 漏洞
idempotency: idempotent, not idempotent; 幂等
n1: n plus, per row query, query per row; 循环查询
unsupported: does not support, not supported, cannot support; 不支持
untrusted: does not trust, not trusted, unknown issuer, self signed; 不信任 不受信任 自签名
collision: collide, clash; 冲突 碰撞 哈希冲突
"""
"""What goes wrong: two that differ are two causes."""

EFFECTS: Final = """
exhausted: exhaustion, run out, ran out, runs out, ran dry, runs dry, used up, use up, deplete,
  saturate, saturation, starve, starvation, all in use, none left; 耗尽 用尽 耗光 用光 枯竭 占满 打满
  被打满 不够用 饱和
full: fill, no space left, out of space, ran out of space; 写满 爆满 已满 空间不足 满了 满
slow: sluggish, took too long, takes too long, took longer, takes longer, latency, delay; 慢 变慢 缓慢
  过慢 耗时 延迟 时延 拖慢 拖住
blocked: stuck, hang, hung, wait, stall, held up; 阻塞 卡住 卡死 挂起 等待 堵塞
dropped: discard, lost, lose; 丢弃 丢失 丢包 被丢
killed: terminate, oomkilled; 被杀 杀死 杀掉 终止 中止
crash: coredump, core dump, segfault, panic; 崩溃 宕机 挂掉
overloaded: overwhelm, too much load; 过载 压垮 负载过高 打垮 压力过大
unreachable: unavailable, down, outage, not reachable, cannot reach, could not reach, offline; 不可用
  不可达 故障 无法访问 下线
spike: surge, burst, peak, flash sale; 突增 激增 高峰 峰值 洪峰 暴涨 秒杀 突发 高峰期
timeout: time out, timed out, timeouts; 超时
oom: out of memory, outofmemory, outofmemoryerror, memory ran out; 内存溢出 内存不足 内存耗尽
"""
"""What comes of it: many causes have them."""

THINGS: Final = """
pool: hikari, hikaricp, druid, c3p0; 池 连接池
threadpool: thread pool, thread pools, worker pool; 线程池
lock: row lock, contention; 锁 行锁 表锁 锁等待 争用
transaction: tx, trx; 事务
query: queries, sql; 查询 语句
index: indexes, indices; 索引
replica: slave, standby, read replica, follower; 从库 副本 备库 只读库
cache: caching; 缓存
invalidate: invalidation, evict the key; 失效
eviction: evict, lru; 淘汰
heap: xmx, heap size; 堆 堆内存 堆大小
offheap: off-heap, direct memory, direct buffer, direct buffers, native memory, bytebuf; 堆外 堆外内存
  直接内存 直接缓冲区
metaspace: permgen, class metadata; 元空间 永久代
gc: garbage collection, garbage collector, full gc, garbage collections, full garbage collections;
  垃圾回收 垃圾收集
disk: filesystem, file system; 磁盘 硬盘 文件系统 盘
inode: inodes; 索引节点
descriptor: file descriptor, file descriptors, open files, ulimit, nofile, fd, too many open files; 句柄
  文件句柄 文件描述符
log: logging, logfile; 日志
rotation: logrotate, rotate, rotated; 轮转 切割
certificate: cert, certs, x509; 证书
renewal: renew; 续期 更新证书 续签
chain: certificate chain; 证书链
intermediate: intermediate ca, intermediate certificate; 中间证书
hostname: domain, host name, san, subject alternative name, subject alternative names, domain name; 域名
  主机名
dns: coredns, kube-dns, resolver, name resolution, nameserver; 解析 域名解析 解析器
firewall: security group, iptables, network policy, networkpolicy, acl; 防火墙 安全组 网络策略
conntrack: nf_conntrack, conntrack table; 连接跟踪
mtu: packet size; 分片大小
bandwidth: nic saturated; 带宽
retry: retries, retried; 重试
backoff: back off, without delay; 退避 没有间隔
queue: backlog; 队列 积压 堆积
partition: shard; 分区 分片
leader: leader election, election; 选主 选举
broker: kafka, rocketmq, rabbitmq; 消息队列
envvar: environment variable, env var, environment variables; 环境变量
image: docker image, container image; 镜像
architecture: exec format; 架构
arm64: arm, aarch64
amd64: x86, x64, x86 64
liveness: liveness probe; 存活探针
readiness: readiness probe; 就绪探针
probe: health check, healthcheck; 探针 健康检查
schema: ddl, flyway, liquibase, migration, migrate; 表结构 迁移 库表变更
permission: privilege, grant, rbac, iam; 权限 授权
password: credential, secret; 密码 凭据 凭证 口令
signingkey: signing key, jwks, public key, key rotation; 签名密钥 密钥 密钥轮换
token: jwt; 令牌
session: sessions; 会话
affinity: session affinity, sticky session, sticky sessions, sticky; 会话保持 亲和 会话亲和 粘性
ntp: chronyd, chrony, time sync; 时间同步 对时
regex: regular expression, regular expressions; 正则 正则表达式
pid: process id, process ids; 进程号
quota: resourcequota, resource quota; 配额 资源配额
job: task, batch, cron, cronjob, nightly; 任务 作业 批处理 定时 定时任务 夜间 跑批
export: exporter; 导出
report: reporting; 报表
paging: pagination, paged; 分页
downstream: third party; 下游 第三方 外部服务
upstream: forwarder; 上游
loadbalancer: load balancer, lb, slb, elb, vip; 负载均衡 负载均衡器
cdn: edge cache; 内容分发
header: headers, cache-control; 响应头 请求头
ttl: time to live; 存活时间 有效期 过期时间
encoding: charset, character set, utf-8, utf8, collation; 字符集 编码
timezone: time zone, time zones; 时区
serialization: serialize, serializer; 序列化
flag: feature flag, toggle, feature switch; 开关 特性开关
autoscaling: hpa, autoscaler, auto scaling; 扩容 弹性伸缩 自动扩缩容
kernel: sysctl; 内核
volume: pvc, persistent volume, mount, nfs; 挂载 存储卷
backup: snapshot; 备份 快照
order: orders; 订单
payment: payments, pay; 支付
account: accounts; 账户 账号
inventory: stock; 库存
audit: audits; 审计
cpu: processor; 处理器
compaction: compact; 压缩合并
checkpoint: savepoint; 检查点
dependency: library, package, jar; 依赖 依赖包
compression: compress, gzip; 压缩
socket: sockets, close_wait; 套接字
port: ports; 端口
ephemeral: ephemeral port, ephemeral ports, time_wait; 临时端口
snat: snat ports, nat gateway, nat; 地址转换
keepalive: keep alive, idle timeout; 长连接 空闲超时
handshake: hand shake; 握手
cipher: ciphers, tls version; 加密套件
offset: offsets; 位点 消费位点
ack: acknowledge, acknowledgement; 确认
visibility: visibility timeout; 可见性
taint: toleration, tolerate; 污点 容忍
zone: availability zone; 可用区 机房
watermark: flood stage; 水位 水位线
mapping: field mapping; 字段类型 映射
refresh: reload; 刷新
alias: aliases; 别名
quorum: majority; 多数派 法定人数
persistence: persist, aof, rdb; 持久化
optimizer: execution plan, query plan, explain plan; 执行计划 优化器
statistics: table statistics; 统计信息
bufferpool: buffer pool; 缓冲池
binlog: write ahead log, wal, redo log; 日志同步 预写日志
undo: undo log; 回滚段
foreignkey: foreign key; 外键
uniquekey: unique key, unique constraint, unique index, duplicate key, primary key; 唯一键 唯一索引 主键
breaker: circuit breaker; 熔断 熔断器
fallback: degrade, degradation; 降级 兜底
classloader: class loader; 类加载器
safepoint: stop the world, biased lock; 安全点
irq: softirq, interrupt; 软中断 硬中断
syn: backlog overflow, somaxconn, accept queue, listen queue; 半连接 全连接队列
route: routing, routes, bgp; 路由
vpn: tunnel, overlay; 隧道 专线
switch: router; 交换机 路由器
driver: firmware; 驱动 固件
waf: web application firewall; 应用防火墙
cors: cross origin; 跨域
leader_lock: distributed lock; 分布式锁
registry: image registry, docker registry, harbor; 镜像仓库
discovery: service discovery, service registry, eureka, nacos, consul; 注册中心 服务发现
configcenter: config center, apollo; 配置中心
etcd: apiserver, api server; 控制面
heartbeat: heart beat; 心跳
shutdown: graceful shutdown, sigterm, prestop, drain; 优雅下线 优雅停机
warmup: warm up, cold start, cold cache; 冷启动 未预热
jit: deoptimization; 即时编译
rpc: dubbo, grpc, thrift; 远程调用
protobuf: proto; 协议
bucket: s3, oss, object storage; 存储桶 对象存储
debuglog: debug logging, debug level, debug log, log level; 日志级别 调试日志
sms: text message; 短信
shuffle: spark; 数据混洗
smallfiles: small files; 小文件
isr: under replicated, in sync replica; 副本同步
cni: calico, flannel, kube proxy, kubeproxy, ipvs; 网络插件
cgroup: cgroups; 控制组
gpu: cuda, vram; 显卡 显存
bom: byte order mark; 字节序标记
dst: summer time, daylight saving; 夏令时
coupon: voucher; 优惠券
tax: taxes; 税费 税
product: products, sku; 商品
frontend: browser, page script; 前端 页面
form: submit; 表单
commit: committing; 提交
proxybuffer: proxy buffer, body size, request body; 请求体
campaign: promotion; 活动 大促
scheduler: scheduling; 调度
recommendation: recommend, ranking; 推荐
cartitem: shopping cart, cart, basket; 购物车
invoice: billing, bill; 账单 计费 发票
refund: refunds; 退款
login: log in, sign in; 登录
search: searching; 搜索 检索
mail: email, smtp; 邮件
upload: uploads; 上传
download: downloads; 下载
"""
"""What it happens to."""

BACKGROUND: Final = """
connection: connect, conn; 连接 链接
thread: worker; 线程 工作线程
memory: ram; 内存
database: db, mysql, postgres, postgresql, oracle, innodb; 数据库 库
network: networking; 网络
packet: packets; 报文 数据包
message: messages; 消息
consumer: consume; 消费者 消费 消费端
producer: producers; 生产者 生产端
config: configuration, setting, configure, parameter, property, configmap, config map, config key,
  config entry, configuration key; 配置 参数 配置项 设置
release: deploy, deployment, rollout, new version, new release; 发布 上线 部署 新版本
version: versions; 版本
startup: start up, initialdelayseconds, initial delay seconds; 启动 预热
limit: maximum, max, cap, upper limit, ceiling, capacity; 上限 限制 最大 容量 限额
container: pod, docker; 容器
namespace: namespaces; 命名空间
node: host, machine, server; 节点 主机 机器 服务器 服务端
process: processes, fork; 进程 子进程
provider: isp, vendor, cloud provider; 运营商 供应商 云厂商
gateway: api gateway, ingress, nginx, proxy; 网关 代理
user: customer; 用户 客户
write: written, insert, update; 写入 插入 写 更新
read: reads, fetch; 读 读取 读请求
traffic: traffics; 流量
change: modify, alter, replace; 变更 修改 改动 调整 更换
size: sizes; 大小
loop: loops; 循环
table: tables; 表
row: rows; 行数
call: calls, invoke, invocation; 调用
client: client-side; 客户端 调用方
jvm: java; 虚拟机
kubernetes: k8s, kubelet; 容器平台
replication: replicate; 主从复制 主从同步 复制
policy: policies; 策略
frequent: constant, back to back, back-to-back, often; 频繁
oldgen: old gen, old generation, tenured; 老年代
count: number; 数量 个数
file: files; 文件
value: values; 值
request: requests; 请求
response: responses; 响应
field: fields, column; 字段 列
instance: instances; 实例
cluster: clusters; 集群
primary: master; 主库 主节点
tls: ssl, https
cookie: samesite
license: licence; 许可证
"""
"""What stands beside: told of one time, left out another."""

BEARINGS: Final = """
before: prior to, ahead of; 之前 以前 前
after: afterwards; 之后 以后 后
scaleup: scale up, scaled up, scale out, scaled out, scaling up, scaling out
scaledown: scale down, scaled down, scale in, scaled in, scaling down, scaling in
failed: fail, failure, unsuccessful; 失败 未成功 没有成功
than: compared to
first: ; 先 首先
present: exist, existing, in place, already there; 存在 已存在 已有
"""
"""Which way it stands to something else: tells nothing alone."""

COMPARISONS_ZH: Final = {
    "large than": "大于 高于 长于 多于",
    "small than": "小于 低于 短于 少于",
    "before": "早于 先于",
    "after": "晚于",
}
"""Chinese words that stand between the two that they compare."""

LIGHT: Final = """
confirm confirmed staging reproduce reproduced environment test postmortem conclusion reason
automatic automatically auto a about actually additional additionally again against all already also am an and another any app
apparently appear application are as at be became because become been beside began begin behind being
between both but by came can cause come completely component contain could did do does done due during
each entire error every execute fault find first for found from fully gave get give go goes
got had happen has have having he heavy held hence her here high his hit hold if in instead into is
issue it its just keep kept last latest lead led let long low made make making many may might module
more most much must new next now occur of off on once one only onto or other our out over own
per problem prod production put quite ran re reach really recent recently result room root run running s
same saw see seen serve service set she short should show shown simply since so some staging still such
suddenly svc system t take that the their them then there therefore these they this those through
thus time to today too took totally turn two under until up upon use used using ve very via
was we well went were what when where which while who whole whom will with within would yesterday yet
you your
"""
"""Words whose coming and going leaves what is told as it is."""

LIGHT_ZH: Final = """
自动 复现 确认 预发 线上 生产 环境 测试 现象 结论 定位 定位到 排查
导致 造成 引起 引发 由于 因为 所以 因此 使得 从而 并且 而且 同时 时候 期间 一直 仍然 已经
进行 出现 发生 发现 问题 原因 根因 根本原因 服务 系统 应用 包含 非常 大量 所有 全部 最近 一次 一个 某个
部分 触发 引入 使用 太 的 了 着 过 在 是 和 与 及 或 并 也 都 就 又 再 很 其 该 此 等 对 将 把 被
从 向 给 让 使 为 于 以 由 之 而 则 但 还 已 中
"""
"""The same in Chinese."""
