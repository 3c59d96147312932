/* Threads as Linux shows them in /proc/PID/task/TID (proc(5)). */
#include "oribi/base/os/os_process.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 4096 };

struct call {
    long number;
    const char *name;
    enum oribi_os_interruption interruption;
};

/* A call that is missing here is taken for one that a signal would cut short. */
static const struct call calls[] = {
    {SYS_read, "read", ORIBI_OS_UNHARMED},
    {SYS_readv, "readv", ORIBI_OS_UNHARMED},
    {SYS_pread64, "pread", ORIBI_OS_UNHARMED},
    {SYS_write, "write", ORIBI_OS_UNHARMED},
    {SYS_writev, "writev", ORIBI_OS_UNHARMED},
    {SYS_pwrite64, "pwrite", ORIBI_OS_UNHARMED},
    {SYS_recvfrom, "recv", ORIBI_OS_UNHARMED},
    {SYS_recvmsg, "recvmsg", ORIBI_OS_UNHARMED},
    {SYS_sendto, "send", ORIBI_OS_UNHARMED},
    {SYS_sendmsg, "sendmsg", ORIBI_OS_UNHARMED},
    {SYS_wait4, "wait4", ORIBI_OS_UNHARMED},
    {SYS_waitid, "waitid", ORIBI_OS_UNHARMED},
    {SYS_flock, "flock", ORIBI_OS_UNHARMED},
    {SYS_fcntl, "fcntl", ORIBI_OS_UNHARMED},
    {SYS_openat, "openat", ORIBI_OS_UNHARMED},
    {SYS_futex, "futex", ORIBI_OS_UNHARMED}, /* locks of the C library's, which go on */
#ifdef SYS_poll
    {SYS_poll, "poll", ORIBI_OS_REPEATED},
    {SYS_epoll_wait, "epoll_wait", ORIBI_OS_REPEATED},
    {SYS_pause, "pause", ORIBI_OS_CUT_SHORT},
#endif
#ifdef SYS_select
    {SYS_select, "select", ORIBI_OS_REPEATED},
#endif
#ifdef SYS__newselect
    {SYS__newselect, "select", ORIBI_OS_REPEATED},
#endif
    {SYS_ppoll, "ppoll", ORIBI_OS_REPEATED},
    {SYS_pselect6, "pselect", ORIBI_OS_REPEATED},
    {SYS_epoll_pwait, "epoll_wait", ORIBI_OS_REPEATED},
    {SYS_nanosleep, "nanosleep", ORIBI_OS_CUT_SHORT},
    {SYS_clock_nanosleep, "clock_nanosleep", ORIBI_OS_CUT_SHORT},
    {SYS_connect, "connect", ORIBI_OS_CUT_SHORT},
    {SYS_accept4, "accept4", ORIBI_OS_CUT_SHORT},
#ifdef SYS_accept
    {SYS_accept, "accept", ORIBI_OS_CUT_SHORT},
#endif
    {SYS_rt_sigtimedwait, "sigtimedwait", ORIBI_OS_CUT_SHORT},
    {SYS_rt_sigsuspend, "sigsuspend", ORIBI_OS_CUT_SHORT},
#ifdef SYS_send
    {SYS_send, "send", ORIBI_OS_UNHARMED},
    {SYS_recv, "recv", ORIBI_OS_UNHARMED},
#endif
#ifdef SYS_fcntl64
    {SYS_fcntl64, "fcntl", ORIBI_OS_UNHARMED},
#endif
#ifdef SYS_futex_time64 /* a 32-bit processor's calls with times of 64 bits */
    {SYS_futex_time64, "futex", ORIBI_OS_UNHARMED},
    {SYS_ppoll_time64, "ppoll", ORIBI_OS_REPEATED},
    {SYS_pselect6_time64, "pselect", ORIBI_OS_REPEATED},
    {SYS_clock_nanosleep_time64, "clock_nanosleep", ORIBI_OS_CUT_SHORT},
    {SYS_rt_sigtimedwait_time64, "sigtimedwait", ORIBI_OS_CUT_SHORT},
#endif
};

pid_t oribi_os_thread_self(void)
{
    return gettid();
}

/* A clock of a thread has the thread's number in it (the kernel's encoding, which pthread_getcpuclockid(3) gives away
 * for any thread, and gettid(2) only for the caller). */
void oribi_os_thread_name(const char *name)
{
    (void)pthread_setname_np(pthread_self(), name); /* without a name it works as well */
}

int oribi_os_thread_enter_dir(const char *path)
{
    return unshare(CLONE_FS) < 0 || chdir(path) < 0 ? oribi_os_fail() : 0;
}

pid_t oribi_os_thread_id(pthread_t thread)
{
    clockid_t clock;
    if (pthread_getcpuclockid(thread, &clock) != 0)
        return 0;
    return (pid_t) ~((unsigned)clock >> 3 | 0xe0000000U);
}

int oribi_os_thread_signal(pid_t pid, pid_t tid, int signal_number)
{
    return syscall(SYS_tgkill, pid, tid, signal_number) < 0 ? oribi_os_fail() : 0;
}

/* Gives the text of a file of the thread's, at most what fits. */
static bool read_file(pid_t pid, pid_t tid, const char *name, char *text, size_t cap)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name); /* fits */
    int fd = oribi_os_lift(open(path, O_RDONLY | O_CLOEXEC));
    ssize_t n = fd < 0 ? -1 : oribi_os_read(fd, text, cap - 1);
    oribi_os_close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static uint64_t number_behind(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static bool has_timeout(int fd, int option)
{
    struct timeval time = {0};
    socklen_t n = sizeof(time);
    return getsockopt(fd, SOL_SOCKET, option, &time, &n) == 0 && (time.tv_sec || time.tv_usec);
}

/* A socket's own time-out ends the call with EINTR. Only of this process we can know. */
static bool is_timed(const struct oribi_os_thread_state *out)
{
    static const char *const reading[] = {"read", "readv", "recv", "recvmsg"};
    static const char *const writing[] = {"write", "writev", "send", "sendmsg"};
    for (size_t i = 0; i < sizeof(reading) / sizeof(reading[0]); i++) {
        if (strcmp(out->call, reading[i]) == 0)
            return has_timeout((int)out->args[0], SO_RCVTIMEO);
        if (strcmp(out->call, writing[i]) == 0)
            return has_timeout((int)out->args[0], SO_SNDTIMEO);
    }
    return false;
}

/* "0 0x3 0x7f… …", "running", or "-1 …" outside of any call. */
static void read_call(const char *text, struct oribi_os_thread_state *out)
{
    char *end;
    long number = strtol(text, &end, 10);
    out->interruption = ORIBI_OS_UNHARMED;
    if (end == text || number < 0)
        return;
    for (int i = 0; i < 2; i++)
        out->args[i] = (long)strtoul(end, &end, 16);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (calls[i].number != number)
            continue;
        (void)snprintf(out->call, sizeof(out->call), "%s", calls[i].name); /* fits */
        out->interruption = calls[i].interruption;
        return;
    }
    (void)snprintf(out->call, sizeof(out->call), "system call %ld", number); /* fits */
    out->interruption = ORIBI_OS_CUT_SHORT;
}

bool oribi_os_thread_look(pid_t pid, pid_t tid, struct oribi_os_thread_state *out)
{
    char text[FILE_BYTES_MAX];
    *out = (struct oribi_os_thread_state){.interruption = ORIBI_OS_CUT_SHORT};
    if (!read_file(pid, tid, "status", text, sizeof(text)))
        return false;
    const char *state = strstr(text, "\nState:");
    const char *letter = state ? state + 7 + strspn(state + 7, " \t") : "";
    out->state = *letter;
    out->switches =
        number_behind(text, "\nvoluntary_ctxt_switches:") + number_behind(text, "\nnonvoluntary_ctxt_switches:");
    if (read_file(pid, tid, "syscall", text, sizeof(text)))
        read_call(text, out);
    else if (out->state == 'R')
        out->interruption = ORIBI_OS_UNHARMED;
    if (out->call[0] && pid == getpid() && is_timed(out))
        out->interruption = ORIBI_OS_CUT_SHORT;
    return true;
}

static bool waits(const struct oribi_os_thread_state *state)
{
    return state->state == 'S' || state->state == 'D' || state->state == 'T' || state->state == 't';
}

bool oribi_os_thread_waited(const struct oribi_os_thread_state *before, const struct oribi_os_thread_state *after)
{
    return waits(before) && waits(after) && before->switches == after->switches;
}
