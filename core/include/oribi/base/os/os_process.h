/* Processes (os_process.c, os_start.c), threads (os_thread_linux.c), and other programs that are run: commands
 * (os_command.c), a browser (os_browser.c). */
#ifndef ORIBI_BASE_OS_OS_PROCESS_H
#define ORIBI_BASE_OS_OS_PROCESS_H

#include "oribi/base/buf.h"

#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- os_process ---- */

/* This process and its start: command line, environment, working directory, user; and waiting for children. How it was
 * started is in os_start.c; the differences between systems are in os_linux.c, os_usage_linux.c and os_portable.c. */

enum { ORIBI_POLL_MAX = 96 };

/* How to start the same command again. */
struct oribi_start {
    char **argv;    /* NULL-terminated */
    char **environ; /* the same; as it was when the process started, whatever the program has set since */
    /* Absolute working directory; by its name in PWD where that leads there, so that a symbolic link that is
     * switched to a new release is followed. */
    char *dir;
    char *needed; /* a file without which the command cannot start; from `dir` where it is no whole path; NULL: none */
};

/* The working directory, absolute; by its name in PWD where that leads there. The caller frees it
 * (oribi_mem_free()). */
char *oribi_process_dir(void);

/* chdir(2). 0, or ORIBI_ESYS with one line in `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi_process_enter_dir(const char *dir, char *error);

/* Records how this process was started; `argv` is borrowed and comes with the environment of this moment unless
 * `environ_is_known` to the kernel still, NULL for the kernel's record of both. `dir` is the directory of the start
 * where the program has left it since, else NULL; borrowed. Call it before the process title is changed: runtimes
 * write titles over that record. 0, or ORIBI_ESYS with oribi_os_error_text(). */
int oribi_start_record(struct oribi_start *start, char *const *argv, bool environ_is_known, const char *dir);
void oribi_start_free(struct oribi_start *start);

/* Another environment, NULL-terminated, for a start that was recorded; borrowed. Its directory stays. */
void oribi_start_set_environ(struct oribi_start *start, char *const *list);

/* A file that must be there for each later start, borrowed: its absence is told by its name. */
void oribi_start_set_needed(struct oribi_start *start, const char *path);

/* Starts the command with `extra` ("NAME=value", NULL-terminated) set in its environment, and the descriptors `keep`
 * (count of them) open in it under their numbers; all others are CLOEXEC by our rule. Names in `extra` replace what
 * is there. Gives the pid of the child; its signals are blocked and have no handlers from its first moment on.
 * 0, ORIBI_ENOMEM or ORIBI_ESYS. A command that cannot be executed ends with code 127 and a line on stderr. */
int oribi_start_again(const struct oribi_start *start, char *const *extra, const int *keep, size_t keep_count,
                      pid_t *pid);

/* Becomes that command, in this process: with `extra`, `keep` and the working directory as above; the signals of `held`
 * (held_count of them) neither end it nor, where its language does not unblock them, get lost before it has handlers.
 * Returns when it cannot, with oribi_os_error_text(). Arrive: in that command, before handlers are installed, and again
 * when they are (`ready`): the signals are as ever. */
void oribi_start_become(const struct oribi_start *start, char *const *extra, const int *keep, size_t keep_count,
                        const int *held, size_t held_count);
void oribi_start_arrive(const int *held, size_t held_count, bool ready);

/* Private. Appends the strings of the command line, or of the environment, that the system has kept of this process's
 * start, each with its NUL: as this system tells them, from /proc, and out of what macOS tells (KERN_PROCARGS2). 0 or a
 * code of os.h; ORIBI_EINVAL for what cannot be read. */
int oribi__os_started(bool environment, struct oribi_buf *out);
int oribi__os_read_proc(bool environment, struct oribi_buf *out);
int oribi__os_split_started(struct oribi_slice all, bool environment, struct oribi_buf *out);

/* Changes to the group and user given by name or number (NULL: leave; the group defaults to the user's), for good.
 * 0, or ORIBI_EINVAL, ORIBI_ESYS with one line in `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi_process_switch_user(const char *user, const char *group, char *error);

/* uid and gid the two names stand for; -1 where none is given. Same results. */
int oribi_process_find_user(const char *user, const char *group, uid_t *uid, gid_t *gid, char *error);

/* The name of the user `uid`, written to dst; NULL when it has none or a longer one. */
const char *oribi_process_user_name(uid_t uid, char *dst, size_t cap);

/* Whether this process may become that user and group: refuses what oribi_process_switch_user() would fail with.
 * Same results. */
int oribi_process_check_user(const char *user, const char *group, char *error);

/* Reaps one child: pid -1 is any. `wait` blocks. Gives its pid, 0 when none has ended, or ORIBI_ESYS (no such
 * child). */
pid_t oribi_process_reap(pid_t pid, bool wait, int *status);

/* Reaps a child that was killed, waiting `ms` at most. False: the kernel still keeps the child (a disk that stands
 * still); it is left to init. */
bool oribi_process_reap_within(pid_t pid, int64_t ms);

/* A child that has ended and is still to be reaped: its pid, 0 when there is none, or ORIBI_ESYS (no child). */
pid_t oribi_process_ended(void);

/* Waits for the end of a child, which is not reaped yet. Gives its status as waitpid(2) does; false: no such child. */
bool oribi_process_await(pid_t pid, int *status);

/* There is no process of this number, not even one that is to be reaped; one that another user has is not ours. */
bool oribi_process_is_gone(pid_t pid);

/* True for a child of this process, or a child's child and so on to a depth that ours have; also where the kernel
 * does not tell (no /proc), and where orphans are adopted by another process than this one. */
bool oribi_process_is_below(pid_t pid);

/* Waits until one of the descriptors (at most ORIBI_POLL_MAX, negative ones skipped) is readable or at its end, or
 * the time is over (-1: never). Returns at a signal as well. */
void oribi_process_poll(const int *fds, size_t count, int64_t timeout_ms);

/* Waits as oribi_process_poll() does, and also until one of `out_fds` takes bytes or is at its end. At most
 * ORIBI_POLL_MAX in all. */
void oribi_process_poll_both(const int *fds, size_t count, const int *out_fds, size_t out_count, int64_t timeout_ms);

/* True when standard input is a terminal whose other side has hung up. */
bool oribi_process_terminal_gone(void);

/* True when one of the standard streams is a terminal. */
bool oribi_process_has_terminal(void);

/* Gives a descriptor of zeroed memory that processes can map together, with no name. 0 or a code of os.h. */
int oribi_process_shared_memory(size_t bytes, int *fd);

/* Gives such memory, sealed: its size cannot change, so that no process that maps it can be ended by another that cuts
 * it off (fcntl(2), F_ADD_SEALS). ORIBI_ESYS where the system has no seals. is_sealed: is it such memory of that
 * size? */
int oribi_process_sealed_memory(size_t bytes, int *fd);
bool oribi_process_is_sealed(int fd, size_t bytes);

/* How many bytes it has. 0 or a code of os.h. */
int oribi_process_shared_memory_size(int fd, size_t *bytes);

/* Resources that a process uses: memory that is resident, in bytes, and processor time since its start, of all its
 * threads. One read of a small file, for which the process need not stop. Both are 0 when the process is gone. */
void oribi_process_usage(pid_t pid, int64_t *resident_bytes, int64_t *cpu_ms);

/* Resources of a process, and more facts from the same file. All-zero when the process is gone. */
struct oribi_process_look {
    int64_t resident_bytes;
    int64_t cpu_ms;
    uint32_t threads; /* of the kernel's: helpers and those of the language are among them */
    bool stopped;     /* by a signal (SIGSTOP) or a tracer */
};
void oribi_process_look(pid_t pid, struct oribi_process_look *look);

/* How the memory of a process is shared, in bytes: its proportional share of all (PSS), what it alone has mapped,
 * what other processes have mapped too. The kernel visits every page for that: milliseconds for a large process, in
 * which it waits if it changes its memory map. False where the kernel does not tell (no permission, process gone). */
struct oribi_process_shares {
    int64_t proportional_bytes;
    int64_t own_bytes;
    int64_t shared_bytes;
};
bool oribi_process_shares(pid_t pid, struct oribi_process_shares *shares);

/* How many descriptors a process has open; -1 where the kernel does not tell. */
int64_t oribi_process_descriptors(pid_t pid);

/* ---- os_thread ---- */

/* The state of a thread, as the kernel tells it: whether it runs or waits, and in which system call. The source for
 * Linux is os_thread_linux.c. */

/* The effect of a signal handler with SA_RESTART on the system call that a thread waits in (signal(7)). */
enum oribi_os_interruption {
    ORIBI_OS_UNHARMED, /* the call goes on, or there is none */
    ORIBI_OS_REPEATED, /* it fails with EINTR, for which every program of the field is prepared: poll(2) and the like */
    ORIBI_OS_CUT_SHORT, /* it ends, and who waits there may not look why: sleeps, sockets with a time-out */
};

struct oribi_os_thread_state {
    char state;        /* 'R' runs, 'S' and 'D' wait, 'T' and 't' are stopped, 'Z' has ended; 0: not known */
    uint64_t switches; /* how often the thread has given or lost its processor */
    char call[32];     /* the system call that it waits in; "" where there is none, "system call N" */
    long args[2];      /* its first arguments */
    enum oribi_os_interruption interruption;
};

/* The kernel's number of a thread that is there. 0: not known. */
pid_t oribi_os_thread_id(pthread_t thread);

/* Looks at a thread of a process. False: there is none, or the kernel does not tell (no /proc). */
bool oribi_os_thread_look(pid_t pid, pid_t tid, struct oribi_os_thread_state *out);

/* True if the thread waited all the time between two looks: it has read and changed nothing of its memory. */
bool oribi_os_thread_waited(const struct oribi_os_thread_state *before, const struct oribi_os_thread_state *after);

/* Sends a signal to one thread of a process. 0 or ORIBI_ESYS (it is gone). */
int oribi_os_thread_signal(pid_t pid, pid_t tid, int signal_number);

/* The calling thread's kernel number. */
pid_t oribi_os_thread_self(void);

/* Names the calling thread for ps(1), top(1) and debuggers: 15 bytes at most, the process keeps its title
 * (pthread_setname_np(3)). */
void oribi_os_thread_name(const char *name);

/* Changes the working directory of the calling thread alone, which keeps it; of the whole process where threads have
 * none of their own. 0 or a code of os.h. */
int oribi_os_thread_enter_dir(const char *path);

/* ---- os_command ---- */

/* Running another program and taking what it prints, with bounds on its time and its output. No shell is between. */

struct oribi_command {
    char *const *argv; /* NULL-terminated; argv[0] is looked for in PATH where it has no slash */
    int input_fd;      /* its standard input, borrowed; -1: /dev/null */
    int64_t timeout_ms;
    char *output; /* what it prints goes there */
    size_t cap;   /* bytes that it may print */
    size_t len;   /* gives how long it is */
    /* private */
    int output_fd; /* -1: its output has ended */
    pid_t pid;     /* 0: it has ended */
    int status;
    bool reaped; /* the caller has reaped it: oribi_os_command_ended() */
    int64_t until_ms;
};

/* oribi_os_run_command() in steps, for a caller that does not wait. Start: 0, or ORIBI_EINVAL with `error`. Step: 0,
 * the program has ended well; ORIBI_AGAIN: not yet, call again when command->output_fd is readable or a child has died,
 * at the latest at until_ms; or ORIBI_EINVAL with `error`. Ended: tells whether the process that the caller has reaped
 * was this one. Stop: ends a program that is not wanted any more; nothing if it has ended. */
int oribi_os_command_start(struct oribi_command *command, char *error);
int oribi_os_command_step(struct oribi_command *command, char *error);
bool oribi_os_command_ended(struct oribi_command *command, pid_t pid, int status);
void oribi_os_command_stop(struct oribi_command *command);

/* Runs it to its end, in a session of its own. Standard error and the environment are the caller's. What is left of it,
 * with all that it has started, is killed when its time is over or its output too long. 0; or ORIBI_EINVAL with what
 * it did in `error` (ORIBI_ERROR_TEXT_CAP): "ended with exit code 3"; nothing of the output counts then. The caller
 * wipes output that is secret. */
int oribi_os_run_command(struct oribi_command *command, char *error);

/* Starts argv[0], looked for in PATH, in a session of its own, with no signal ignored or blocked, and with `files` done
 * first; *pid is the caller's to reap. 0 or an errno, as posix_spawn(3). For base. */
int oribi__os_spawn(char *const *argv, const posix_spawn_file_actions_t *files, pid_t *pid);

/* ---- os_browser ---- */

/* The browser of the user who has started this process, and the address under which neighbours reach the machine. */

/* Starts $BROWSER with the link (its first command; %s stands for the link), or xdg-open on a display, in a session of
 * its own and without our standard streams. The child is the caller's to reap. NULL; or why not, a constant. */
const char *oribi_os_open_browser(const char *link);

/* Writes the first IPv4 address of this machine that is not loopback. False: there is none. */
bool oribi_os_lan_address(char *dst, size_t cap);

#endif
