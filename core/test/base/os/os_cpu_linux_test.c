/* How many CPUs a process may use: affinity, and control groups from files laid out as the kernel does. */
#include "base/os/os_cpu_linux.c"

#include "base/os/kernel_files.h"
#include "child.h"
#include "tap.h"

#include <sys/stat.h>
#include <sys/wait.h>

static void remove_root(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", root, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

static void test_cpu_quota_of_version_2(void)
{
    put_file("/proc/self/cgroup", "0::/app/web\n");
    ok_eq(oribi__os_cpu_quota(root), 0);
    put_file("/sys/fs/cgroup/app/web/cpu.max", "max 100000\n");
    ok_eq(oribi__os_cpu_quota(root), 0);
    put_file("/sys/fs/cgroup/app/web/cpu.max", "400000 100000\n");
    ok_eq(oribi__os_cpu_quota(root), 4);
    put_file("/sys/fs/cgroup/app/web/cpu.max", "400001 100000\n");
    ok_eq(oribi__os_cpu_quota(root), 5);
    put_file("/sys/fs/cgroup/app/web/cpu.max", "10000 100000\n");
    ok_eq(oribi__os_cpu_quota(root), 1);
    put_file("/sys/fs/cgroup/app/web/cpu.max", "800000 100000\n");
    put_file("/sys/fs/cgroup/app/cpu.max", "250000 100000\n"); /* the group above allows less */
    ok_eq(oribi__os_cpu_quota(root), 3);
    put_file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    ok_eq(oribi__os_cpu_quota(root), 2);
    put_file("/proc/self/cgroup", "0::/not/mounted/here\n"); /* a container sees its group as the root */
    ok_eq(oribi__os_cpu_quota(root), 2);
    put_file("/sys/fs/cgroup/cpu.max", "rubbish\n");
    ok_eq(oribi__os_cpu_quota(root), 0);
}

static void test_cpu_quota_of_version_1(void)
{
    put_file("/proc/self/cgroup", "7:memory:/m\n4:cpu,cpuacct:/app\n3:cpuset:/\n");
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "-1\n");
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
    ok_eq(oribi__os_cpu_quota(root), 0);
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "150000\n");
    ok_eq(oribi__os_cpu_quota(root), 2);
    put_file("/proc/self/cgroup", "4:cpuacct,cpu:/app\n");
    put_file("/sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "300000\n");
    put_file("/sys/fs/cgroup/cpu/app/cpu.cfs_period_us", "100000\n");
    ok_eq(oribi__os_cpu_quota(root), 3);
    put_file("/proc/self/cgroup", "4:cpuset:/app\nnonsense\n");
    ok_eq(oribi__os_cpu_quota(root), 0);
}

static int count_cpus_on_one(void *data)
{
    cpu_set_t set;
    (void)data;
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return 100;
    int first = 0;
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0)
        return 101;
    return (int)oribi_os_cpu_count();
}

static void test_affinity_counts(void)
{
    ok(oribi_os_cpu_count() >= 1);
    ok_eq(child_code(count_cpus_on_one, NULL), 1);
}

int main(void)
{
    if (!mkdtemp(root))
        return 2;
    test_cpu_quota_of_version_2();
    remove_root();
    if (mkdir(root, 0700) < 0)
        return 2;
    test_cpu_quota_of_version_1();
    remove_root();
    test_affinity_counts();
    return done_testing();
}
