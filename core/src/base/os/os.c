/* The OS layer, as far as POSIX goes, and errno as codes and text. */
#include "oribi/base/os/os.h"

#include "oribi/base/error.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static _Thread_local int last_errno;
static _Thread_local char error_text[128];
static _Thread_local char own_words[256]; /* count while last_errno is SAID */

#ifndef MSG_MORE
#define MSG_MORE 0 /* only Linux has it */
#endif

enum { SAID = -1 };

int oribi_os_fail(void)
{
    last_errno = errno;
    switch (errno) {
    case EAGAIN: /* EWOULDBLOCK is the same number on every system we know */
        return ORIBI_AGAIN;
    case ECONNABORTED:
    case ECONNRESET:
    case ENOTCONN:
    case EPIPE:
    case ESHUTDOWN:
    case ETIMEDOUT: /* TCP gave up on the peer (tcp(7)) */
        return ORIBI_ECLOSED;
    case EMFILE:
    case ENFILE:
        return ORIBI_ELIMIT;
    case ENOBUFS:
    case ENOMEM:
        return ORIBI_ENOMEM;
    case EBADF:
    case ENOTSOCK:
        return ORIBI_ELOST;
    default:
        return ORIBI_ESYS;
    }
}

int oribi_os_fail_saying(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(own_words, sizeof(own_words), format, args); /* cut when longer */
    va_end(args);
    last_errno = SAID;
    return ORIBI_ESYS;
}

/* strerror() opens with a capital; our lines do not. "I/O error" keeps its own. */
const char *oribi_os_error_text(void)
{
    if (last_errno == SAID)
        return own_words;
    (void)snprintf(error_text, sizeof(error_text), "%s", strerror(last_errno)); /* cut when longer: still words */
    if (islower((unsigned char)error_text[1]))
        error_text[0] = (char)tolower((unsigned char)error_text[0]);
    return error_text;
}

struct oribi_os_error oribi_os_error_save(void)
{
    return (struct oribi_os_error){errno, last_errno};
}

void oribi_os_error_restore(struct oribi_os_error error)
{
    errno = error.number;
    last_errno = error.last;
}

bool oribi_os_address_missing(void)
{
    return last_errno == EADDRNOTAVAIL || last_errno == EAFNOSUPPORT;
}

bool oribi_os_forbidden(void)
{
    return last_errno == EACCES;
}

/* close(2) is not begun again after EINTR: on Linux the descriptor is gone then, and another thread may have got its
 * number. */
void oribi_os_close(int fd)
{
    if (fd < 0)
        return;
    int saved = errno;
    (void)close(fd); /* nothing of ours waits for the result: files written here are temporary or logs */
    errno = saved;
}

/* Both ways, because programs read from what they take for their input. Where there is no null device (a bare
 * chroot), a folder keeps the number: nothing can be read from it or written to it. Numbers are given in order, so
 * the first one above 2 says that all below are taken. */
void oribi_os_fill_standard_streams(void)
{
    int saved = errno;
    int fd;
    do {
        fd = open("/dev/null", O_RDWR | O_NOCTTY);
        if (fd < 0)
            fd = open("/", O_RDONLY);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    oribi_os_close(fd);
    errno = saved;
}

/* The number must never be free in between: another thread could get it. */
int oribi__os_lift_slow(int low_fd)
{
    if (low_fd > STDERR_FILENO)
        return oribi__os_lift_high(low_fd);
    int copy = fcntl(low_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int saved = errno;
    int null_fd = open("/dev/null", O_RDWR | O_NOCTTY);
    if (null_fd < 0 || dup2(null_fd, low_fd) < 0)
        oribi_os_close(low_fd);
    if (null_fd > STDERR_FILENO)
        oribi_os_close(null_fd);
    oribi_os_fill_standard_streams();
    errno = saved;
    return copy;
}

int oribi_os_lift_pair(int result, int fds[2])
{
    if (result < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        fds[i] = oribi_os_lift(fds[i]);
    if (fds[0] >= 0 && fds[1] >= 0)
        return 0;
    oribi_os_close(fds[0]);
    oribi_os_close(fds[1]);
    return -1;
}

static int change_flag(int fd, int get, int set, int flag, bool on)
{
    int flags = fcntl(fd, get);
    if (flags < 0)
        return oribi_os_fail();
    int wanted = on ? flags | flag : flags & ~flag;
    if (wanted != flags && fcntl(fd, set, wanted) < 0)
        return oribi_os_fail();
    return 0;
}

int oribi_os_set_nonblock(int fd, bool on)
{
    return change_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int oribi_os_set_cloexec(int fd, bool on)
{
    return change_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

void oribi_os_yield(void)
{
    (void)sched_yield(); /* succeeds on Linux; elsewhere a failure is no yield */
}

ssize_t oribi_os_read(int fd, void *dst, size_t n)
{
    for (;;) {
        ssize_t got = read(fd, dst, n);
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

ssize_t oribi_os_peek(int socket_fd, void *dst, size_t n)
{
    for (;;) {
        ssize_t got = recv(socket_fd, dst, n, MSG_PEEK | MSG_DONTWAIT);
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

ssize_t oribi_os_read_at(int fd, void *dst, size_t n, int64_t offset)
{
    for (;;) {
        ssize_t got = pread(fd, dst, n, offset);
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

ssize_t oribi_os_write(int fd, const void *p, size_t n)
{
    for (;;) {
        ssize_t sent = write(fd, p, n);
        if (sent >= 0)
            return sent;
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

int oribi_os_write_all(int fd, const void *p, size_t n)
{
    for (const char *at = p, *end = at + n; at < end;) {
        ssize_t written = oribi_os_write(fd, at, (size_t)(end - at));
        if (written <= 0)
            return written < 0 ? (int)written : ORIBI_ESYS;
        at += written;
    }
    return 0;
}

ssize_t oribi_os_write_vec(int fd, const struct iovec *vec, size_t count)
{
    for (;;) {
        ssize_t sent = writev(fd, vec, count < IOV_MAX ? (int)count : IOV_MAX);
        if (sent >= 0)
            return sent;
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

enum oribi_fd_kind oribi_os_fd_kind(int fd)
{
    struct stat file;
    if (fstat(fd, &file) < 0)
        return ORIBI_FD_OTHER;
    return S_ISREG(file.st_mode)    ? ORIBI_FD_FILE
           : S_ISFIFO(file.st_mode) ? ORIBI_FD_PIPE
           : S_ISSOCK(file.st_mode) ? ORIBI_FD_SOCKET
                                    : ORIBI_FD_OTHER;
}

ssize_t oribi_os_send_now(int socket_fd, const char *p, size_t n)
{
    for (;;) {
        ssize_t sent = send(socket_fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
            return sent;
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

ssize_t oribi_os_write_polled(int fd, const char *p, size_t n)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    if (poll(&room, 1, 0) <= 0)
        return ORIBI_AGAIN;
    return oribi_os_write(fd, p, n); /* a pipe without a reader: the write says so */
}

/* sendmsg rather than writev: MSG_NOSIGNAL then spares the application its own SIGPIPE rules. One piece needs no
 * message around it. */
static ssize_t send_vec(int socket_fd, const struct iovec *vec, size_t count, int flags)
{
    struct msghdr message = {.msg_iov = (struct iovec *)vec, .msg_iovlen = count < IOV_MAX ? count : IOV_MAX};
    for (;;) {
        ssize_t sent = count == 1 ? send(socket_fd, vec->iov_base, vec->iov_len, MSG_NOSIGNAL | flags)
                                  : sendmsg(socket_fd, &message, MSG_NOSIGNAL | flags);
        if (sent >= 0)
            return sent;
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

ssize_t oribi_os_send_vec(int socket_fd, const struct iovec *vec, size_t count)
{
    return send_vec(socket_fd, vec, count, 0);
}

ssize_t oribi_os_send_vec_more(int socket_fd, const struct iovec *vec, size_t count)
{
    return send_vec(socket_fd, vec, count, MSG_MORE);
}

int oribi_os_dup(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return copy < 0 ? oribi_os_fail() : copy;
}

void oribi_os_mark(int fd, struct oribi_fd_mark *mark)
{
    struct stat file;
    *mark = (struct oribi_fd_mark){0};
    if (fd >= 0 && fstat(fd, &file) == 0)
        *mark = (struct oribi_fd_mark){(uint64_t)file.st_dev, (uint64_t)file.st_ino};
}

bool oribi_os_is_marked(int fd, const struct oribi_fd_mark *mark)
{
    struct stat file;
    int saved = errno;
    bool is = fstat(fd, &file) == 0 && (uint64_t)file.st_dev == mark->device && (uint64_t)file.st_ino == mark->inode;
    errno = saved;
    return is;
}

bool oribi_os_is_regular(int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
}

bool oribi_os_is_read_only(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY;
}

bool oribi_os_file_has(int fd, const struct oribi_file_state *state)
{
    struct stat file;
    int saved = errno;
    bool is = fstat(fd, &file) == 0 && (uint64_t)file.st_dev == state->mark.device &&
              (uint64_t)file.st_ino == state->mark.inode;
    bool unwritten = is && file.st_size == state->size && file.st_mtim.tv_sec == state->mtime_s &&
                     file.st_mtim.tv_nsec == (long)state->mtime_ns;
    errno = saved;
    return unwritten || (is && file.st_size > state->size);
}

bool oribi_os_can_open(int fd, int count)
{
    int copies[4];
    int made = 0;
    assert(count <= (int)(sizeof(copies) / sizeof(copies[0])));
    while (made < count && (copies[made] = oribi_os_dup(fd)) >= 0)
        made++;
    for (int i = 0; i < made; i++)
        oribi_os_close(copies[i]);
    return made == count;
}

bool oribi_os_same_file(int fd, int other_fd)
{
    struct oribi_fd_mark mark;
    oribi_os_mark(fd, &mark);
    return oribi_os_is_marked(other_fd, &mark);
}

static bool set_on(int fd, int level, int name)
{
    int on = 1;
    return setsockopt(fd, level, name, &on, sizeof(on)) == 0;
}

int oribi_os_bind_tcp(const struct sockaddr *address, size_t n, uint16_t port, unsigned how)
{
    struct sockaddr_storage where = {0};
    assert(n <= sizeof(where));
    memcpy(&where, address, n);
    bool is_v6 = where.ss_family == AF_INET6;
    if (is_v6)
        ((struct sockaddr_in6 *)&where)->sin6_port = htons(port);
    else if (where.ss_family == AF_INET)
        ((struct sockaddr_in *)&where)->sin_port = htons(port);
    int fd = oribi_os_socket(where.ss_family, SOCK_STREAM, true);
    if (fd < 0)
        return oribi_os_fail();
    bool bound = set_on(fd, SOL_SOCKET, SO_REUSEADDR) &&
                 (!(how & ORIBI_BIND_REUSE_PORT) || set_on(fd, SOL_SOCKET, SO_REUSEPORT)) &&
                 (!(how & ORIBI_BIND_IPV6_ALONE) || !is_v6 || set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY)) &&
                 bind(fd, (const struct sockaddr *)&where, (socklen_t)n) == 0;
    if (bound)
        return fd;
    int code = oribi_os_fail();
    oribi_os_close(fd);
    return code;
}

/* A full accept queue (EAGAIN) and a socket of another type (EPROTOTYPE) have an owner too, unix(7). */
int oribi_os_unix_answers(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    assert(n < sizeof(address.sun_path));
    memcpy(address.sun_path, path, n);
    int fd = oribi_os_socket(AF_UNIX, SOCK_STREAM, true);
    if (fd < 0)
        return fd;
    int result = 0;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        result = 1;
    else if (errno == EAGAIN || errno == EPROTOTYPE)
        result = 1;
    else if (errno != ECONNREFUSED && errno != ENOENT)
        result = oribi_os_fail();
    oribi_os_close(fd);
    return result;
}

/* The folder's owner may put another socket of root's there: by its name, or by a second one. */
int oribi__os_is_new_socket(const struct stat *entry, uint64_t device, uint64_t inode)
{
    if (S_ISSOCK(entry->st_mode) && (uint64_t)entry->st_dev == device && (uint64_t)entry->st_ino == inode &&
        entry->st_uid == geteuid() && entry->st_nlink == 1)
        return 0;
    return oribi_os_fail_saying("%s", "another file has come into its place");
}

/* For file systems that cannot open a file without a name: it has one for a moment. */
static int open_named(const char *dir, int *fd)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/oribi-XXXXXX", dir);
    if (n < 0 || (size_t)n >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return oribi_os_fail();
    }
    int named = oribi__os_make_named(path);
    if (named < 0)
        return oribi_os_fail();
    int removed = unlink(path);
    named = oribi_os_lift(named);
    if (removed < 0 || named < 0) {
        int code = oribi_os_fail();
        oribi_os_close(named);
        return code;
    }
    *fd = named;
    return 0;
}

const char *oribi_os_temp_dir(void)
{
    const char *dir = getenv("TMPDIR");
    return dir && *dir ? dir : "/tmp";
}

int oribi_os_store_failed(void)
{
    bool no_room = last_errno == ENOSPC || last_errno == EDQUOT || last_errno == EFBIG;
    return no_room ? ORIBI_EFULL : ORIBI_ESTORE;
}

/* Unlinked at birth, so that nothing is left behind however the process ends. */
int oribi_os_temp_file(int *fd)
{
    return oribi_os_temp_file_in(oribi_os_temp_dir(), fd);
}

int oribi_os_temp_file_in(const char *dir, int *fd)
{
    int unnamed = oribi__os_open_unnamed(dir);
    if (unnamed < 0)
        return open_named(dir, fd);
    *fd = unnamed;
    return 0;
}

int oribi_os_absolute_path(const char *path, char *dst, size_t cap)
{
    char dir[PATH_MAX] = "";
    if (path[0] != '/' && !getcwd(dir, sizeof(dir)))
        return oribi_os_fail();
    int n = snprintf(dst, cap, "%s%s%s", dir, dir[0] ? "/" : "", path);
    if (n < 0 || (size_t)n >= cap) {
        errno = ENAMETOOLONG;
        return oribi_os_fail();
    }
    return 0;
}

bool oribi_os_is_file(int fd, int64_t *size)
{
    struct stat info;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return false;
    *size = (int64_t)info.st_size;
    return true;
}

int oribi_os_open_read(const char *path, int *fd)
{
    int got = oribi_os_lift(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (got < 0)
        return oribi_os_fail();
    *fd = got;
    return 0;
}

int oribi_os_read_line(const char *path, char *dst, size_t cap)
{
    int fd = oribi_os_lift(open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return oribi_os_fail();
    ssize_t n = oribi_os_read(fd, dst, cap - 1);
    oribi_os_close(fd);
    if (n < 0)
        return (int)n;
    dst[n] = '\0';
    dst[strcspn(dst, "\n")] = '\0';
    return 0;
}

/* POLLHUP says that both directions are shut; a peer that only finished sending gives POLLRDHUP. */
bool oribi_os_peer_gone(int socket_fd)
{
    struct pollfd state = {.fd = socket_fd};
    return poll(&state, 1, 0) > 0 && (state.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}
