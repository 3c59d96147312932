/* A service manager whose socket is full for a moment, or for longer. */
#include "supervisor/notify.c"

#include "supervisor/modules.h"

#include "base/clock_ahead.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct oribi_supervisor *supervisor;
static struct oribi__context *context;
static struct oribi_options options;
static int manager_fd;

static void start(void)
{
    char name[64];
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    snprintf(name, sizeof(name), "@oribi-notice-%d", (int)getpid());
    memcpy(where.sun_path + 1, name + 1, strlen(name) - 1);
    manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    ok(bind(manager_fd, (struct sockaddr *)&where, len) == 0);
    setenv("NOTIFY_SOCKET", name, 1);
    supervisor = modules_create(&oribi__server, &options);
    context = &supervisor->context;
}

static void fill(void)
{
    while (oribi_sd_watchdog() == 1)
        continue;
}

/* Reads everything: how many messages begin with these words. */
static int heard(const char *words)
{
    char text[1024];
    int count = 0;
    ssize_t n;
    while ((n = recv(manager_fd, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0) {
        text[n] = '\0';
        count += strncmp(text, words, strlen(words)) == 0;
    }
    return count;
}

static void test_a_message_that_does_not_fit_is_sent_once_more(void)
{
    start();
    fill();
    oribi__notify(context, ORIBI__READY_NOTICE, "4 workers");
    ok_eq(heard("READY"), 0);
    modules_run(context);
    ok_eq(heard("READY"), 0); /* it is not time yet */
    pass_ms(ORIBI__NOTICE_RETRY_MS);
    modules_run(context);
    ok_eq(heard("READY=1\nSTATUS=4 workers"), 1);
    modules_run(context);
    ok_eq(heard("READY"), 0);
    modules_destroy(supervisor, &options);
    close(manager_fd);
}

static void test_a_socket_that_stays_full_is_given_up(void)
{
    start();
    fill();
    oribi__notify(context, ORIBI__STOPPING_NOTICE, NULL);
    ok_eq(context->notify->waiting, ORIBI__STOPPING_NOTICE);
    pass_ms(ORIBI__NOTICE_RETRY_MS);
    modules_run(context);
    ok_eq(context->notify->waiting, ORIBI__NO_NOTICE);
    ok_eq(heard("STOPPING"), 0);
    modules_destroy(supervisor, &options);
    close(manager_fd);
}

static void test_a_newer_message_takes_the_place_of_one_that_waits(void)
{
    start();
    fill();
    oribi__notify(context, ORIBI__READY_NOTICE, NULL);
    ok_eq(heard("READY"), 0);
    oribi__notify(context, ORIBI__STOPPING_NOTICE, NULL);
    pass_ms(ORIBI__NOTICE_RETRY_MS);
    modules_run(context);
    ok_eq(heard("STOPPING=1"), 1);
    modules_destroy(supervisor, &options);
    close(manager_fd);
}

int main(void)
{
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    oribi_log_init(null_fd, ORIBI_LOG_ERROR);
    test_a_message_that_does_not_fit_is_sent_once_more();
    test_a_socket_that_stays_full_is_given_up();
    test_a_newer_message_takes_the_place_of_one_that_waits();
    return done_testing();
}
