/* Limits of control groups from files laid out as the kernel does; rights of another user; addresses in use. */
#include "base/os/os_machine.c"
#include "base/os/os_machine_linux.c"

#include "base/os/kernel_files.h"
#include "child.h"
#include "tap.h"

#include <arpa/inet.h>

static void test_memory_of_version_2_is_the_least_on_the_way_up(void)
{
    put_file("/proc/self/cgroup", "0::/app/web\n");
    ok_eq(oribi__os_group_memory(root), -1);
    put_file("/sys/fs/cgroup/app/web/memory.max", "max\n");
    ok_eq(oribi__os_group_memory(root), -1);
    put_file("/sys/fs/cgroup/app/web/memory.max", "1073741824\n");
    ok_eq(oribi__os_group_memory(root), 1073741824);
    put_file("/sys/fs/cgroup/app/memory.max", "536870912\n");
    ok_eq(oribi__os_group_memory(root), 536870912);
    put_file("/sys/fs/cgroup/app/memory.max", "rubbish\n");
    ok_eq(oribi__os_group_memory(root), 1073741824);
}

static void test_memory_of_version_1(void)
{
    put_file("/proc/self/cgroup", "9:cpu:/x\n4:memory:/one\n");
    put_file("/sys/fs/cgroup/memory/one/memory.limit_in_bytes", "9223372036854771712\n"); /* no limit */
    ok_eq(oribi__os_group_memory(root), -1);
    put_file("/sys/fs/cgroup/memory/one/memory.limit_in_bytes", "268435456\n");
    ok_eq(oribi__os_group_memory(root), 268435456);
}

static void test_tasks_that_are_left(void)
{
    put_file("/proc/self/cgroup", "0::/tasks\n");
    ok_eq(oribi__os_group_tasks_left(root), -1);
    put_file("/sys/fs/cgroup/tasks/pids.max", "100\n");
    ok_eq(oribi__os_group_tasks_left(root), 100); /* who does not say how many there are has none */
    put_file("/sys/fs/cgroup/tasks/pids.current", "99\n");
    ok_eq(oribi__os_group_tasks_left(root), 1);
    put_file("/sys/fs/cgroup/tasks/pids.current", "101\n"); /* the limit was lowered */
    ok_eq(oribi__os_group_tasks_left(root), 0);
    put_file("/sys/fs/cgroup/tasks/pids.max", "max\n");
    ok_eq(oribi__os_group_tasks_left(root), -1);
}

static void test_rights_of_another_user(void)
{
    enum { OTHER = 54321 };
    char path[256];
    char folder[256];
    put_file("/served/in/file", "");
    snprintf(folder, sizeof(folder), "%s/served", root);
    snprintf(path, sizeof(path), "%s/served/in", root);
    chmod(root, 0755);
    chmod(folder, 0755);
    chmod(path, 0755);
    ok_eq(oribi_os_user_may(OTHER, OTHER, path, ORIBI_MAY_READ | ORIBI_MAY_ENTER), 0);
    ok_eq(oribi_os_user_may(OTHER, OTHER, path, ORIBI_MAY_WRITE), ORIBI_ESYS);
    chmod(path, 0751);
    ok_eq(oribi_os_user_may(OTHER, OTHER, path, ORIBI_MAY_READ), ORIBI_ESYS);
    ok_eq(oribi_os_user_may(OTHER, getegid(), path, ORIBI_MAY_READ), 0); /* by its group */
    chmod(path, 0707);
    ok_eq(oribi_os_user_may(OTHER, getegid(), path, ORIBI_MAY_READ), ORIBI_ESYS); /* the group's bits alone count */
    chmod(path, 0755);
    chmod(folder, 0700); /* a folder on the way is closed */
    ok_eq(oribi_os_user_may(OTHER, OTHER, path, ORIBI_MAY_READ), ORIBI_ESYS);
    ok(strstr(oribi_os_error_text(), "served has mode 700"));
    ok_eq(oribi_os_user_may(0, 0, path, ORIBI_MAY_WRITE), 0);
    ok_eq(oribi_os_user_may(OTHER, OTHER, "/nonexistent", ORIBI_MAY_READ), ORIBI_ESYS);
}

static void test_an_address_in_use(void)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct addrinfo info = {.ai_family = AF_INET, .ai_addr = (struct sockaddr *)&where, .ai_addrlen = sizeof(where)};
    socklen_t len = sizeof(where);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ok(bind(fd, (struct sockaddr *)&where, len) == 0 && listen(fd, 1) == 0);
    ok(getsockname(fd, (struct sockaddr *)&where, &len) == 0);
    uint16_t port = ntohs(where.sin_port);
    ok_eq(oribi_os_may_bind(&info, port, false), ORIBI_ELIMIT);
    oribi_os_close(fd);
    ok_eq(oribi_os_may_bind(&info, port, false), 0);
    ok_eq(oribi_os_may_bind(&info, port, false), 0); /* the look before has left nothing */
    where.sin_addr.s_addr = inet_addr("192.0.2.1");
    ok_eq(oribi_os_may_bind(&info, port, false), ORIBI_ESYS);
}

static void test_this_machine(void)
{
    struct oribi_machine machine;
    struct oribi_disk disk = {.free_bytes = 1, .is_memory = true};
    oribi_machine_look(&machine);
    ok(machine.cpus >= 1);
    ok(machine.descriptors_max >= 3);
    ok(machine.memory_bytes > 0);
    ok(machine.has_memfd && machine.has_subreaper && machine.has_proc);
    ok_eq(oribi_disk_look("/proc", &disk), 0);
    ok_eq(disk.free_bytes, 0);
    ok(!disk.is_memory);
    ok_eq(oribi_disk_look("/nonexistent", &disk), ORIBI_ESYS);
    ok_eq(oribi_os_may("/nonexistent", ORIBI_MAY_READ), ORIBI_ESYS);
    ok_eq(oribi_os_may("/", ORIBI_MAY_READ | ORIBI_MAY_ENTER), 0);
}

static int lower_limits(void *data)
{
    struct oribi_machine machine;
    const struct rlimit files = {50, 60};
    const struct rlimit bytes = {4096, 8192};
    (void)data;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_FSIZE, &bytes) < 0)
        return 1;
    oribi_machine_look(&machine);
    return machine.descriptors_max == 60 && machine.file_bytes_max == 4096 ? 0 : 2;
}

static void remove_root(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", root, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

/* Are machines with these addresses reached by IPv6 alone? "!" before one: its interface is down. */
static bool only_ipv6(const char *const *addresses)
{
    static struct sockaddr_storage where[4];
    struct ifaddrs all[4];
    size_t n = 0;
    for (; addresses[n]; n++) {
        bool down = addresses[n][0] == '!';
        const char *text = addresses[n] + down;
        bool is_loopback = strcmp(text, "127.0.0.1") == 0 || strcmp(text, "::1") == 0;
        struct sockaddr_in *v4 = (struct sockaddr_in *)&where[n];
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&where[n];
        where[n].ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
        ok_eq(inet_pton(where[n].ss_family, text, strchr(text, ':') ? (void *)&v6->sin6_addr : &v4->sin_addr), 1);
        all[n] = (struct ifaddrs){.ifa_next = addresses[n + 1] ? &all[n + 1] : NULL,
                                  .ifa_flags = (down ? 0u : IFF_UP) | (is_loopback ? IFF_LOOPBACK : 0u),
                                  .ifa_addr = (struct sockaddr *)&where[n]};
    }
    return has_only_ipv6(n ? all : NULL);
}

static void test_machines_that_ipv6_alone_reaches(void)
{
#define ONLY(...) only_ipv6((const char *const[]){__VA_ARGS__, NULL})
    ok(ONLY("127.0.0.1", "::1", "2001:db8::1"));
    ok(ONLY("fd00::1", "fe80::1", "169.254.172.9"));
    ok(ONLY("!192.0.2.1", "2001:db8::1"));
    ok(!ONLY("127.0.0.1", "::1"));
    ok(!ONLY("127.0.0.1", "::1", "fe80::1"));
    ok(!ONLY("192.0.2.1", "2001:db8::1"));
    ok(!ONLY("192.0.2.1"));
    ok(!ONLY("127.0.0.1", "!2001:db8::1"));
#undef ONLY
}

int main(void)
{
    if (!mkdtemp(root))
        return 2;
    test_memory_of_version_2_is_the_least_on_the_way_up();
    test_memory_of_version_1();
    test_tasks_that_are_left();
    test_rights_of_another_user();
    remove_root();
    test_an_address_in_use();
    test_this_machine();
    test_machines_that_ipv6_alone_reaches();
    ok_eq(child_code(lower_limits, NULL), 0);
    return done_testing();
}
