/* System calls that only Linux has, or that it does better. */
#include "oribi/base/os/os.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <linux/futex.h>
#include <linux/sockios.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SENDFILE_MAX = 0x7ffff000 }; /* what one call transfers at most, sendfile(2) */

/* Alike on purpose with os_calls_portable.c: a build has one of the two, with the errors that its system has. */
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

ssize_t oribi_os_read_at_now(int fd, void *dst, size_t n, int64_t offset)
{
    const struct iovec vec = {dst, n};
    for (;;) {
        ssize_t got = preadv2(fd, &vec, 1, offset, RWF_NOWAIT);
        if (got >= 0)
            return got;
        if (errno == EINTR)
            continue;
        /* ENOSYS and EPERM: by a kernel before 4.14, or a filter of calls; EINVAL: by one that knows no such flag */
        bool unknown = errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM || errno == EINVAL;
        return unknown ? ORIBI_EINVAL : oribi_os_fail();
    }
}

void oribi_os_will_need(int fd, int64_t offset, int64_t n)
{
    (void)posix_fadvise(fd, offset, n, POSIX_FADV_WILLNEED); /* a hint */
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

int oribi_os_socket(int family, int type, bool nonblock)
{
    int fd = oribi_os_lift(socket(family, type | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0), 0));
    return fd < 0 ? oribi_os_fail() : fd;
}

int oribi_os_socket_pair(int type, bool nonblock, int fds[2])
{
    int made = socketpair(AF_UNIX, type | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0), 0, fds);
    return oribi_os_lift_pair(made, fds) < 0 ? oribi_os_fail() : 0;
}

int oribi_os_record_type(bool shared)
{
    return SOCK_SEQPACKET;
}

ssize_t oribi_os_receive(int socket_fd, struct msghdr *message)
{
    for (;;) {
        ssize_t got = recvmsg(socket_fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

void *oribi_os_memmem(const void *in, size_t n, const void *what, size_t what_n)
{
    return memmem(in, n, what, what_n);
}

void *oribi_os_memrchr(const void *in, int byte, size_t n)
{
    return memrchr(in, byte, n);
}

int oribi_os_pipe(int fds[2])
{
    return oribi_os_lift_pair(pipe2(fds, O_CLOEXEC | O_NONBLOCK), fds) < 0 ? oribi_os_fail() : 0;
}

/* A text of at most PIPE_BUF bytes lies on one page of the small pipe, and pages move whole. */
ssize_t oribi_os_splice_now(const int pipe_fds[2], int pipe_fd, const char *p, size_t n)
{
    char rest[PIPE_BUF];
    ssize_t kept = oribi_os_write(pipe_fds[1], p, n);
    if (kept <= 0)
        return kept;
    ssize_t moved;
    do
        moved = splice(pipe_fds[0], NULL, pipe_fd, NULL, (size_t)kept, SPLICE_F_NONBLOCK);
    while (moved < 0 && errno == EINTR);
    int code = moved < 0 ? oribi_os_fail() : 0;
    if (moved < kept)
        (void)!read(pipe_fds[0], rest, sizeof(rest)); /* it is empty for the next one */
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
    /* The kernel's own timespec of this call, whatever the C library's time_t is (futex(2)). */
    const long timeout[2] = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout, NULL,
                  0); /* the caller looks at the word again, whatever ended the wait */
}

void oribi_os_word_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0); /* fails for wrong arguments only */
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

/* POLLRDHUP comes with the FIN, also while bytes before it are unread; POLLERR, with which a read would take the
 * error away, is looked at first. */
enum oribi_peer_state oribi_os_peer_state(int socket_fd)
{
    struct pollfd state = {.fd = socket_fd, .events = POLLRDHUP};
    char next;
    if (poll(&state, 1, 0) <= 0)
        return ORIBI_PEER_OPEN;
    if (state.revents & (POLLERR | POLLHUP | POLLNVAL))
        return ORIBI_PEER_GONE;
    return recv(socket_fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0 ? ORIBI_PEER_FINISHED : ORIBI_PEER_OPEN;
}

/* File systems that can share blocks do (copy_file_range(2)); between two of them, and where a kernel or a seccomp
 * filter knows no such call, sendfile(2) copies. */
ssize_t oribi_os_copy_range(int from_fd, int64_t from, int to_fd, size_t n)
{
    size_t want = n < SENDFILE_MAX ? n : SENDFILE_MAX;
    off_t at = (off_t)from;
    ssize_t copied;
    do
        copied = copy_file_range(from_fd, &at, to_fd, NULL, want, 0);
    while (copied < 0 && errno == EINTR);
    if (copied > 0 || (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO)))
        return copied < 0 ? oribi_os_fail() : copied;
    at = (off_t)from;
    do
        copied = sendfile(to_fd, from_fd, &at, want);
    while (copied < 0 && errno == EINTR);
    return copied < 0 ? oribi_os_fail() : copied;
}

int64_t oribi_os_send_queue(int socket_fd)
{
    int bytes = 0;
    return ioctl(socket_fd, SIOCOUTQ, &bytes) < 0 ? oribi_os_fail() : bytes; /* tcp(7), unix(7) */
}

void oribi__os_exec(char **argv, char **environment)
{
    (void)execvpe(argv[0], argv, environment); /* comes back when it failed */
}

short oribi__os_spawn_apart(void)
{
    return POSIX_SPAWN_SETSID;
}

int oribi__os_make_named(char *path)
{
    return mkostemp(path, O_CLOEXEC);
}

int oribi__os_open_unnamed(const char *dir)
{
    int fd = oribi_os_lift(open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)); /* not every file system can, open(2) */
    return fd < 0 ? oribi_os_fail() : fd;
}

int oribi_os_reopen(int fd)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int copy = oribi_os_lift(open(path, O_RDWR | O_CLOEXEC));
    return copy < 0 ? oribi_os_fail() : copy;
}

/* Only of a file that has never had a name: O_TMPFILE. */
int oribi_os_link(int fd, const char *path)
{
    char link_path[32];
    (void)snprintf(link_path, sizeof(link_path), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, link_path, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? oribi_os_fail() : 0;
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

int oribi_os_peer(int unix_fd, struct oribi_peer *peer)
{
    struct ucred credentials;
    socklen_t len = sizeof(credentials);
    if (getsockopt(unix_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) < 0)
        return oribi_os_fail();
    *peer = (struct oribi_peer){.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
    return 0;
}

bool oribi_os_adopts_orphans(void)
{
    return true;
}

int oribi__os_started(bool environment, struct oribi_buf *out)
{
    return oribi__os_read_proc(environment, out);
}

bool oribi_os_forks_safely(void)
{
    return true;
}

int oribi_os_become_subreaper(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? oribi_os_fail() : 0;
}

const char *oribi_os_layer(void)
{
    return "linux";
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

/* So few bytes are given whole or not at all, random(7). */
int oribi_os_random(void *dst, size_t n)
{
    return getrandom(dst, n, 0) == (ssize_t)n ? 0 : oribi_os_fail();
}

void oribi_os_seclude(void *p, size_t n)
{
    (void)mlock(p, n); /* beyond RLIMIT_MEMLOCK it fails, as the header says */
    (void)madvise(p, n, MADV_DONTFORK);
    (void)madvise(p, n, MADV_DONTDUMP);
}

static int make_memory(size_t bytes, unsigned flags, int *fd)
{
    int got = oribi_os_lift(memfd_create("oribi", MFD_CLOEXEC | flags));
    if (got < 0)
        return oribi_os_fail();
    if (ftruncate(got, (off_t)bytes) < 0) {
        int code = oribi_os_fail();
        oribi_os_close(got);
        return code;
    }
    *fd = got;
    return 0;
}

int oribi_process_shared_memory(size_t bytes, int *fd)
{
    return make_memory(bytes, 0, fd);
}

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

int oribi_process_sealed_memory(size_t bytes, int *fd)
{
    int code = make_memory(bytes, MFD_ALLOW_SEALING, fd);
    if (code == 0 && fcntl(*fd, F_ADD_SEALS, SEALS) < 0) {
        code = oribi_os_fail();
        oribi_os_close(*fd);
    }
    return code;
}

bool oribi_process_is_sealed(int fd, size_t bytes)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &st) == 0 && st.st_size == (off_t)bytes;
}
