/* macOS, FreeBSD, OpenBSD, NetBSD: what they do better than os_calls_portable.c, in whose place this stands. What one
 * of them has, os_features.h says (os_features.sh); all else is os_portable.c, which is POSIX. */
#include "oribi/base/os/os.h"

#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>

#include <sys/event.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#ifdef ORIBI_HAS_FIONWRITE
#include <sys/filio.h>
#endif
#if defined(ORIBI_HAS_SYSCTLBYNAME) || defined(ORIBI_HAS_PROCARGS2) || defined(ORIBI_HAS_PROC_ARGS)
#include <sys/sysctl.h>
#endif
#ifdef ORIBI_HAS_XUCRED_PID
#include <sys/ucred.h>
#endif
#if defined(ORIBI_HAS_NAME_NP_HEADER) || defined(ORIBI_HAS_MAIN_NP_HEADER)
#include <pthread_np.h>
#endif
#ifdef ORIBI_HAS_PROC_PIDINFO
#include <libproc.h>
#include <mach/mach_time.h>
#endif
#ifdef ORIBI_HAS_KINFO_RSSIZE
#include <sys/user.h>
#endif

const char *oribi_os_layer(void)
{
    return "bsd";
}

bool oribi_os_forks_safely(void)
{
#ifdef ORIBI_HAS_SAFE_FORK
    return true;
#else
    return false;
#endif
}

/* --- how the process was started --- */

#if defined(ORIBI_HAS_PROCARGS2) || defined(ORIBI_HAS_PROC_ARGS)
static int read_mib(int *mib, unsigned count, struct oribi_buf *out)
{
    size_t n = 0;
    if (sysctl(mib, count, NULL, &n, NULL, 0) < 0)
        return oribi_os_fail();
    char *p = oribi_buf_reserve(out, n);
    if (sysctl(mib, count, p, &n, NULL, 0) < 0)
        return oribi_os_fail();
    out->len += n;
    return 0;
}
#endif

#if defined(ORIBI_HAS_PROCARGS2)
int oribi__os_started(bool environment, struct oribi_buf *out)
{
    struct oribi_buf all = {0};
    int mib[] = {CTL_KERN, KERN_PROCARGS2, (int)getpid()};
    int code = read_mib(mib, 3, &all);
    if (code == 0)
        code = oribi__os_split_started(oribi_slice(all.p, all.len), environment, out);
    oribi_buf_deinit(&all);
    return code;
}
#elif defined(ORIBI_HAS_PROC_ARGS)
int oribi__os_started(bool environment, struct oribi_buf *out)
{
    int mib[] = {CTL_KERN, KERN_PROC, environment ? KERN_PROC_ENV : KERN_PROC_ARGS, (int)getpid()};
    return read_mib(mib, 4, out);
}
#else
int oribi__os_started(bool environment, struct oribi_buf *out)
{
    return oribi__os_read_proc(environment, out);
}
#endif

/* --- descriptors --- */

/* For what was made without flags: another thread's fork and exec in between passes it on. Sockets do not raise SIGPIPE
 * (macOS has no MSG_NOSIGNAL on all of its versions); of pipes the option is refused. */
static int flagged(int fd, bool is_socket, bool nonblock)
{
    int code = oribi_os_set_cloexec(fd, true);
    if (code == 0 && nonblock)
        code = oribi_os_set_nonblock(fd, true);
#ifdef ORIBI_HAS_NOSIGPIPE
    int on = 1;
    if (is_socket)
        (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on)); /* fails on a socket that is shut already */
#endif
    if (code < 0)
        oribi_os_close(fd);
    return code < 0 ? code : fd;
}

static int flagged_pair(int made, bool is_socket, bool nonblock, int fds[2])
{
    if (made < 0)
        return oribi_os_fail();
    for (int i = 0; i < 2; i++) {
        int code = flagged(fds[i], is_socket, nonblock);
        if (code < 0) {
            oribi_os_close(fds[1 - i]);
            return code;
        }
    }
    return 0;
}

/* With what the system can set at once; flagged() sets the rest. */
static int with_flags(int type, bool nonblock)
{
#ifdef ORIBI_HAS_SOCK_CLOEXEC
    return type | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0);
#else
    return type;
#endif
}

int oribi_os_socket(int family, int type, bool nonblock)
{
    int fd = oribi_os_lift(socket(family, with_flags(type, nonblock), 0));
    return fd < 0 ? oribi_os_fail() : flagged(fd, true, nonblock);
}

int oribi_os_socket_pair(int type, bool nonblock, int fds[2])
{
    int made = socketpair(AF_UNIX, with_flags(type, nonblock), 0, fds);
    return flagged_pair(oribi_os_lift_pair(made, fds), true, nonblock, fds);
}

int oribi_os_pipe(int fds[2])
{
#ifdef ORIBI_HAS_PIPE2
    return oribi_os_lift_pair(pipe2(fds, O_CLOEXEC | O_NONBLOCK), fds) < 0 ? oribi_os_fail() : 0;
#else
    return flagged_pair(oribi_os_lift_pair(pipe(fds), fds), false, true, fds);
#endif
}

static int accept_one(int listen_fd, struct sockaddr *peer, socklen_t *len)
{
#ifdef ORIBI_HAS_ACCEPT4
    return oribi_os_lift(accept4(listen_fd, peer, len, SOCK_CLOEXEC | SOCK_NONBLOCK));
#else
    return oribi_os_lift(accept(listen_fd, peer, len));
#endif
}

/* macOS gives a connection that was reset while it waited without an address. */
int oribi_os_accept(int listen_fd, int *fd, struct sockaddr_storage *peer, socklen_t *peer_len)
{
    for (;;) {
        socklen_t len = sizeof(*peer);
        int got = accept_one(listen_fd, (struct sockaddr *)peer, peer ? &len : NULL);
        if (got >= 0 && peer && len == 0) {
            oribi_os_close(got);
            return ORIBI_ECLOSED;
        }
        if (got >= 0) {
            got = flagged(got, true, true);
            if (got < 0)
                return got;
            *fd = got;
            if (peer)
                *peer_len = len;
            return 0;
        }
        if (errno == EINTR)
            continue;
        int code = oribi_os_fail();
        return errno == EPROTO || errno == EPERM ? ORIBI_ECLOSED : code;
    }
}

#ifndef ORIBI_HAS_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif

ssize_t oribi_os_receive(int socket_fd, struct msghdr *message)
{
    for (;;) {
        ssize_t got = recvmsg(socket_fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got >= 0) {
            if (MSG_CMSG_CLOEXEC == 0)
                oribi__os_flag_passed(message);
            return got;
        }
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

int oribi_os_either(int first_fd, int second_fd, int *fd)
{
    struct kevent both[2];
    EV_SET(&both[0], (uintptr_t)first_fd, EVFILT_READ, EV_ADD, 0, 0, NULL);
    EV_SET(&both[1], (uintptr_t)second_fd, EVFILT_READ, EV_ADD, 0, 0, NULL);
    int got = oribi_os_lift(kqueue());
    if (got < 0)
        return oribi_os_fail();
    if (oribi_os_set_cloexec(got, true) < 0 || kevent(got, both, 2, NULL, 0, NULL) < 0) {
        int code = oribi_os_fail();
        oribi_os_close(got);
        return code;
    }
    *fd = got;
    return 0;
}

int oribi_os_record_type(bool shared)
{
#ifdef ORIBI_HAS_SEQPACKET
    (void)shared;
    return SOCK_SEQPACKET;
#else
    return shared ? SOCK_DGRAM : SOCK_STREAM;
#endif
}

/* --- files --- */

#if defined(ORIBI_HAS_SENDFILE_MACOS) || defined(ORIBI_HAS_SENDFILE_FREEBSD)
static int send_file(int socket_fd, int in_fd, int64_t offset, int64_t n, off_t *sent)
{
#ifdef ORIBI_HAS_SENDFILE_MACOS
    *sent = (off_t)n;
    return sendfile(in_fd, socket_fd, (off_t)offset, sent, NULL, 0);
#else
    *sent = 0;
    return sendfile(in_fd, socket_fd, (off_t)offset, n > SSIZE_MAX ? SSIZE_MAX : (size_t)n, NULL, sent, 0);
#endif
}

/* Bytes that were sent count, whatever ended the call (sendfile(2)). Not every kind of socket and file system can. */
ssize_t oribi_os_send_file(int socket_fd, int in_fd, int64_t *offset, int64_t n)
{
    for (;;) {
        off_t sent = 0;
        int code = send_file(socket_fd, in_fd, *offset, n, &sent);
        if (code < 0 && (errno == EINVAL || errno == ENOTSUP || errno == EOPNOTSUPP || errno == ENOSYS))
            return oribi__os_send_copy(socket_fd, in_fd, offset, n);
        if (code < 0 && errno != EINTR && errno != EAGAIN)
            return oribi_os_fail();
        if (code == 0 || sent > 0) {
            *offset += sent;
            return (ssize_t)sent;
        }
        if (errno == EAGAIN)
            return oribi_os_fail();
    }
}
#else
ssize_t oribi_os_send_file(int socket_fd, int in_fd, int64_t *offset, int64_t n)
{
    return oribi__os_send_copy(socket_fd, in_fd, offset, n);
}
#endif

/* --- the other side --- */

int64_t oribi_os_send_queue(int socket_fd)
{
    int bytes = 0;
#if defined(ORIBI_HAS_SO_NWRITE)
    socklen_t len = sizeof(bytes);
    return getsockopt(socket_fd, SOL_SOCKET, SO_NWRITE, &bytes, &len) < 0 ? oribi_os_fail() : bytes;
#elif defined(ORIBI_HAS_FIONWRITE)
    return ioctl(socket_fd, FIONWRITE, &bytes) < 0 ? oribi_os_fail() : bytes;
#else
    (void)bytes;
    return oribi_os_fail_saying("this system does not tell the length of a socket's queue");
#endif
}

/* 0 where the system does not tell. */
static pid_t peer_pid(int unix_fd)
{
#if defined(ORIBI_HAS_PEERPID)
    pid_t pid = 0;
    socklen_t len = sizeof(pid);
    return getsockopt(unix_fd, SOL_LOCAL, LOCAL_PEERPID, &pid, &len) < 0 ? 0 : pid;
#elif defined(ORIBI_HAS_XUCRED_PID)
    struct xucred credentials;
    socklen_t len = sizeof(credentials);
    return getsockopt(unix_fd, 0, LOCAL_PEERCRED, &credentials, &len) < 0 ? 0 : credentials.cr_pid;
#else
    return 0;
#endif
}

int oribi_os_peer(int unix_fd, struct oribi_peer *peer)
{
    *peer = (struct oribi_peer){.pid = peer_pid(unix_fd)};
#ifdef ORIBI_HAS_GETPEEREID
    return getpeereid(unix_fd, &peer->uid, &peer->gid) < 0 ? oribi_os_fail() : 0;
#else
    return oribi__os_peer_user(unix_fd, peer);
#endif
}

/* --- threads --- */

int oribi_os_poll_masked(struct pollfd *fds, size_t count, int64_t timeout_us, const sigset_t *mask)
{
#ifdef ORIBI_HAS_PPOLL
    const struct timespec timeout = {.tv_sec = timeout_us / 1000000, .tv_nsec = timeout_us % 1000000 * 1000L};
    return ppoll(fds, (nfds_t)count, &timeout, mask);
#else
    return oribi__os_poll_between(fds, count, timeout_us, mask);
#endif
}

bool oribi_os_is_main_thread(void)
{
#if defined(ORIBI_HAS_MAIN_NP) || defined(ORIBI_HAS_MAIN_NP_HEADER)
    return pthread_main_np() == 1;
#else
    return true; /* not known: os_none_portable.c */
#endif
}

void oribi_os_thread_name(const char *name)
{
#if defined(ORIBI_HAS_NAME_SELF)
    (void)pthread_setname_np(name); /* a name is a help, no more */
#elif defined(ORIBI_HAS_NAME_FORMAT)
    (void)pthread_setname_np(pthread_self(), "%s", (void *)(uintptr_t)name);
#elif defined(ORIBI_HAS_NAME_THREAD)
    (void)pthread_setname_np(pthread_self(), name);
#elif defined(ORIBI_HAS_NAME_NP_HEADER)
    pthread_set_name_np(pthread_self(), name);
#else
    (void)name;
#endif
}

int oribi_os_thread_enter_dir(const char *path)
{
    return chdir(path) < 0 ? oribi_os_fail() : 0;
}

/* --- machine and processes --- */

uint32_t oribi_os_backlog_max(void)
{
#ifdef ORIBI_HAS_SYSCTLBYNAME
    static const char *const names[] = {"kern.ipc.soacceptqueue", "kern.ipc.somaxconn", "kern.somaxconn"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int value = 0;
        size_t len = sizeof(value);
        if (sysctlbyname(names[i], &value, &len, NULL, 0) == 0 && len == sizeof(value) && value > 0)
            return (uint32_t)value;
    }
#endif
    return SOMAXCONN;
}

#if defined(ORIBI_HAS_PROC_PIDINFO)
/* Times are in ticks of the machine (mach_timebase_info()), which are nanoseconds on Intel and not on Apple's own. */
void oribi_process_look(pid_t pid, struct oribi_process_look *look)
{
    struct proc_taskinfo task;
    struct proc_bsdinfo process;
    struct mach_timebase_info base;
    *look = (struct oribi_process_look){0};
    if (proc_pidinfo(pid, PROC_PIDTASKINFO, 0, &task, sizeof(task)) != (int)sizeof(task) ||
        mach_timebase_info(&base) != KERN_SUCCESS)
        return;
    uint64_t ticks = task.pti_total_user + task.pti_total_system;
    look->resident_bytes = (int64_t)task.pti_resident_size;
    look->cpu_ms = (int64_t)(ticks / 1000 * base.numer / base.denom / 1000);
    look->threads = (uint32_t)task.pti_threadnum;
    look->stopped = proc_pidinfo(pid, PROC_PIDTBSDINFO, 0, &process, sizeof(process)) == (int)sizeof(process) &&
                    process.pbi_status == SSTOP;
}
#elif defined(ORIBI_HAS_KINFO_RSSIZE)
void oribi_process_look(pid_t pid, struct oribi_process_look *look)
{
    struct kinfo_proc info;
    size_t len = sizeof(info);
    const int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, (int)pid};
    *look = (struct oribi_process_look){0};
    if (sysctl(name, 4, &info, &len, NULL, 0) < 0 || len != sizeof(info))
        return;
    look->resident_bytes = (int64_t)info.ki_rssize * getpagesize();
    look->cpu_ms = (int64_t)(info.ki_runtime / 1000);
    look->threads = (uint32_t)info.ki_numthreads;
    look->stopped = info.ki_stat == SSTOP;
}
#else
void oribi_process_look(pid_t pid, struct oribi_process_look *look)
{
    (void)pid;
    *look = (struct oribi_process_look){0};
}
#endif

void oribi_process_usage(pid_t pid, int64_t *resident_bytes, int64_t *cpu_ms)
{
    struct oribi_process_look look;
    oribi_process_look(pid, &look);
    *resident_bytes = look.resident_bytes;
    *cpu_ms = look.cpu_ms;
}
