/* System calls that Linux has one of its own for, made of what POSIX.1-2008 and the BSDs have in common. Where there is
 * nothing to make them of, the call says so: os_none_portable.c. */
#include "oribi/base/os/os.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os_process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    COPY_BYTES = 64 * 1024,
    NAP_NS = 1000000,      /* between two looks at a word */
    PIPE_READS_MAX = 4096, /* of a pipe of a mebibyte */
    NAMES_MAX = 100,       /* of shared memory, that others may have taken */
};

int oribi__os_make_named(char *path)
{
    int fd = mkstemp(path);
    if (fd >= 0 && oribi_os_set_cloexec(fd, true) < 0) {
        oribi_os_close(fd);
        return -1;
    }
    return fd;
}

/* --- waking and waiting --- */

int oribi_wake_create(struct oribi_wake *wake)
{
    int fds[2];
    int code = oribi_os_pipe(fds);
    if (code < 0)
        return code;
    *wake = (struct oribi_wake){.read_fd = fds[0], .write_fd = fds[1]};
    return 0;
}

/* Runs in signal handlers: errno must be what it was. A full pipe is a wake-up already. */
void oribi_wake_notify(const struct oribi_wake *wake)
{
    int saved = errno;
    ssize_t n;
    do
        n = write(wake->write_fd, "", 1);
    while (n < 0 && errno == EINTR);
    errno = saved;
}

/* The application may have put a file without an end in the place of the pipe. */
bool oribi_wake_clear(const struct oribi_wake *wake)
{
    char bytes[256];
    ssize_t n = sizeof(bytes);
    int reads = 0;
    while (n == sizeof(bytes) && reads < PIPE_READS_MAX && (n = oribi_os_read(wake->read_fd, bytes, sizeof(bytes))) > 0)
        reads++;
    return reads > 0;
}

void oribi_wake_destroy(struct oribi_wake *wake)
{
    oribi_os_close(wake->read_fd);
    if (wake->write_fd != wake->read_fd)
        oribi_os_close(wake->write_fd);
    *wake = (struct oribi_wake){-1, -1};
}

/* A condition variable in shared memory is no choice: a process that is killed in the middle of pthread_cond_wait(3)
 * leaves one behind on which the others may wait for ever. So the word is looked at once a millisecond. */
void oribi_os_word_wait(_Atomic uint32_t *word, uint32_t seen, int timeout_ms)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    for (int ms = 0; ms < timeout_ms && atomic_load(word) == seen; ms++)
        (void)nanosleep(&nap, NULL); /* a signal makes it shorter */
}

void oribi_os_word_wake(_Atomic uint32_t *word)
{
    (void)word; /* its new number is what the others see */
}

void oribi__os_flag_passed(struct msghdr *message)
{
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= head->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, (const char *)head + at, sizeof(fd));
            (void)oribi_os_set_cloexec(fd, true); /* it has just come: it is open */
        }
    }
}

int oribi__os_poll_between(struct pollfd *fds, size_t count, int64_t timeout_us, const sigset_t *mask)
{
    sigset_t before;
    (void)pthread_sigmask(SIG_SETMASK, mask, &before);
    int ready = poll(fds, (nfds_t)count, (int)((timeout_us + 999) / 1000)); /* of minutes at most: it fits */
    int saved = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return ready;
}

/* --- files --- */

/* Between the file's pages and the socket there is a buffer here. What the socket does not take is read again. */
ssize_t oribi__os_send_copy(int socket_fd, int in_fd, int64_t *offset, int64_t n)
{
    char buffer[COPY_BYTES];
    ssize_t got = oribi_os_read_at(in_fd, buffer, n < COPY_BYTES ? (size_t)n : COPY_BYTES, *offset);
    if (got <= 0)
        return got;
    ssize_t sent;
    do
        sent = write(socket_fd, buffer, (size_t)got);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return oribi_os_fail();
    *offset += sent;
    return sent;
}

ssize_t oribi_os_read_at_now(int fd, void *dst, size_t n, int64_t offset)
{
    return ORIBI_EINVAL;
}

void oribi_os_will_need(int fd, int64_t offset, int64_t n)
{
}

ssize_t oribi_os_copy_range(int from_fd, int64_t from, int to_fd, size_t n)
{
    char buffer[COPY_BYTES];
    ssize_t got = oribi_os_read_at(from_fd, buffer, n < COPY_BYTES ? n : COPY_BYTES, from);
    return got <= 0 ? got : oribi_os_write(to_fd, buffer, (size_t)got);
}

/* flock(2) has what open file description locks are wanted for: forked processes share it. But a process that may only
 * read a file can hold it as well. */
int oribi_os_lock_query(int fd, struct flock *lock)
{
    lock->l_type = F_UNLCK;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0)
        return flock(fd, LOCK_UN) < 0 ? oribi_os_fail() : 0;
    if (errno != EWOULDBLOCK)
        return oribi_os_fail();
    lock->l_type = F_WRLCK;
    return 0;
}

int oribi_os_lock_try(int fd, struct flock *lock)
{
    assert(lock->l_type == F_WRLCK);
    return flock(fd, LOCK_EX | LOCK_NB) < 0 ? oribi_os_fail() : 0;
}

/* Has a name until it is open. Descriptors of shm_open(3) are CLOEXEC (POSIX). */
int oribi_process_shared_memory(size_t bytes, int *fd)
{
    char name[32];
    int got = -1;
    for (int i = 0; i < NAMES_MAX && got < 0; i++) {
        (void)snprintf(name, sizeof(name), "/oribi-%ld-%d", (long)getpid(), i); /* fits */
        got = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (got < 0 && errno != EEXIST)
            return oribi_os_fail();
    }
    if (got < 0)
        return oribi_os_fail();
    int removed = shm_unlink(name);
    got = oribi_os_lift(got);
    if (removed < 0 || got < 0 || ftruncate(got, (off_t)bytes) < 0) {
        int code = oribi_os_fail();
        oribi_os_close(got);
        return code;
    }
    *fd = got;
    return 0;
}

int oribi_process_sealed_memory(size_t bytes, int *fd)
{
    errno = ENOSYS;
    return oribi_os_fail();
}

bool oribi_process_is_sealed(int fd, size_t bytes)
{
    return false;
}

/* --- bytes --- */

void *oribi_os_memmem(const void *in, size_t n, const void *what, size_t what_n)
{
    const char *at = in;
    const char *end = at + n;
    if (what_n == 0)
        return (void *)(uintptr_t)in;
    while ((size_t)(end - at) >= what_n) {
        at = memchr(at, *(const unsigned char *)what, (size_t)(end - at) - what_n + 1);
        if (!at)
            return NULL;
        if (memcmp(at, what, what_n) == 0)
            return (void *)(uintptr_t)at;
        at++;
    }
    return NULL;
}

void *oribi_os_memrchr(const void *in, int byte, size_t n)
{
    const unsigned char *bytes = in;
    while (n > 0)
        if (bytes[--n] == (unsigned char)byte)
            return (void *)(uintptr_t)(bytes + n);
    return NULL;
}

/* So few bytes are given whole or not at all (getentropy(3)). */
int oribi_os_random(void *dst, size_t n)
{
    return getentropy(dst, n) == 0 ? 0 : oribi_os_fail();
}

/* Children have it, and close what they have no use for by themselves. */
void oribi_os_seclude(void *p, size_t n)
{
    (void)mlock(p, n); /* as the header says */
}

/* --- processes --- */

/* POLLHUP says that both directions are shut; of one that has only finished sending, a look at what it has sent. */
enum oribi_peer_state oribi_os_peer_state(int socket_fd)
{
    struct pollfd state = {.fd = socket_fd, .events = POLLIN};
    char next;
    if (poll(&state, 1, 0) <= 0)
        return ORIBI_PEER_OPEN;
    if (state.revents & (POLLERR | POLLHUP | POLLNVAL))
        return ORIBI_PEER_GONE;
    return recv(socket_fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0 ? ORIBI_PEER_FINISHED : ORIBI_PEER_OPEN;
}

#ifdef __linux__ /* where this build is tested, and which has no getpeereid(3) */
int oribi__os_peer_user(int unix_fd, struct oribi_peer *peer)
{
    struct {
        pid_t pid;
        uid_t uid;
        gid_t gid;
    } credentials; /* struct ucred, unix(7) */
    socklen_t len = sizeof(credentials);
    if (getsockopt(unix_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) < 0)
        return oribi_os_fail();
    *peer = (struct oribi_peer){.uid = credentials.uid, .gid = credentials.gid};
    return 0;
}
#else
int oribi__os_peer_user(int unix_fd, struct oribi_peer *peer)
{
    *peer = (struct oribi_peer){0};
    return getpeereid(unix_fd, &peer->uid, &peer->gid) < 0 ? oribi_os_fail() : 0;
}
#endif

extern char **environ;

/* In a child between fork and exec, whose own environment is of no more use. */
void oribi__os_exec(char **argv, char **environment)
{
    environ = environment;
    (void)execvp(argv[0], argv); /* comes back when it failed */
}

short oribi__os_spawn_apart(void)
{
    return POSIX_SPAWN_SETPGROUP;
}

/* The parent may end right after this look: no signal tells of it. */
int oribi_os_signal_on_parent_death(int signal_number, pid_t parent)
{
    (void)signal_number;
    return getppid() == parent ? 0 : ORIBI_ECLOSED;
}
