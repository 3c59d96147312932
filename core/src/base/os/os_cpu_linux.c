/* How many CPUs this process may use: its affinity, and the quotas of its control groups. */
#include "oribi/base/os/os.h"

#include "oribi/base/os/os_machine.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>

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

static int64_t group_quota(const char *dir, bool is_v2)
{
    uint32_t cpus = is_v2 ? group_quota_v2(dir) : group_quota_v1(dir);
    return cpus ? (int64_t)cpus : -1;
}

uint32_t oribi__os_cpu_quota(const char *root)
{
    int64_t cpus = oribi__os_groups_least(root, "cpu", group_quota);
    return cpus > 0 ? (uint32_t)cpus : 0;
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

int64_t oribi_os_thread_waits(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : -1;
}
