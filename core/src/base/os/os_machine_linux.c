/* Facts that Linux tells of itself: the limits of control groups, features of the kernel, kinds of file systems. */
#include "oribi/base/os/os_machine.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NUMBER_CAP = 64 };

/* The number in a file of one line; -1: "max", no such file, rubbish. */
static int64_t read_number(const char *dir, const char *name)
{
    char path[PATH_MAX];
    char line[NUMBER_CAP];
    char *end;
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof(path) || oribi_os_read_line(path, line, sizeof(line)) < 0)
        return -1;
    errno = 0;
    long long number = strtoll(line, &end, 10);
    return end == line || *end || errno || number < 0 ? -1 : (int64_t)number;
}

/* --- control groups --- */

/* Version 1 says "no limit" as the largest multiple of a page. */
static int64_t group_memory(const char *dir, bool is_v2)
{
    int64_t bytes = read_number(dir, is_v2 ? "memory.max" : "memory.limit_in_bytes");
    return bytes >= (int64_t)1 << 60 ? -1 : bytes;
}

static int64_t group_tasks_left(const char *dir, bool is_v2)
{
    (void)is_v2; /* both have the same files */
    int64_t max = read_number(dir, "pids.max");
    int64_t current = read_number(dir, "pids.current");
    if (max < 0)
        return -1;
    return current > max ? 0 : current > 0 ? max - current : max;
}

int64_t oribi__os_group_memory(const char *root)
{
    return oribi__os_groups_least(root, "memory", group_memory);
}

int64_t oribi__os_group_tasks_left(const char *root)
{
    return oribi__os_groups_least(root, "pids", group_tasks_left);
}

/* --- the machine --- */

uint64_t oribi__os_files_max(void)
{
    int64_t files = read_number("/proc/sys/fs", "file-max");
    return files < 0 ? UINT64_MAX : (uint64_t)files;
}

static bool has_memfd(void)
{
    int fd = oribi_os_lift(memfd_create("oribi", MFD_CLOEXEC));
    oribi_os_close(fd);
    return fd >= 0;
}

/* Arguments that the kernel refuses, if it knows the call. */
static bool has_openat2(void)
{
#ifdef SYS_openat2
    return syscall(SYS_openat2, -1, "", NULL, 0) == 0 || (errno != ENOSYS && errno != EPERM);
#else
    return false;
#endif
}

void oribi__machine_features(struct oribi_machine *machine)
{
    int is_subreaper;
    machine->has_memfd = has_memfd();
    machine->has_subreaper = prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0) == 0;
    machine->has_openat2 = has_openat2();
    machine->has_proc = access("/proc/self/stat", R_OK) == 0;
}

int oribi_disk_look(const char *folder, struct oribi_disk *disk)
{
    struct statfs info;
    if (statfs(folder, &info) < 0)
        return oribi_os_fail();
    disk->free_bytes = (int64_t)info.f_bavail * (int64_t)info.f_bsize;
    disk->is_memory = (uint32_t)info.f_type == TMPFS_MAGIC || (uint32_t)info.f_type == RAMFS_MAGIC;
    return 0;
}
