"""Root causes told twice, and root causes that only look alike.

Each pair stands under one symptom and is found out in the same words, which is the hardest for both: a
pair of the first table is one cause, as is one of `TOLD_OTHERWISE`, though too freely told to make one
case; a pair of `LOOK_ALIKE`, `CODES`, `OPPOSITE`, `COLUMNS`, `REVERSED` and `NEGATED` is two, one of `ELSEWHERE` is one
cause at two places, and one of `BESIDE` may be near, but what was done about one does not mend the other.
"""

SAME = (
    ("A connection leak in the export job exhausted the connection pool",
     "The connection pool was exhausted by a connection leak in the export job"),
    ("A connection leak in the export job exhausted the connection pool",
     "Connection leak in ExportJob: connections are never returned to the pool, which ran out"),
    ("Connection pool too small: maximumPoolSize=10", "Connection pool too small (maximumPoolSize was 20)"),
    ("The TLS certificate expired on 2026-03-01", "The TLS cert had expired on 2026-05-07T10:00:00Z"),
    ("Disk full because container logs were not rotated", "Disk filled up with unrotated container logs"),
    ("JVM heap larger than the container memory limit", "-Xmx exceeds the pod's memory limit"),
    ("Redis reached maxmemory and evicted the sessions", "Sessions were evicted because Redis hit maxmemory"),
    ("A poison message was retried forever", "Endless retries of a poison message"),
    ("10.2.3.4 ran out of inodes", "Inodes exhausted on host 10.9.8.7"),
    ("Leaked sockets exhausted the file descriptors", "File descriptors exhausted by leaked sockets"),
    ("NAT gateway ran out of SNAT ports", "SNAT ports of the NAT gateway exhausted"),
    ("Data skew on customer id 4711", "Data skew on customer id 99"),
    ("The conntrack table is too small for the number of short connections of the gateway",
     "nf_conntrack table too small for the gateway's many short connections"),
    ("导出任务连接泄漏导致连接池耗尽", "连接池被耗尽,原因是导出作业连接泄漏"),
    ("连接池上限配置过小", "连接池最大连接数配置太小"),
    ("证书过期", "TLS 证书已过期"),
    ("容器日志未轮转写满磁盘", "磁盘被未轮转的容器日志占满"),
    ("主从延迟", "主从复制延迟"),
    ("Redis 内存达到 maxmemory 淘汰会话", "Redis 达到 maxmemory,会话被淘汰"),
    ("堆外内存泄漏", "直接内存泄漏"),
    ("NAT 网关 SNAT 端口耗尽", "NAT 网关的 SNAT 端口被用光"),
)  # fmt: skip

TOLD_OTHERWISE = (
    ("cert-manager could not renew the certificate", "The renewal of the certificate by cert-manager failed"),
    ("证书没有续期", "证书续期失败"),
    ("No log rotation for the containers", "Container logs are not rotated"),
    ("Locks are taken in the order of the request instead of by id",
     "Locks are taken in the order of the request, not by id"),
    ("续期任务没有 DNS 权限，证书没有自动续期而过期", "证书过期，因为自动续期任务缺少 DNS 权限"),
    ("消费者没有提交位点", "位点未提交"),
    ("The pods started before the migration had run", "The migration had not run when the pods started"),
)  # fmt: skip

IN_TWO_LANGUAGES = (
    ("Replication lag on the read replica", "从库主从延迟"),
    ("The certificate expired", "证书过期"),
    ("A connection leak in the export job exhausted the pool", "导出任务连接泄漏导致连接池耗尽"),
    ("Container logs were not rotated and filled the disk", "容器日志未轮转,写满磁盘"),
    ("The certificate does not cover the new hostname", "证书不包含新域名"),
    ("Redis evicted sessions at maxmemory", "Redis maxmemory 淘汰会话"),
    ("CFS throttling because the CPU limit is too small", "CPU limit 过低,容器被 CFS 限流"),
    ("A poison message is retried forever", "毒消息被无限重试"),
)

LOOK_ALIKE = (
    ("A connection leak in the export job exhausted the connection pool",
     "A slow query in the export job exhausted the connection pool"),
    ("Connection pool exhausted because connections leaked",
     "Connection pool exhausted because the pool size was too small"),
    ("Connection pool exhausted because of a connection leak",
     "Connection pool exhausted because of long transactions"),
    ("The thread pool was exhausted by slow downstream calls", "The thread pool was exhausted by a deadlock"),
    ("Timeout of the client was too short", "Timeout of the client was too long"),
    ("Redis was slow because of a big key", "Redis was slow because of a KEYS command"),
    ("The cache TTL was too long", "The cache was not invalidated on update"),
    ("OOMKilled because of a heap leak in the session cache",
     "OOMKilled because of an off-heap leak in the Netty buffers"),
    ("Liveness probe timeout too short", "Readiness probe path wrong"),
    ("Disk full because logs were not rotated", "Disk full because old images were not removed"),
    ("Inodes exhausted by small session files", "Disk exhausted by log files"),
    ("The certificate expired", "The certificate does not match the hostname"),
    ("Consumer lag because a poison message was retried", "Consumer lag because the database was slow"),
    ("LDAP password of the service account expired", "LDAP server certificate expired"),
    ("A required environment variable was missing", "A required secret was missing"),
    ("Full GC because of a memory leak in the cache", "Full GC because the heap was too small"),
    ("Messages were processed twice because offsets were not committed",
     "Messages were lost because offsets were committed too early"),
    ("Sockets leaked in the HTTP client", "Threads leaked in the HTTP client"),
    ("Node pool is tainted", "Node pool is at maximum size"),
    ("SNAT ports exhausted", "Ephemeral ports exhausted by TIME_WAIT"),
    ("The buffer pool was cold after a restart", "The buffer pool was too small"),
    ("导出任务连接泄漏导致连接池耗尽", "导出任务慢查询导致连接池耗尽"),
    ("连接池耗尽,原因是连接泄漏", "连接池耗尽,原因是最大连接数配置过小"),
    ("线程池被下游慢调用占满", "线程池因死锁全部阻塞"),
    ("订单表缺少索引导致慢查询", "订单表锁等待导致慢查询"),
    ("堆内存泄漏导致 OOM", "堆外内存泄漏导致 OOM"),
    ("存活探针超时时间过短", "就绪探针路径配置错误"),
    ("日志未轮转导致磁盘写满", "镜像未清理导致磁盘写满"),
    ("inode 耗尽", "磁盘空间耗尽"),
    ("证书过期", "证书域名不匹配"),
    ("分区数过少导致消费积压", "频繁重平衡导致消费积压"),
    ("镜像拉取失败,仓库凭证过期", "镜像拉取失败,标签不存在"),
    ("重复消费导致重复扣款", "并发更新导致重复扣款"),
    ("支付请求重试没有幂等", "消息重复投递"),
    ("节点有污点", "节点资源不足"),
    ("The thread pool of the API is too small", "The database connection pool of the API is too small"),
    ("线程池配置过小", "数据库连接池配置过小"),
)  # fmt: skip

CODES = (
    ("The batch update failed with ORA-00060", "The batch update failed with ORA-01555"),
    ("批量更新报 ORA-00060", "批量更新报 ORA-01555"),
    ("The container stopped with exit code 137", "The container stopped with exit code 139"),
    ("容器退出码 137", "容器退出码 139"),
    ("The writer failed with errno 28", "The writer failed with errno 24"),
    ("写入失败，errno 28", "写入失败，errno 24"),
    ("写入失败，错误码 28", "写入失败，错误码 24"),
    ("The upstream answered HTTP 401", "The upstream answered HTTP 503"),
    ("上游返回 HTTP 401", "上游返回 HTTP 503"),
    ("上游返回状态码 401", "上游返回状态码：503"),
    ("The payment transaction failed with MySQL error 1213", "The payment transaction failed with MySQL error 1040"),
    ("支付事务失败，MySQL 错误 1213", "支付事务失败，MySQL 错误 1040"),
    ("The host was compromised through CVE-2021-44228", "The host was compromised through CVE-2022-22965"),
    ("主机通过 CVE-2021-44228 被入侵", "主机通过 CVE-2022-22965 被入侵"),
    ("Process killed by signal 9", "Process killed by signal 11"),
    ("进程收到信号 9 退出", "进程收到信号 11 退出"),
    ("Windows update failed with 0x80070005", "Windows update failed with 0x80070070"),
    ("The statement failed with SQLSTATE 40001", "The statement failed with SQLSTATE 23505"),
    ("The device reported E10234", "The device reported E10877"),
)  # fmt: skip

OPPOSITE = (
    ("The schema migration ran before the deploy", "The schema migration ran after the deploy"),
    ("迁移脚本在发布之前执行", "迁移脚本在发布之后执行"),
    ("Prefetch of the consumer was increased", "Prefetch of the consumer was decreased"),
    ("消费者 prefetch 被增大", "消费者 prefetch 被减小"),
    ("The retry switch was enabled", "The retry switch was disabled"),
    ("重试功能被打开", "重试功能被关闭"),
)

COLUMNS = (
    ("Table settle has no index on merchant_no", "Table settle has no index on created_at"),
    ("settle 表 merchant_no 字段缺少索引", "settle 表 create_time 字段缺少索引"),
    ("Missing index on orders.user_id", "Missing index on orders.created_at"),
)

REVERSED = (
    ("The cache is updated before the database", "The database is updated before the cache"),
    ("先更新缓存再更新数据库", "先更新数据库再更新缓存"),
    ("先删缓存后更新数据库", "先更新数据库后删缓存"),
    ("The keepalive timeout of the upstream is shorter than that of the gateway",
     "The keepalive timeout of the gateway is shorter than that of the upstream"),
    ("客户端超时时间小于服务端", "服务端超时时间小于客户端"),
    ("连接池空闲时间大于负载均衡空闲时间", "负载均衡空闲时间大于连接池空闲时间"),
    ("The consumer is faster than the producer", "The producer is faster than the consumer"),
)  # fmt: skip

BESIDE = (
    ("The disk of the primary is full", "The disk of the primary is slow"),
    ("数据库磁盘写满", "数据库磁盘太慢"),
    ("The write lock on the orders table is held too long", "The read lock on the orders table is held too long"),
    ("The write endpoint of the orders database is wrong in the config",
     "The read endpoint of the orders database is wrong in the config"),
    ("CPU limit too low for the pod", "CPU request too low for the pod"),
    ("The client does not trust the certificate of the server",
     "The server does not trust the certificate of the client"),
    ("The primary lags behind the replica", "The replica lags behind the primary"),
    ("The service orders waits for payments", "The service payments waits for orders"),
    ("arm image on an x86 node", "x86 image on an arm node"),
)  # fmt: skip

NEGATED = (
    ("The agent lost permission on the DNS zone, so the certificate was not renewed",
     "The agent did not lose permission on the DNS zone; it was renewed but the gateway was not reloaded"),
    ("丢失了 DNS 区域的权限，证书未续期", "没有丢失 DNS 区域的权限，证书已续期但网关没有重新加载"),
    ("缺少 user_id 索引", "索引存在但类型不一致，隐式转换"),
    ("orders 表缺少 user_id 索引导致全表扫描", "orders 表 user_id 索引存在但类型不一致，隐式转换导致全表扫描"),
    ("The index on user_id is missing", "The index on user_id exists but its type differs, an implicit cast"),
    ("There was no index on user_id", "The index on user_id exists but the optimizer did not use it"),
    ("The certificate was not renewed by the agent", "The certificate was renewed by the agent, the gateway did not reload it"),
    ("The retry policy was applied", "The retry policy was not applied"),
    ("The cache was invalidated too early", "The cache was never invalidated"),
    ("缓存已失效", "缓存未失效"),
    ("更新商品后缓存失效", "更新商品后未失效缓存"),
    ("Log rotation of the audit log", "The audit log is not rotated"),
    ("审计日志轮转", "审计日志未轮转"),
)  # fmt: skip

ELSEWHERE = (
    ("Missing index on orders.user_id", "Missing index on payments.created_at"),
    ("A connection leak in settlement-job", "A connection leak in audit-writer since v3.19.1"),
    (
        "In refund-service: parallel workers overwrite each other",
        "parallel workers overwrite each other",
    ),
    ("LimitNOFILE is not set on bi-dashboard", "LimitNOFILE is not set on ip-10-2-48"),
    ("导出接口未分页，把 ledger_entry 全部读进内存", "导出接口未分页，把 stock_flow 全部读进内存"),
    ("The firewall blocked port 9092", "The firewall blocked port 2181"),
    ("防火墙未放行端口 9092", "防火墙未放行 2181 端口"),
    ("The agent leaks direct memory on Java 17", "The agent leaks direct memory on Java 11"),
    ("探针在 jdk17 上泄漏堆外内存", "探针在 jdk11 上泄漏堆外内存"),
)
