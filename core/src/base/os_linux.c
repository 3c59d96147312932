/* The Linux half of the OS layer: calls, and where the kernel keeps what a process may know about its machine. */
#include "oribi/base/os.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#ifdef __GLIBC__
#include <dlfcn.h>
#include <link.h>
#include <execinfo.h>
#include <malloc.h>
#endif
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    BACKLOG_DEFAULT = 4096,    /* net.core.somaxconn since Linux 5.4 */
    SENDFILE_MAX = 0x7ffff000, /* what one call transfers at most, sendfile(2) */
};

int oribi_os_accept(int listen_fd, int *fd, struct sockaddr_storage *peer, socklen_t *peer_len)
{
    for (;;) {
        socklen_t len = sizeof(*peer);
        int got = oribi_os_lift(
            accept4(listen_fd, (struct sockaddr *)peer, peer ? &len : NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (got >= 0) {
            *fd = got;
            if (peer)
                *peer_len = len;
            return 0;
        }
        /* Errors already pending on the new socket are given here; they concern that connection only (accept(2)). */
        switch (errno) {
        case EINTR:
            continue;
        case EPROTO:
        case EPERM: /* a firewall rule forbade it */
        case ENETDOWN:
        case ENETUNREACH:
        case EHOSTDOWN:
        case EHOSTUNREACH:
        case ENOPROTOOPT:
        case ENONET:
            (void)oribi_os_fail();
            return ORIBI_ECLOSED;
        default:
            return oribi_os_fail();
        }
    }
}

int oribi_os_lock_query(int fd, struct flock *lock)
{
    return fcntl(fd, F_OFD_GETLK, lock) < 0 ? oribi_os_fail() : 0;
}

int oribi_os_lock_try(int fd, struct flock *lock)
{
    return fcntl(fd, F_OFD_SETLK, lock) < 0 ? oribi_os_fail() : 0;
}

int oribi_os_open_again(int fd, int *own)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* fits */
    int got = oribi_os_lift(open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (got < 0)
        return oribi_os_fail();
    *own = got;
    return 0;
}

bool oribi_os_can_splice(void)
{
    return true;
}

int oribi_os_small_pipe(int fds[2])
{
    return oribi_os_lift_pair(pipe2(fds, O_CLOEXEC | O_NONBLOCK), fds) < 0 ? oribi_os_fail() : 0;
}

/* What is at most PIPE_BUF long lies on one page of the small pipe, and pages move whole. */
ssize_t oribi_os_splice_now(const int small_pipe[2], int pipe_fd, const char *p, size_t n)
{
    char rest[PIPE_BUF];
    ssize_t kept = oribi_os_write(small_pipe[1], p, n);
    if (kept <= 0)
        return kept;
    ssize_t moved;
    do
        moved = splice(small_pipe[0], NULL, pipe_fd, NULL, (size_t)kept, SPLICE_F_NONBLOCK);
    while (moved < 0 && errno == EINTR);
    int code = moved < 0 ? oribi_os_fail() : 0;
    if (moved < kept)
        (void)!read(small_pipe[0], rest, sizeof(rest)); /* it is empty for the next one */
    return moved < 0 ? code : moved;
}

enum { SORTS = 4, LARGE_BYTES = 100 * 1024 }; /* below M_MMAP_THRESHOLD, mallopt(3) */

void oribi_os_trim_memory(void)
{
#ifdef __GLIBC__
    /* Freed chunks lie in a list that a later large allocation sorts (at most 10,000 at a time), by writing into
     * each of them: here, once, and not in every process that is forked, where each of those writes would copy a
     * page. */
    for (int i = 0; i < SORTS; i++)
        oribi_mem_free(oribi_mem_try_alloc(1, LARGE_BYTES));
    (void)malloc_trim(0); /* says only whether there was anything */
#endif
}

void oribi_os_word_wait(_Atomic uint32_t *word, uint32_t seen, int timeout_ms)
{
    struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0); /* whyever it returns */
}

void oribi_os_word_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0); /* fails for wrong arguments only */
}

int oribi_os_defer_accept(int tcp_fd, int seconds)
{
    return setsockopt(tcp_fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds)) < 0 ? oribi_os_fail() : 0;
}

static int family_of(int fd)
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof(bound);
    return getsockname(fd, (struct sockaddr *)&bound, &len) < 0 ? AF_UNSPEC : bound.ss_family;
}

/* A listener's filter sees TCP headers: it drops those with SYN and without ACK (RFC 9293 3.1), the first of a
 * connection. Accepted sockets keep it, to whom such a packet means nothing. */
void oribi_os_listen_stop_accepting(int listen_fd)
{
    enum { FLAGS_AT = 13, SYN = 0x02, ACK = 0x10 };
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_AT),   BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    if (family_of(listen_fd) == AF_UNIX)
        (void)shutdown(listen_fd, SHUT_RDWR); /* fails only on what is no socket */
    else
        (void)setsockopt(listen_fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                         sizeof(program)); /* then newcomers come in */
}

/* Lines of /proc/net/tcp: " 12: 0100007F:1F90 00000000:0000 03 ...", local and remote address, state in hexadecimal. */
static bool has_half_open(const char *table, unsigned port)
{
    enum { SYN_RECEIVED = 3 };
    char line[256];
    bool found = false;
    FILE *file = fopen(table, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        unsigned local;
        unsigned state;
        found = sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &local, &state) == 2 && state == SYN_RECEIVED &&
                local == port;
    }
    if (file)
        (void)fclose(file); /* was read only */
    return found;
}

static bool is_half_open(int fd)
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof(bound);
    if (getsockname(fd, (struct sockaddr *)&bound, &len) < 0)
        return false;
    if (bound.ss_family == AF_INET6)
        return has_half_open("/proc/net/tcp6", ntohs(((const struct sockaddr_in6 *)&bound)->sin6_port));
    return has_half_open("/proc/net/tcp", ntohs(((const struct sockaddr_in *)&bound)->sin_port));
}

static bool has_queue(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && info.tcpi_state == TCP_LISTEN &&
           info.tcpi_unacked > 0; /* of a listening socket this is the length of its queue */
}

/* A connection joins the queue before it leaves the table of the half-open ones, so the table is read first: read
 * after the queue, it would not show a connection that moved in between, and the end of the listener would reset
 * that client's request. */
static bool tcp_awaits(int fd, bool half_open)
{
    return (half_open && is_half_open(fd)) || has_queue(fd);
}

bool oribi_os_listen_awaits(int listen_fd, bool half_open)
{
    return family_of(listen_fd) != AF_UNIX && tcp_awaits(listen_fd, half_open);
}

void oribi_os_listen_end(int listen_fd)
{
    if (family_of(listen_fd) != AF_UNIX)      /* which does not know its queue's end, and keeps it with the last copy */
        (void)shutdown(listen_fd, SHUT_RDWR); /* fails only on what is no socket */
}

ssize_t oribi_os_send_file(int socket_fd, int in_fd, int64_t *offset, int64_t n)
{
    size_t want = n > SENDFILE_MAX ? SENDFILE_MAX : (size_t)n;
    for (;;) {
        off_t at = *offset;
        ssize_t sent = sendfile(socket_fd, in_fd, &at, want);
        if (sent >= 0) {
            *offset = at;
            return sent;
        }
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

int64_t oribi_os_send_queue(int socket_fd)
{
    int bytes = 0;
    return ioctl(socket_fd, SIOCOUTQ, &bytes) < 0 ? oribi_os_fail() : bytes; /* tcp(7), unix(7) */
}

int oribi__os_open_unnamed(const char *dir)
{
    int fd = oribi_os_lift(
        open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600)); /* not every file system can, open(2) */
    return fd < 0 ? oribi_os_fail() : fd;
}

int oribi_wake_create(struct oribi_wake *wake)
{
    int fd = oribi_os_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (fd < 0)
        return oribi_os_fail();
    wake->read_fd = fd;
    wake->write_fd = fd;
    return 0;
}

/* Runs in signal handlers: errno must be what it was. A full counter (EAGAIN) is already a wake-up. */
void oribi_wake_notify(const struct oribi_wake *wake)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t n;
    do {
        n = write(wake->write_fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
    errno = saved;
}

bool oribi_wake_clear(const struct oribi_wake *wake)
{
    uint64_t count;
    return oribi_os_read(wake->read_fd, &count, sizeof(count)) > 0; /* one read resets the counter, eventfd(2) */
}

void oribi_wake_destroy(struct oribi_wake *wake)
{
    oribi_os_close(wake->read_fd);
    wake->read_fd = -1;
    wake->write_fd = -1;
}

/* CPUs of quota/period microseconds, rounded up; 0 for no quota ("max", -1, unreadable). */
static uint32_t quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    long long cpus = quota / period + (quota % period != 0);
    return cpus > INT_MAX ? 0 : (uint32_t)cpus;
}

/* Version 2 keeps both numbers in one file: "150000 100000" or "max 100000". */
static uint32_t group_quota_v2(const char *dir)
{
    char path[PATH_MAX];
    char line[64];
    long long quota = 0;
    long long period = 0;
    int n = snprintf(path, sizeof(path), "%s/cpu.max", dir);
    if (n < 0 || (size_t)n >= sizeof(path) || oribi_os_read_line(path, line, sizeof(line)) < 0)
        return 0;
    return sscanf(line, "%lld %lld", &quota, &period) == 2 ? quota_cpus(quota, period) : 0;
}

static uint32_t group_quota_v1(const char *dir)
{
    char path[PATH_MAX];
    char quota[32];
    char period[32];
    int n = snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
    if (n < 0 || (size_t)n >= sizeof(path) || oribi_os_read_line(path, quota, sizeof(quota)) < 0)
        return 0;
    n = snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
    if (n < 0 || (size_t)n >= sizeof(path) || oribi_os_read_line(path, period, sizeof(period)) < 0)
        return 0;
    return quota_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* A quota of any ancestor binds too, so the way up to the mount is walked. In a container whose own group is the
 * mount's root the path from /proc may not exist below it: those steps find nothing, and the root still counts. */
static uint32_t group_quota(const char *mount, const char *group, uint32_t (*read_quota)(const char *))
{
    char dir[PATH_MAX];
    uint32_t least = 0;
    size_t mount_len = strlen(mount);
    int n = snprintf(dir, sizeof(dir), "%s%s", mount, group);
    if (n < 0 || (size_t)n >= sizeof(dir))
        return 0;
    for (;;) {
        uint32_t cpus = read_quota(dir);
        if (cpus && (!least || cpus < least))
            least = cpus;
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < mount_len)
            return least;
        *slash = '\0';
    }
}

/* Is `name` one of the comma-separated controllers? */
static bool has_controller(const char *list, size_t n, const char *name)
{
    size_t name_len = strlen(name);
    for (const char *end = list + n; list < end;) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        size_t len = (size_t)((comma ? comma : end) - list);
        if (len == name_len && memcmp(list, name, len) == 0)
            return true;
        list += len + 1;
    }
    return false;
}

/* /proc/self/cgroup has a line "id:controllers:path" per hierarchy; version 2 is "0::path" (cgroups(7)). */
uint32_t oribi__os_cpu_quota(const char *root)
{
    char path[PATH_MAX];
    char mount[PATH_MAX];
    char line[PATH_MAX];
    uint32_t least = 0;
    (void)snprintf(path, sizeof(path), "%s/proc/self/cgroup",
                   root); /* cut only for a test's absurd root: then it does not open */
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        controllers++;
        size_t n = (size_t)(group - controllers);
        group++;
        uint32_t cpus = 0;
        if (n == 0) {
            (void)snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
            cpus = group_quota(mount, group, group_quota_v2);
        } else if (has_controller(controllers, n, "cpu")) {
            (void)snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%.*s", root, (int)n, controllers);
            cpus = group_quota(mount, group, group_quota_v1);
            (void)snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/cpu", root);
            uint32_t plain = group_quota(mount, group, group_quota_v1);
            cpus = plain && (!cpus || plain < cpus) ? plain : cpus;
        }
        if (cpus && (!least || cpus < least))
            least = cpus;
    }
    (void)fclose(file); /* read only: nothing to lose */
    return least;
}

uint32_t oribi_os_cpu_count(void)
{
    uint32_t count = 1;
    cpu_set_t set;
    long online;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        count = (uint32_t)CPU_COUNT(&set);
    else if ((online = sysconf(_SC_NPROCESSORS_ONLN)) > 0) /* more than 1024 CPUs: the set is too small */
        count = (uint32_t)online;
    uint32_t quota = oribi__os_cpu_quota("");
    if (quota && quota < count)
        count = quota;
    return count > 0 ? count : 1;
}

uint32_t oribi_os_backlog_max(void)
{
    char line[32];
    if (oribi_os_read_line("/proc/sys/net/core/somaxconn", line, sizeof(line)) < 0)
        return BACKLOG_DEFAULT;
    long value = strtol(line, NULL, 10);
    return value > 0 && value <= INT_MAX ? (uint32_t)value : BACKLOG_DEFAULT;
}

int oribi_os_peer(int unix_fd, struct oribi_peer *peer)
{
    struct ucred credentials;
    socklen_t len = sizeof(credentials);
    if (getsockopt(unix_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) < 0)
        return oribi_os_fail();
    *peer = (struct oribi_peer){.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
    return 0;
}

int oribi_os_become_subreaper(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? oribi_os_fail() : 0;
}

/* Asked for first and checked afterwards: a parent that ended in between sends nothing (prctl(2)). */
int oribi_os_signal_on_parent_death(int signal_number, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, (unsigned long)signal_number, 0, 0, 0) < 0)
        return oribi_os_fail();
    return getppid() == parent ? 0 : ORIBI_ECLOSED;
}

int oribi_os_either(int first_fd, int second_fd, int *fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int got = oribi_os_lift(epoll_create1(EPOLL_CLOEXEC));
    if (got < 0)
        return oribi_os_fail();
    if (epoll_ctl(got, EPOLL_CTL_ADD, first_fd, &event) < 0 || epoll_ctl(got, EPOLL_CTL_ADD, second_fd, &event) < 0) {
        int code = oribi_os_fail();
        oribi_os_close(got);
        return code;
    }
    *fd = got;
    return 0;
}

bool oribi_os_is_main_thread(void)
{
    return (pid_t)syscall(SYS_gettid) == getpid();
}

/* --- signals and backtraces --- */

/* Real-time signals have no meaning of their own; from the upper end, because libraries begin at the lower one. */
int oribi_os_private_signal(void)
{
    return SIGRTMAX - 3;
}

int oribi_os_runtime_signal(void)
{
    return SIGRTMAX - 4;
}

/* Never NULL. */
const void *oribi_os_interrupted(const void *context)
{
    const ucontext_t *at = context;
#if defined(__x86_64__)
    return (const void *)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)at->uc_mcontext.pc;
#else
    return at; /* not known */
#endif
}

#ifdef __GLIBC__
enum { FRAMES_MAX = 64 };

/* The loader knows the program by its first argument, which a process title overwrites. */
static char program[64] = "program";

/* The first call loads the unwinder, which takes memory and locks. */
void oribi_os_backtrace_prepare(void)
{
    char path[PATH_MAX];
    void *frame;
    (void)backtrace(&frame, 1);
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    const char *name = strrchr(path, '/');
    if (name && name[1])
        (void)snprintf(program, sizeof(program), "%s", name + 1); /* cut: only shown */
}

/* "    C: crypt_r (libcrypt.so.1)\n", 0 when it does not fit. */
static size_t put_frame(void *address, char *dst, size_t cap)
{
    Dl_info info = {0};
    struct link_map *map = NULL;
    (void)dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP); /* fails: nothing is known */
    const char *path = map && map->l_name[0] ? map->l_name : program;
    const char *file = strrchr(path, '/');
    file = file ? file + 1 : path;
    int n = info.dli_sname ? snprintf(dst, cap, "C: %.80s (%.60s)\n", info.dli_sname, file)
                           : snprintf(dst, cap, "C: %p (%.60s)\n", address, file);
    return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}

/* Above the interrupted function stand the handler and what it has called. */
size_t oribi_os_native_frames(const void *interrupted, int max, char *dst, size_t cap)
{
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    int first = 0;
    size_t n = 0;
    while (first < count && frames[first] != interrupted)
        first++;
    if (first == count)
        first = 0;
    for (int i = first; i < count && i < first + max; i++)
        n += put_frame(frames[i], dst + n, cap - n);
    return n;
}
#else
void oribi_os_backtrace_prepare(void)
{
}

size_t oribi_os_native_frames(const void *interrupted, int max, char *dst, size_t cap)
{
    return 0;
}
#endif
