/* Limits of the process, its control groups and the machine; what a user may do with a file. */
#include "oribi/base/os_machine.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/magic.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    NUMBER_CAP = 64,
    GROUPS_MAX = 256, /* of one user; the rest is not looked at */
};

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

static uint64_t limit_of(int resource, bool is_hard)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
        return UINT64_MAX;
    rlim_t value = is_hard ? limit.rlim_max : limit.rlim_cur;
    return value == RLIM_INFINITY ? UINT64_MAX : (uint64_t)value;
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

void oribi_machine_look(struct oribi_machine *machine)
{
    int is_subreaper;
    int64_t files = read_number("/proc/sys/fs", "file-max");
    int64_t pages = sysconf(_SC_PHYS_PAGES);
    int64_t ram = pages > 0 ? pages * (int64_t)sysconf(_SC_PAGESIZE) : -1;
    int64_t group = oribi__os_group_memory("");
    bool is_less = group >= 0 && (ram < 0 || group < ram);
    *machine = (struct oribi_machine){
        .descriptors_max = limit_of(RLIMIT_NOFILE, true),
        .files_max = files < 0 ? UINT64_MAX : (uint64_t)files,
        .processes_max = limit_of(RLIMIT_NPROC, false),
        .file_bytes_max = limit_of(RLIMIT_FSIZE, false),
        .memory_bytes = is_less ? group : ram,
        .is_group_memory = is_less,
        .tasks_left = oribi__os_group_tasks_left(""),
        .cpus = oribi_os_cpu_count(),
        .backlog_max = oribi_os_backlog_max(),
        .has_memfd = has_memfd(),
        .has_subreaper = prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0) == 0,
        .has_openat2 = has_openat2(),
        .has_proc = access("/proc/self/stat", R_OK) == 0,
    };
}

int oribi_disk_look(const char *folder, struct oribi_disk *disk)
{
    struct statfs info;
    if (statfs(folder, &info) < 0)
        return oribi_os_fail();
    disk->free_bytes = (int64_t)info.f_bavail * (int64_t)info.f_bsize;
    disk->is_memory = info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC;
    return 0;
}

/* --- rights --- */

int oribi_os_may(const char *path, int may)
{
    int mode =
        (may & ORIBI_MAY_READ ? R_OK : 0) | (may & ORIBI_MAY_WRITE ? W_OK : 0) | (may & ORIBI_MAY_ENTER ? X_OK : 0);
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) < 0 ? oribi_os_fail() : 0;
}

struct who {
    uid_t uid;
    gid_t groups[GROUPS_MAX];
    int group_count;
};

static bool is_member(const struct who *who, gid_t gid)
{
    for (int i = 0; i < who->group_count; i++)
        if (who->groups[i] == gid)
            return true;
    return false;
}

/* The owner's bits count for the owner, also where they allow less than others' (path_resolution(7)). */
static int check_mode(const struct who *who, const char *path, int may)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return oribi_os_fail();
    if (who->uid == 0)
        return 0;
    int shift = info.st_uid == who->uid ? 6 : is_member(who, info.st_gid) ? 3 : 0;
    int granted = (int)(info.st_mode >> shift) & 7;
    if ((granted & may) == may)
        return 0;
    return oribi_os_fail_saying("%.120s has mode %03o, owner %u", path, (unsigned)info.st_mode & 0777,
                                (unsigned)info.st_uid);
}

int oribi_os_user_may(uid_t uid, gid_t gid, const char *path, int may)
{
    char real[PATH_MAX];
    struct who *who = oribi_mem_alloc(1, sizeof(*who));
    struct passwd *entry = getpwuid(uid);
    who->uid = uid;
    who->group_count = GROUPS_MAX;
    if (!entry || getgrouplist(entry->pw_name, gid, who->groups, &who->group_count) < 0) {
        who->groups[0] = gid;
        who->group_count = 1;
    }
    int code = realpath(path, real) ? 0 : oribi_os_fail();
    for (char *slash = real; code == 0 && (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        code = check_mode(who, real, ORIBI_MAY_ENTER);
        *slash = '/';
    }
    if (code == 0)
        code = check_mode(who, real, may);
    oribi_mem_free(who);
    return code;
}

/* --- addresses --- */

static int set_switch(int fd, int level, int name)
{
    const int on = 1;
    return setsockopt(fd, level, name, &on, sizeof(on));
}

/* Without listen(2) no client can connect; a port on which another process listens is refused all the same. */
int oribi_os_may_bind(const struct addrinfo *info, uint16_t port, bool reuse_port)
{
    struct sockaddr_storage where = {0};
    memcpy(&where, info->ai_addr, info->ai_addrlen);
    if (info->ai_family == AF_INET6)
        ((struct sockaddr_in6 *)&where)->sin6_port = htons(port);
    else if (info->ai_family == AF_INET)
        ((struct sockaddr_in *)&where)->sin_port = htons(port);
    int fd = oribi_os_lift(socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return oribi_os_fail();
    bool failed = set_switch(fd, SOL_SOCKET, SO_REUSEADDR) < 0;
    failed = failed || (reuse_port && set_switch(fd, SOL_SOCKET, SO_REUSEPORT) < 0);
    failed = failed || (info->ai_family == AF_INET6 && set_switch(fd, IPPROTO_IPV6, IPV6_V6ONLY) < 0);
    failed = failed || bind(fd, (struct sockaddr *)&where, info->ai_addrlen) < 0;
    bool is_in_use = failed && errno == EADDRINUSE;
    int code = failed ? oribi_os_fail() : 0;
    oribi_os_close(fd);
    return is_in_use ? ORIBI_ELIMIT : code < 0 ? ORIBI_ESYS : 0;
}
