/* Messages to the service manager, received by a datagram socket that plays it. */
#include "supervisor/sd_notify.c"

#include "tap.h"

static char got[1024];

/* The message in the manager's socket, "" when none came. */
static const char *receive(int fd)
{
    ssize_t n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);
    got[n > 0 ? n : 0] = '\0';
    return got;
}

static int manager(const char *name)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    memcpy(where.sun_path, name, n);
    if (name[0] == '@')
        where.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&where, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
        exit(2);
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

static void test_without_a_manager_nothing_is_sent(void)
{
    unsetenv("NOTIFY_SOCKET");
    ok_eq(oribi_sd_ready(NULL), 0);
    setenv("NOTIFY_SOCKET", "", 1);
    ok_eq(oribi_sd_stopping(), 0);
}

static void check_messages(int fd)
{
    char pid_message[64];
    ok_eq(oribi_sd_ready(NULL), 1);
    is_str(receive(fd), "READY=1\n");
    ok_eq(oribi_sd_ready("4 workers"), 1);
    is_str(receive(fd), "READY=1\nSTATUS=4 workers");
    int64_t before = oribi_clock_us();
    ok_eq(oribi_sd_reloading(), 1);
    ok(strncmp(receive(fd), "RELOADING=1\nMONOTONIC_USEC=", 27) == 0);
    int64_t stamp = strtoll(got + 27, NULL, 10);
    ok(stamp >= before && stamp <= oribi_clock_us());
    ok_eq(oribi_sd_stopping(), 1);
    is_str(receive(fd), "STOPPING=1\n");
    ok_eq(oribi_sd_watchdog(), 1);
    is_str(receive(fd), "WATCHDOG=1\n");
    ok_eq(send_with_status("", "a\nREADY=0"), 1);
    is_str(receive(fd), "STATUS=a READY=0");
    ok_eq(oribi_sd_main_pid(getpid()), 1);
    snprintf(pid_message, sizeof(pid_message), "MAINPID=%d\n", (int)getpid());
    is_str(receive(fd), pid_message);
}

static void test_a_manager_behind_a_path_hears_us(void)
{
    char path[] = "/tmp/oribi-notify-XXXXXX";
    int reserved = mkstemp(path);
    close(reserved);
    unlink(path);
    int fd = manager(path);
    check_messages(fd);
    close(fd);
    ok(oribi_sd_ready(NULL) < 0); /* nobody listens any more */
    unlink(path);
    ok(oribi_sd_ready(NULL) < 0);
}

static void test_a_manager_behind_an_abstract_name_hears_us(void)
{
    char name[64];
    snprintf(name, sizeof(name), "@oribi-notify-%d", (int)getpid());
    int fd = manager(name);
    check_messages(fd);
    close(fd);
}

static void test_a_manager_that_does_not_read_never_blocks_us(void)
{
    char name[64];
    int code = 1;
    snprintf(name, sizeof(name), "@oribi-notify-full-%d", (int)getpid());
    int fd = manager(name);
    for (int i = 0; i < 100000 && code == 1; i++)
        code = oribi_sd_watchdog();
    ok_eq(code, ORIBI_AGAIN);
    close(fd);
}

static void test_names_we_cannot_use_are_refused(void)
{
    char name[200];
    static const char *const bad[] = {"vsock:2:1234", "relative", "@", "/"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("NOTIFY_SOCKET", bad[i], 1);
        ok_named(oribi_sd_ready(NULL) == ORIBI_EINVAL, "%s", bad[i]);
    }
    memset(name, 'n', sizeof(name));
    name[0] = '@';
    name[107] = '\0';
    setenv("NOTIFY_SOCKET", name, 1);
    ok(oribi_sd_ready(NULL) < 0 && oribi_sd_ready(NULL) != ORIBI_EINVAL); /* fits; nobody there */
    name[107] = 'n';
    name[108] = '\0';
    setenv("NOTIFY_SOCKET", name, 1);
    ok_eq(oribi_sd_ready(NULL), ORIBI_EINVAL);
    unsetenv("NOTIFY_SOCKET");
}

static void test_a_long_status_is_cut(void)
{
    char name[64];
    char status[2000];
    snprintf(name, sizeof(name), "@oribi-notify-long-%d", (int)getpid());
    int fd = manager(name);
    memset(status, 's', sizeof(status) - 1);
    status[sizeof(status) - 1] = '\0';
    ok_eq(send_with_status("", status), 1);
    ok_eq(strlen(receive(fd)), MESSAGE_CAP - 1);
    close(fd);
    unsetenv("NOTIFY_SOCKET");
}

static void test_the_watchdog_is_fed_twice_a_period(void)
{
    char pid[32];
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    ok_eq(oribi_sd_watchdog_ms(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    ok_eq(oribi_sd_watchdog_ms(), 15000);
    setenv("WATCHDOG_PID", pid, 1);
    ok_eq(oribi_sd_watchdog_ms(), 15000);
    setenv("WATCHDOG_PID", "1", 1);
    ok_eq(oribi_sd_watchdog_ms(), 0);
    unsetenv("WATCHDOG_PID");
    setenv("WATCHDOG_USEC", "1", 1);
    ok_eq(oribi_sd_watchdog_ms(), 1);
    setenv("WATCHDOG_USEC", "soon", 1);
    ok_eq(oribi_sd_watchdog_ms(), 0);
    setenv("WATCHDOG_USEC", "-5", 1);
    ok_eq(oribi_sd_watchdog_ms(), 0);
    unsetenv("WATCHDOG_USEC");
}

int main(void)
{
    test_without_a_manager_nothing_is_sent();
    test_a_manager_behind_a_path_hears_us();
    test_a_manager_behind_an_abstract_name_hears_us();
    test_a_manager_that_does_not_read_never_blocks_us();
    test_names_we_cannot_use_are_refused();
    test_a_long_status_is_cut();
    test_the_watchdog_is_fed_twice_a_period();
    return done_testing();
}
