"""Root causes told twice, and root causes that only look alike.

Each pair stands under one symptom and is found out in the same words, which is the hardest for both: a
pair of the first table is one cause, a pair of `LOOK_ALIKE` and `NEGATED` is two, and a pair of
`ELSEWHERE` is one cause at two places.
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
    ("导出任务连接泄漏导致连接池耗尽", "连接池被耗尽,原因是导出作业连接泄漏"),
    ("连接池上限配置过小", "连接池最大连接数配置太小"),
    ("证书过期", "TLS 证书已过期"),
    ("容器日志未轮转写满磁盘", "磁盘被未轮转的容器日志占满"),
    ("主从延迟", "主从复制延迟"),
    ("Redis 内存达到 maxmemory 淘汰会话", "Redis 达到 maxmemory,会话被淘汰"),
    ("堆外内存泄漏", "直接内存泄漏"),
    ("NAT 网关 SNAT 端口耗尽", "NAT 网关的 SNAT 端口被用光"),
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
)  # fmt: skip

NEGATED = (
    ("The retry policy was applied", "The retry policy was not applied"),
    ("The cache was invalidated too early", "The cache was never invalidated"),
    ("缓存已失效", "缓存未失效"),
)

ELSEWHERE = (
    ("Missing index on orders.user_id", "Missing index on payments.created_at"),
    ("A connection leak in settlement-job", "A connection leak in audit-writer since v3.19.1"),
    (
        "In refund-service: parallel workers overwrite each other",
        "parallel workers overwrite each other",
    ),
    ("LimitNOFILE is not set on bi-dashboard", "LimitNOFILE is not set on ip-10-2-48"),
    ("导出接口未分页，把 ledger_entry 全部读进内存", "导出接口未分页，把 stock_flow 全部读进内存"),
)
