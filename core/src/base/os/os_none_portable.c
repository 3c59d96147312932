/* Functions that only some systems have, and this build does without: each function gives the answer that its header
 * has for that. */
#include "oribi/base/os/os.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os_machine.h"
#include "oribi/base/os/os_process.h"
#include "oribi/base/os/os_watch.h"

#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int absent(const char *what)
{
    return oribi_os_fail_saying("this system has no %s", what);
}

/* --- os.h: descriptors and files --- */

int oribi_os_open_again(int fd, int *own)
{
    return absent("second open file for a descriptor");
}

bool oribi_os_can_splice(void)
{
    return false;
}

ssize_t oribi_os_splice_now(const int pipe_fds[2], int pipe_fd, const char *p, size_t n)
{
    return absent("splice");
}

int oribi__os_open_unnamed(const char *dir)
{
    return absent("file without a name");
}

int oribi_os_reopen(int fd)
{
    return absent("second open file for a file without a name");
}

int oribi_os_link(int fd, const char *path)
{
    return absent("name for a file that has none");
}

/* --- os.h: machine and processes --- */

void oribi_os_trim_memory(void)
{
}

int64_t oribi_os_thread_waits(void)
{
    return -1;
}

uint32_t oribi__os_cpu_quota(const char *root)
{
    return 0;
}

uint32_t oribi_os_cpu_count(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

bool oribi_os_adopts_orphans(void)
{
    return false;
}

int oribi_os_become_subreaper(void)
{
    return absent("subreaper");
}

/* --- os.h: where a thread stands --- */

#ifdef SIGRTMAX /* an option of POSIX */
enum { PRIVATE = 3, RUNTIME = 4, SAMPLE = 5 };

static int from_the_end(int n)
{
    return SIGRTMAX - n;
}
#else
enum { PRIVATE, RUNTIME, SAMPLE };

static int from_the_end(int n)
{
    return 0;
}
#endif

int oribi_os_private_signal(void)
{
    return from_the_end(PRIVATE);
}

int oribi_os_runtime_signal(void)
{
    return from_the_end(RUNTIME);
}

int oribi_os_sample_signal(void)
{
    return from_the_end(SAMPLE);
}

const void *oribi_os_interrupted(const void *context)
{
    return context;
}

void oribi_os_backtrace_prepare(void)
{
}

bool oribi_os_backtrace_is_lockless(void)
{
    return false;
}

int oribi_os_native_addresses(const void *interrupted, void **dst, int max)
{
    return 0;
}

size_t oribi_os_native_name(void *address, char *dst, size_t cap)
{
    return 0;
}

/* --- os_process.h --- */

bool oribi_process_shares(pid_t pid, struct oribi_process_shares *shares)
{
    return false;
}

int64_t oribi_process_descriptors(pid_t pid)
{
    return -1;
}

/* --- os_machine.h --- */

uint64_t oribi__os_files_max(void)
{
    return UINT64_MAX;
}

int64_t oribi__os_group_memory(const char *root)
{
    return -1;
}

int64_t oribi__os_group_tasks_left(const char *root)
{
    return -1;
}

/* They are missing, and not missed. */
void oribi__machine_features(struct oribi_machine *machine)
{
    struct oribi_process_look look;
    oribi_process_look(getpid(), &look);
    machine->has_memfd = true;
    machine->has_subreaper = true;
    machine->has_openat2 = true;
    machine->has_proc = true;
    machine->cannot_measure = look.resident_bytes == 0;
}

int oribi_disk_look(const char *folder, struct oribi_disk *disk)
{
    struct statvfs info;
    if (statvfs(folder, &info) < 0)
        return oribi_os_fail();
    *disk = (struct oribi_disk){.free_bytes = (int64_t)info.f_bavail * (int64_t)info.f_frsize};
    return 0;
}

/* --- os_process.h --- */

pid_t oribi_os_thread_id(pthread_t thread)
{
    return 0;
}

bool oribi_os_thread_look(pid_t pid, pid_t tid, struct oribi_os_thread_state *out)
{
    *out = (struct oribi_os_thread_state){.interruption = ORIBI_OS_CUT_SHORT};
    return false;
}

bool oribi_os_thread_waited(const struct oribi_os_thread_state *before, const struct oribi_os_thread_state *after)
{
    return false;
}

int oribi_os_thread_signal(pid_t pid, pid_t tid, int signal_number)
{
    return absent("signal to a thread of another process");
}

pid_t oribi_os_thread_self(void)
{
    return 0;
}

/* --- os_watch.h --- */

bool oribi_os_watches(void)
{
    return false;
}

int oribi_os_watch_open(struct oribi_os_watch *watch)
{
    watch->fd = -1;
    return absent("reports of changed files");
}

void oribi_os_watch_close(struct oribi_os_watch *watch)
{
    watch->fd = -1;
}

int oribi_os_watch_add(const struct oribi_os_watch *watch, const char *folder)
{
    return absent("reports of changed files");
}

void oribi_os_watch_read(const struct oribi_os_watch *watch, oribi_os_watch_fn report, void *self)
{
}
