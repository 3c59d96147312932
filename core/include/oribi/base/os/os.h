/* The operating system, as far as it differs between systems or speaks errno. os.c and os_descriptors.c are POSIX;
 * os_linux.c, os_listen_linux.c, os_cpu_linux.c, os_poll_linux.c and os_backtrace_linux.c hold what only Linux has.
 * A build for another system (ORIBI_OS in the Makefile) has os_portable.c, os_listen_portable.c, os_none_portable.c in
 * their place, with os_bsd.c for macOS and the BSDs or os_calls_portable.c elsewhere; os_library.c is for all. All turn
 * errno into a code of error.h. errno does not travel: the few other sources that make system calls of their own look
 * at it right behind the call (ERRNO in tools/style names them).
 *
 * Results: 0 or a count >= 0, ORIBI_AGAIN (would block), ORIBI_ECLOSED (the peer is gone), ORIBI_ENOMEM, ORIBI_ELIMIT
 * (out of descriptors), ORIBI_ELOST (EBADF, ENOTSOCK: the application has closed the descriptor), else ORIBI_ESYS.
 * After a negative result oribi_os_error_text() has the words. A call broken off by a signal is begun again, except
 * where said. Every descriptor given is CLOEXEC. */
#ifndef ORIBI_BASE_OS_OS_H
#define ORIBI_BASE_OS_OS_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* For a system call made elsewhere that has just failed: keeps errno for oribi_os_error_text() and gives its code,
 * never 0. */
int oribi_os_fail(void);

/* Records a failure without an errno: keeps the text. Gives ORIBI_ESYS. */
int oribi_os_fail_saying(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Words for the last failure on this thread, lower case: "address already in use". Lives until the next failure on
 * this thread. */
const char *oribi_os_error_text(void);

/* errno and the last failure on this thread, for functions that must leave both as they were. */
struct oribi_os_error {
    int number;
    int last;
};
struct oribi_os_error oribi_os_error_save(void);
void oribi_os_error_restore(struct oribi_os_error error);

/* Was the last failure on this thread that the machine lacks the address or its whole family? */
bool oribi_os_address_missing(void);

/* Was the last failure on this thread that the process lacks a right (EACCES)? */
bool oribi_os_forbidden(void);

/* Descriptors */

void oribi_os_close(int fd); /* takes fd; -1 is allowed */
int oribi_os_set_nonblock(int fd, bool on);
int oribi_os_set_cloexec(int fd, bool on);

int oribi__os_lift_slow(int fd);        /* private */
int oribi__os_lift_high(int fd);        /* private; keeps errno */
extern atomic_int oribi__os_raising_fd; /* private: the first descriptor at which the soft limit is raised */

/* For every descriptor that a system call has just given, or its failure (negative: passed through, errno kept).
 * The application, or the program that started us, may have closed a standard stream, and the new descriptor has got
 * its number: what a library prints there would go to a client. Then this gives a CLOEXEC copy above 2 instead and
 * leaves the null device on all free standard streams; -1 with errno when there is no room for the copy. Raises the
 * soft limit of descriptors where oribi_os_allow_descriptors() has said so. */
static inline int oribi_os_lift(int fd)
{
    bool high = fd >= atomic_load_explicit(&oribi__os_raising_fd, memory_order_relaxed);
    return __builtin_expect((unsigned)fd <= 2 || high, 0) ? oribi__os_lift_slow(fd) : fd;
}

/* Lifts two descriptors as oribi_os_lift() does one, with the result of the call that made them: 0, or -1 with errno
 * and neither of them open. */
int oribi_os_lift_pair(int result, int fds[2]);

/* Puts the null device on those of the descriptors 0 to 2 that are closed. */
void oribi_os_fill_standard_streams(void);

/* Lets this process and its children have `count` descriptors, or as many as the hard limit allows (setrlimit(2)).
 * Never lowers the soft limit. Returns how many they are. */
uint64_t oribi_os_want_descriptors(uint64_t count);

/* Defers oribi_os_want_descriptors() until half of the soft limit is in use. Programs that the process starts get its
 * limits, and a high one makes some slow (they close all numbers up to it) and breaks those that use select(2). Raise:
 * raises the soft limit at once; true if that has changed it. Restore: sets the soft limit from before the raise, for a
 * child; after fork(2), async-signal-safe. */
void oribi_os_allow_descriptors(uint64_t count);
bool oribi_os_raise_descriptors(void);
void oribi_os_restore_descriptors(void);

/* Fills dst with random bytes (getrandom(2)), at most 256. 0, or ORIBI_ESYS. */
int oribi_os_random(void *dst, size_t n);

/* Keeps whole pages with secrets, of a mapping of the caller's, out of the swap (mlock(2)), and where the system can
 * out of children and core files (madvise(2)). Each may fail: then they are as any other memory of the process. */
void oribi_os_seclude(void *p, size_t n);

/* memmem(3) and memrchr(3), which not every system has. */
void *oribi_os_memmem(const void *in, size_t n, const void *what, size_t what_n);
void *oribi_os_memrchr(const void *in, int byte, size_t n);

/* Waits as poll(2) does, for timeout_us at most, with this signal mask of the calling thread meanwhile. Where the
 * system cannot do both at once, a signal of the moment before ends nothing. The number of descriptors, or -1: a
 * signal. */
struct pollfd;
int oribi_os_poll_masked(struct pollfd *fds, size_t count, int64_t timeout_us, const sigset_t *mask);

/* Lets another process that is ready have this CPU. */
void oribi_os_yield(void);

/* A word in memory that processes share (futex(2)). wait: sleeps while the word holds `seen`, for timeout_ms at most;
 * it may return early, so look at the word again. wake: wakes one thread that sleeps on the word. */
void oribi_os_word_wait(_Atomic uint32_t *word, uint32_t seen, int timeout_ms);
void oribi_os_word_wake(_Atomic uint32_t *word);

/* Bytes read (0: end of file) or written, possibly fewer than asked for. Writing to a closed peer gives
 * ORIBI_ECLOSED: sockets are written with MSG_NOSIGNAL, for pipes and oribi_os_send_file() SIGPIPE must be ignored.
 * A vector may have any count; at most IOV_MAX pieces of it are passed on. */
ssize_t oribi_os_read(int fd, void *dst, size_t n);
ssize_t oribi_os_read_at(int fd, void *dst, size_t n, int64_t offset); /* pread(2) */
ssize_t oribi_os_peek(int socket_fd, void *dst, size_t n);             /* leaves them there; does not wait */
ssize_t oribi_os_write(int fd, const void *p, size_t n);
int oribi_os_write_all(int fd, const void *p, size_t n); /* 0: all of them; the descriptor waits. Else a code */
ssize_t oribi_os_copy_range(int from_fd, int64_t from, int to_fd, size_t n); /* in the kernel; of regular files */
ssize_t oribi_os_write_vec(int fd, const struct iovec *vec, size_t count);
ssize_t oribi_os_send_vec(int socket_fd, const struct iovec *vec, size_t count);

/* As oribi_os_read_at() of a regular file, but never waits for a disk (preadv2(2), RWF_NOWAIT). ORIBI_AGAIN: the bytes
 * are not in memory. ORIBI_EINVAL: this file, or this system, does not tell. will_need: has the system fetch them
 * meanwhile (posix_fadvise(2)). */
ssize_t oribi_os_read_at_now(int fd, void *dst, size_t n, int64_t offset);
void oribi_os_will_need(int fd, int64_t offset, int64_t n);

/* Is it a regular file? May it be read, and not written? */
bool oribi_os_is_regular(int fd);
bool oribi_os_is_read_only(int fd);

/* Sends as oribi_os_send_vec() does when more follows at once: the kernel may wait with a packet that is not full
 * (MSG_MORE, send(2)). */
ssize_t oribi_os_send_vec_more(int socket_fd, const struct iovec *vec, size_t count);

/* Bytes that the peer has not yet taken from a socket of ours: for TCP those not acknowledged, for a unix socket
 * those not read (in the kernel's own measure). Only good for seeing whether it grows less. ORIBI_ESYS where the
 * system does not tell. */
int64_t oribi_os_send_queue(int socket_fd);

/* Do both stand for the same file (not necessarily the same open file)? */
bool oribi_os_same_file(int fd, int other_fd);

/* The file that a descriptor stands for, to find out later whether it still does: an application may have closed the
 * descriptor, and opened another file under its number. Sockets, pipes and files are told apart; of eventfds and epolls
 * only that they are one of those. Of a descriptor that is not open nothing is noted. oribi_os_is_marked() leaves errno
 * and the last error's text alone. */
struct oribi_fd_mark {
    uint64_t device;
    uint64_t inode;
};
void oribi_os_mark(int fd, struct oribi_fd_mark *mark);
bool oribi_os_is_marked(int fd, const struct oribi_fd_mark *mark);

/* One state of a file's content, as far as the file system's clock can tell. oribi_os_file_has(): does the descriptor
 * stand for that file, and has nobody written to its bytes since? A longer file counts as one that was appended to, as
 * logs and downloads are. One system call; errno and the last error's text stay. */
struct oribi_file_state {
    struct oribi_fd_mark mark;
    int64_t size;
    int64_t mtime_s;
    uint32_t mtime_ns;
};
bool oribi_os_file_has(int fd, const struct oribi_file_state *state);

/* Locks of an open file, which forked processes share and only closing all copies ends (fcntl(2), open file
 * description locks). query: writes the lock that stands in its way into *lock. try: 0 or a code. */
struct flock;
int oribi_os_lock_query(int fd, struct flock *lock);
int oribi_os_lock_try(int fd, struct flock *lock);

/* New descriptors, or a negative code; errno stays as the failed call has left it. socket: of this family and type
 * (socket(2)). socket_pair: two unix sockets, connected to each other. pipe: non-blocking on both ends. */
int oribi_os_socket(int family, int type, bool nonblock);
int oribi_os_socket_pair(int type, bool nonblock, int fds[2]);
int oribi_os_pipe(int fds[2]);

/* The type of unix sockets that keep records apart: SOCK_SEQPACKET. Where the system has none, SOCK_DGRAM for several
 * readers (`shared`), which nothing tells of the other side's end, and SOCK_STREAM for one, which has to find the
 * records itself. */
int oribi_os_record_type(bool shared);

/* Receives without waiting; descriptors that come with it are CLOEXEC, and may be 0 to 2: oribi_os_lift(). The number
 * of bytes, or a negative code. */
ssize_t oribi_os_receive(int socket_fd, struct msghdr *message);

/* Gives a second descriptor for the same open file, above those of the standard streams, or a negative code. */
int oribi_os_dup(int fd);

/* True if `count` (at most 4) descriptors more can be opened at this moment; found out with duplicates of fd. */
bool oribi_os_can_open(int fd, int count);

/* For sinks (sink.h), without waiting and async-signal-safe. ORIBI_AGAIN: no room.
 * open_again: an open file of our own for what `fd` writes to, non-blocking, CLOEXEC; not for sockets, and not where
 * the system does not allow it.
 * splice_now: at most PIPE_BUF bytes into a pipe, all or nothing, through a small pipe that only the caller uses and
 * that is empty before and after.
 * can_splice: whether the system has that. */
enum oribi_fd_kind { ORIBI_FD_FILE, ORIBI_FD_PIPE, ORIBI_FD_SOCKET, ORIBI_FD_OTHER };
enum oribi_fd_kind oribi_os_fd_kind(int fd);
int oribi_os_open_again(int fd, int *own);
bool oribi_os_can_splice(void);
ssize_t oribi_os_splice_now(const int pipe_fds[2], int pipe_fd, const char *p, size_t n);
ssize_t oribi_os_send_now(int socket_fd, const char *p, size_t n);
ssize_t oribi_os_write_polled(int fd, const char *p, size_t n);

/* Has the peer of a connection gone for good: reset it, or closed both directions? Not when it only finished
 * sending. */
bool oribi_os_peer_gone(int socket_fd);

/* The state of a socket's peer, in more detail than oribi_os_peer_gone(). ORIBI_PEER_FINISHED: the peer has sent its
 * last byte, and all of them have been read. TCP cannot tell whether such a peer still reads; of a unix socket's peer
 * the state says so. Consumes neither bytes nor errors. */
enum oribi_peer_state { ORIBI_PEER_OPEN, ORIBI_PEER_FINISHED, ORIBI_PEER_GONE };
enum oribi_peer_state oribi_os_peer_state(int socket_fd);

/* Sends up to n bytes of the regular file in_fd from *offset on, which moves along; 0 when the file ended before. */
ssize_t oribi_os_send_file(int socket_fd, int in_fd, int64_t *offset, int64_t n);

/* Gives the next waiting connection, non-blocking. ORIBI_AGAIN when there is none, ORIBI_ECLOSED when that
 * connection was reset while it waited (try again), ORIBI_ELIMIT when descriptors are out. `peer` may be NULL. */
int oribi_os_accept(int listen_fd, int *fd, struct sockaddr_storage *peer, socklen_t *peer_len);

/* Listening socket: connections wait in the kernel until their first bytes are there, at most about `seconds`. No-op
 * elsewhere than Linux. */
int oribi_os_defer_accept(int tcp_fd, int seconds);

/* The end of a listening socket, for all processes that hold it. Connections that were made before can still be
 * accepted until oribi_os_listen_end().
 *
 * stop_accepting: no new connection begins. A unix socket refuses from now on. TCP drops new SYN packets, which clients
 * repeat after a second, and completes connections whose SYN came before; where the system cannot do that, nothing
 * happens.
 * awaits: are there TCP connections to be accepted, or (`half_open`) such as the kernel still holds back? False for
 * unix sockets, and where it is not known.
 * end: TCP refuses from now on and resets connections that were not accepted; accept fails on every copy. A unix socket
 * has ended with stop_accepting. */
void oribi_os_listen_stop_accepting(int listen_fd);
bool oribi_os_listen_awaits(int listen_fd, bool half_open);
void oribi_os_listen_end(int listen_fd);

/* Gives a stream socket that is bound to a TCP address, whose port `port` replaces: non-blocking, CLOEXEC, with
 * SO_REUSEADDR and what `how` asks for, a sum of the words. A descriptor, or a code. */
enum { ORIBI_BIND_REUSE_PORT = 1, ORIBI_BIND_IPV6_ALONE = 2 };
struct sockaddr;
int oribi_os_bind_tcp(const struct sockaddr *address, size_t n, uint16_t port, unsigned how);

/* Does a process listen on the unix socket file at `path` (at most 107 bytes)? 1; 0: the file is stale or gone; or a
 * code. */
int oribi_os_unix_answers(const char *path);

/* Gives the file of a unix socket that this process has just bound to another user and group (-1: as it is). `device`
 * and `inode` are what stat(2) has told of it. A file that has come into its place meanwhile is left alone, a link is
 * not followed; where a file cannot be opened just to be looked at, only as far as two looks show. 0, or a code. */
int oribi_os_give_socket_file(const char *path, uint64_t device, uint64_t inode, uid_t uid, gid_t gid);

/* Gives another descriptor for reading and writing of a file of ours, which may be unlinked, with an offset of its own.
 * A descriptor, or ORIBI_ESYS, as where there is no /proc. */
int oribi_os_reopen(int fd);

/* Gives an unlinked file of ours a name, where its file system can. 0, or ORIBI_ESYS. */
int oribi_os_link(int fd, const char *path);

/* Gives an unlinked file, empty, for reading and writing, in oribi_os_temp_dir(). */
int oribi_os_temp_file(int *fd);

/* Gives a file as oribi_os_temp_file() does, in a folder of the caller's choice: for a thread that must not look at the
 * environment, which another may be changing (getenv(3)). */
int oribi_os_temp_file_in(const char *dir, int *fd);

/* TMPDIR, or /tmp. Lives until the environment changes. */
const char *oribi_os_temp_dir(void);

/* The code for a file of ours that could not be made or written just now: ORIBI_EFULL when there is no room, else
 * ORIBI_ESTORE. */
int oribi_os_store_failed(void);

/* Writes the absolute form of `path`, seen from the working directory of this moment, without resolving links.
 * NUL-terminated. */
int oribi_os_absolute_path(const char *path, char *dst, size_t cap);

/* Is this a regular file? Then gives its size. */
bool oribi_os_is_file(int fd, int64_t *size);

/* Gives the file `path` opened for reading, whatever it is: a named pipe does not wait for its writer. */
int oribi_os_open_read(const char *path, int *fd);

/* One line of text (at most cap - 1 bytes, NUL-terminated, newline cut) of a small file such as those in /proc. */
int oribi_os_read_line(const char *path, char *dst, size_t cap);

/* Wakes a thread that waits for read_fd to become readable. One descriptor where the system has an eventfd, else a
 * pipe. */
struct oribi_wake {
    int read_fd;
    int write_fd; /* private; may equal read_fd */
};
int oribi_wake_create(struct oribi_wake *wake);

/* Makes read_fd readable. Async-signal-safe, thread-safe; many calls count as one. */
void oribi_wake_notify(const struct oribi_wake *wake);

/* Makes read_fd unreadable again; true when it had been notified. */
bool oribi_wake_clear(const struct oribi_wake *wake);

void oribi_wake_destroy(struct oribi_wake *wake);

/* Machine */

/* Whose system calls this build makes: "linux", "bsd", or "portable" (the head of this page). A constant. */
const char *oribi_os_layer(void);

/* CPUs this process may use: affinity, cut by the CPU quota of its control group rounded up. At least 1. */
uint32_t oribi_os_cpu_count(void);

/* How often the calling thread has given up the processor because it waited for something, since it began
 * (getrusage(2), RUSAGE_THREAD: ru_nvcsw). -1: not known. A system call. */
int64_t oribi_os_thread_waits(void);

/* The longest accept queue the kernel grants (listen(2) cuts longer ones silently); 4096 where it cannot be read. */
uint32_t oribi_os_backlog_max(void);

/* The file of the program or library that this code is in, as the loader knows it; NULL: not known. */
const char *oribi_os_library(void);

/* Gives freed memory back to the system, where the C library keeps it: after a burst, or before a fork, so that the
 * children do not copy its pages. */
void oribi_os_trim_memory(void);

/* Processes */

/* The process that connected a unix socket. */
struct oribi_peer {
    pid_t pid; /* 0 where the system does not tell */
    uid_t uid;
    gid_t gid;
};
int oribi_os_peer(int unix_fd, struct oribi_peer *peer);

/* Orphans among our descendants become our children instead of init's. */
int oribi_os_become_subreaper(void);

/* Does this system have such a thing at all? Where not, the process between a mold and its worker stays as the worker's
 * parent, and reports its end (supervisor/reaper.c). */
bool oribi_os_adopts_orphans(void);

/* May a process of this system fork and go on in the child whatever libraries it has loaded? Not on macOS, which ends
 * such children once Objective-C was initialised in their parent. */
bool oribi_os_forks_safely(void);

/* The kernel sends us `signal_number` when the thread that forked us ends. Returns ORIBI_ECLOSED when our parent is
 * already not `parent`. No signal comes where the system has no such thing. */
int oribi_os_signal_on_parent_death(int signal_number, pid_t parent);

/* Whether the calling thread is the one that the process began with. */
bool oribi_os_is_main_thread(void);

/* Gives a descriptor that is readable while one of the two is. Borrows both. */
int oribi_os_either(int first_fd, int second_fd, int *fd);

/* A signal number that programs leave alone, with which one thread of ours interrupts another; 0 where there is
 * none. */
int oribi_os_private_signal(void);

/* Another such number, which makes a language runtime look for interrupts; 0 where there is none. */
int oribi_os_runtime_signal(void);

/* The instruction at which a signal handler interrupted its thread, from the handler's third argument. Never NULL. */
const void *oribi_os_interrupted(const void *context);

/* A third, with which a thread of ours looks where another one stands, and with which the supervisor wakes the helper;
 * 0 where there is none. */
int oribi_os_sample_signal(void);

/* Native frames. Once prepare was called, none of these takes memory.
 * addresses: gives the innermost of the calling thread, from `interrupted` on outwards, at most `max`; returns how
 * many, 0 where the system cannot tell. For signal handlers.
 * name: writes one of them as a line, "C: function (library)"; returns its length, 0 when it does not fit.
 * is_lockless: neither takes a lock, so that a thread which is to go on may be asked; else the loader's may be taken,
 * for which a process that ends anyway may wait. */
void oribi_os_backtrace_prepare(void);
bool oribi_os_backtrace_is_lockless(void);
int oribi_os_native_addresses(const void *interrupted, void **dst, int max);
size_t oribi_os_native_name(void *address, char *dst, size_t cap);

/* private: shared by os.c, os_<system>.c and their tests */

/* CPUs the control group's quota allows, 0 when there is none. `root` stands before /proc and /sys. */
uint32_t oribi__os_cpu_quota(const char *root);

/* Makes a file of the name that mkstemp(3) completes, CLOEXEC; its descriptor as the system gives it, or -1 with
 * errno. */
int oribi__os_make_named(char *path);

/* exec(2) of a command that is looked for in PATH. Comes back when that fails, with errno. */
void oribi__os_exec(char **argv, char **environment);

/* The flag of posix_spawn(3) for a session of its own, or a process group where that is all there is. */
short oribi__os_spawn_apart(void);

/* For systems without a call of their own for it: send_copy is oribi_os_send_file() through a buffer, poll_between is
 * oribi_os_poll_masked() with the mask set before and after, peer_user is oribi_os_peer() without the pid, flag_passed
 * sets close-on-exec on the descriptors that a message has brought. */
ssize_t oribi__os_send_copy(int socket_fd, int in_fd, int64_t *offset, int64_t n);
int oribi__os_poll_between(struct pollfd *fds, size_t count, int64_t timeout_us, const sigset_t *mask);
int oribi__os_peer_user(int unix_fd, struct oribi_peer *peer);
void oribi__os_flag_passed(struct msghdr *message);
struct stat;
/* Is it that socket still, made by this user, without a second name? 0, or a code. */
int oribi__os_is_new_socket(const struct stat *entry, uint64_t device, uint64_t inode);

/* Opens a file in `dir` that never had a name; its descriptor, or negative where that cannot be done. */
int oribi__os_open_unnamed(const char *dir);

#endif
