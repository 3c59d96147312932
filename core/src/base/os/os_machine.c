/* Limits of the process and the machine; what a user may do with a file. */
#include "oribi/base/os/os_machine.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROUPS_MAX = 256 }; /* of one user; the rest is not looked at */

/* --- the machine --- */

static uint64_t or_none(rlim_t value)
{
    return value == RLIM_INFINITY ? UINT64_MAX : (uint64_t)value;
}

void oribi_machine_look(struct oribi_machine *machine)
{
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit descriptors = none; /* a limit that cannot be read is none */
    struct rlimit processes = none;
    struct rlimit file_bytes = none;
    int64_t pages = sysconf(_SC_PHYS_PAGES);
    int64_t ram = pages > 0 ? pages * (int64_t)sysconf(_SC_PAGESIZE) : -1;
    int64_t group = oribi__os_group_memory("");
    bool is_less = group >= 0 && (ram < 0 || group < ram);
    (void)getrlimit(RLIMIT_NOFILE, &descriptors); /* these three fail for a bad address only */
    (void)getrlimit(RLIMIT_NPROC, &processes);
    (void)getrlimit(RLIMIT_FSIZE, &file_bytes);
    *machine = (struct oribi_machine){
        .descriptors_max = or_none(descriptors.rlim_max),
        .files_max = oribi__os_files_max(),
        .processes_max = or_none(processes.rlim_cur),
        .file_bytes_max = or_none(file_bytes.rlim_cur),
        .memory_bytes = is_less ? group : ram,
        .is_group_memory = is_less,
        .tasks_left = oribi__os_group_tasks_left(""),
        .cpus = oribi_os_cpu_count(),
        .backlog_max = oribi_os_backlog_max(),
    };
    oribi__machine_features(machine);
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
    if (!entry || getgrouplist(entry->pw_name, gid, (void *)who->groups, &who->group_count) < 0) {
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

static bool is_up(const struct ifaddrs *one)
{
    return one->ifa_addr && (one->ifa_flags & IFF_UP) && !(one->ifa_flags & IFF_LOOPBACK);
}

static bool is_ipv4_of_others(const struct ifaddrs *one)
{
    if (!is_up(one) || one->ifa_addr->sa_family != AF_INET)
        return false;
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)one->ifa_addr;
    return ntohl(in->sin_addr.s_addr) >> 16 != 0xa9fe; /* 169.254.0.0/16, RFC 3927: pods of IPv6 clusters have one */
}

static bool is_ipv6_of_others(const struct ifaddrs *one)
{
    if (!is_up(one) || one->ifa_addr->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)one->ifa_addr;
    return !IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr);
}

static bool has_only_ipv6(const struct ifaddrs *all)
{
    bool ipv6 = false;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
        if (is_ipv4_of_others(one))
            return false;
        ipv6 = ipv6 || is_ipv6_of_others(one);
    }
    return ipv6;
}

bool oribi_os_has_only_ipv6(void)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) < 0)
        return false;
    bool only = has_only_ipv6(all);
    freeifaddrs(all);
    return only;
}

static bool is_equal(const struct sockaddr *address, int family, const void *wanted)
{
    if (!address || address->sa_family != family)
        return false;
    if (family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)(const void *)address)->sin_addr, wanted, 4) == 0;
    return memcmp(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, wanted, 16) == 0;
}

bool oribi_os_has_address(const char *numbers)
{
    struct ifaddrs *all;
    unsigned char wanted[16];
    bool found = false;
    int family = inet_pton(AF_INET, numbers, wanted) == 1    ? AF_INET
                 : inet_pton(AF_INET6, numbers, wanted) == 1 ? AF_INET6
                                                             : AF_UNSPEC;
    if (family == AF_UNSPEC || getifaddrs(&all) < 0)
        return false;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next)
        found = found || is_equal(one->ifa_addr, family, wanted);
    freeifaddrs(all);
    return found;
}

bool oribi_os_has_ipv6(void)
{
    struct ifaddrs *all;
    bool ipv6 = false;
    if (getifaddrs(&all) < 0)
        return false;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next)
        ipv6 = ipv6 || (one->ifa_addr && one->ifa_addr->sa_family == AF_INET6);
    freeifaddrs(all);
    return ipv6;
}

/* Without listen(2) no client can connect; a port on which another process listens is refused all the same. */
int oribi_os_may_bind(const struct addrinfo *info, uint16_t port, bool reuse_port)
{
    unsigned how = ORIBI_BIND_IPV6_ALONE | (reuse_port ? ORIBI_BIND_REUSE_PORT : 0);
    int fd = oribi_os_bind_tcp(info->ai_addr, info->ai_addrlen, port, how);
    if (fd < 0)
        return oribi_os_error_save().last == EADDRINUSE ? ORIBI_ELIMIT : ORIBI_ESYS;
    oribi_os_close(fd);
    return 0;
}
