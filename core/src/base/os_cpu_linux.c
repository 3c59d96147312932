/* How many CPUs this process may use: its affinity, and the quotas of its control groups. */
#include "oribi/base/os.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CPUs of quota/period microseconds, rounded up; 0 for no quota ("max", -1, unreadable). */
static uint32_t quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    long long cpus = quota / period + (quota % period != 0);
    return cpus > INT_MAX ? 0 : (uint32_t)cpus;
}

/* Version 2 keeps both numbers in one file: "150000 100000" or "max 100000". */
static uint32_t group_quota_v2(const char *dir)
{
    char path[PATH_MAX];
    char line[64];
    long long quota = 0;
    long long period = 0;
    int n = snprintf(path, sizeof(path), "%s/cpu.max", dir);
    if (n < 0 || (size_t)n >= sizeof(path) || oribi_os_read_line(path, line, sizeof(line)) < 0)
        return 0;
    return sscanf(line, "%lld %lld", &quota, &period) == 2 ? quota_cpus(quota, period) : 0;
}

static uint32_t group_quota_v1(const char *dir)
{
    char path[PATH_MAX];
    char quota[32];
    char period[32];
    int n = snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
    if (n < 0 || (size_t)n >= sizeof(path) || oribi_os_read_line(path, quota, sizeof(quota)) < 0)
        return 0;
    n = snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
    if (n < 0 || (size_t)n >= sizeof(path) || oribi_os_read_line(path, period, sizeof(period)) < 0)
        return 0;
    return quota_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

/* A quota of any ancestor binds too, so the way up to the mount is walked. In a container whose own group is the
 * mount's root the path from /proc may not exist below it: those steps find nothing, and the root still counts. */
static uint32_t group_quota(const char *mount, const char *group, uint32_t (*read_quota)(const char *))
{
    char dir[PATH_MAX];
    uint32_t least = 0;
    size_t mount_len = strlen(mount);
    int n = snprintf(dir, sizeof(dir), "%s%s", mount, group);
    if (n < 0 || (size_t)n >= sizeof(dir))
        return 0;
    for (;;) {
        uint32_t cpus = read_quota(dir);
        if (cpus && (!least || cpus < least))
            least = cpus;
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < mount_len)
            return least;
        *slash = '\0';
    }
}

/* Is `name` one of the comma-separated controllers? */
static bool has_controller(const char *list, size_t n, const char *name)
{
    size_t name_len = strlen(name);
    for (const char *end = list + n; list < end;) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        size_t len = (size_t)((comma ? comma : end) - list);
        if (len == name_len && memcmp(list, name, len) == 0)
            return true;
        list += len + 1;
    }
    return false;
}

/* /proc/self/cgroup has a line "id:controllers:path" per hierarchy; version 2 is "0::path" (cgroups(7)). */
uint32_t oribi__os_cpu_quota(const char *root)
{
    char path[PATH_MAX];
    char mount[PATH_MAX];
    char line[PATH_MAX];
    uint32_t least = 0;
    (void)snprintf(path, sizeof(path), "%s/proc/self/cgroup",
                   root); /* cut only for a test's absurd root: then it does not open */
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        controllers++;
        size_t n = (size_t)(group - controllers);
        group++;
        uint32_t cpus = 0;
        if (n == 0) {
            (void)snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
            cpus = group_quota(mount, group, group_quota_v2);
        } else if (has_controller(controllers, n, "cpu")) {
            (void)snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%.*s", root, (int)n, controllers);
            cpus = group_quota(mount, group, group_quota_v1);
            (void)snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/cpu", root);
            uint32_t plain = group_quota(mount, group, group_quota_v1);
            cpus = plain && (!cpus || plain < cpus) ? plain : cpus;
        }
        if (cpus && (!least || cpus < least))
            least = cpus;
    }
    (void)fclose(file); /* read only: nothing to lose */
    return least;
}

uint32_t oribi_os_cpu_count(void)
{
    uint32_t count = 1;
    cpu_set_t set;
    long online;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        count = (uint32_t)CPU_COUNT(&set);
    else if ((online = sysconf(_SC_NPROCESSORS_ONLN)) > 0) /* more than 1024 CPUs: the set is too small */
        count = (uint32_t)online;
    uint32_t quota = oribi__os_cpu_quota("");
    if (quota && quota < count)
        count = quota;
    return count > 0 ? count : 1;
}
