/* A publisher's way to its server. Reading order: oribi_publish, by_control. */
#include "oribi/supervisor/publish.h"

#include "oribi/base/clock.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/supervisor/control_client.h"
#include "oribi/worker/inbox.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ANSWER_MS = 5000, ANSWER_CAP = 512 };

/* The inbox of a server that this process does not belong to, as its control socket has given it. */
static struct {
    pthread_mutex_t lock;
    int fd;
    struct oribi_fd_mark mark; /* a program may close what is not its own */
    char path[ORIBI__CONTROL_PATH_CAP];
} found = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

__attribute__((format(printf, 3, 4))) static int refuse(char *error, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, ORIBI_ERROR_TEXT_CAP, format, args); /* cut when longer */
    va_end(args);
    return code;
}

/* --- by the control socket --- */

static int find_path(const char *control, char path[ORIBI__CONTROL_PATH_CAP], char *error)
{
    struct oribi_options options;
    struct oribi__control_found servers;
    if (!control || !*control)
        control = getenv("ORIBI_CONTROL");
    if (control && *control) {
        (void)snprintf(path, ORIBI__CONTROL_PATH_CAP, "%s", control); /* a longer one is none that answers */
        return 0;
    }
    oribi_options_init(&options);
    oribi__control_find(ORIBI__CONTROL_ROOT, &options, &servers);
    oribi_options_deinit(&options);
    if (servers.count != 1)
        return refuse(error, ORIBI_ECLOSED,
                      servers.count
                          ? "several servers run in this folder: ORIBI_CONTROL names the control socket of one"
                          : "this process belongs to no server, and no server of this user was started in this "
                            "folder; ORIBI_CONTROL names the control socket of one");
    memcpy(path, servers.paths[0], ORIBI__CONTROL_PATH_CAP);
    return 0;
}

/* The answer is one line, with which the inbox comes. */
static int ask(const char *path, char *error)
{
    struct oribi_buf line = {0};
    char answer[ANSWER_CAP];
    size_t len = 0;
    ssize_t n = 1;
    int inbox = -1;
    int64_t until_ms = oribi_clock_ms() + ANSWER_MS;
    int fd = oribi__control_ask(path, "publisher", false, &line);
    if (fd < 0) {
        int code = refuse(error, ORIBI_ECLOSED, "%.*s", (int)line.len, line.p ? line.p : "");
        oribi_buf_deinit(&line);
        return code;
    }
    while (n != 0 && len + 1 < sizeof(answer) && !memchr(answer, '\n', len) && oribi_clock_ms() < until_ms) {
        int passed;
        n = oribi_inbox_receive(fd, answer + len, sizeof(answer) - 1 - len, &passed);
        if (n == ORIBI_AGAIN) {
            oribi_process_poll(&fd, 1, until_ms - oribi_clock_ms());
            continue;
        }
        if (n < 0)
            break;
        len += (size_t)n;
        if (inbox < 0)
            inbox = passed;
        else
            oribi_os_close(passed);
    }
    oribi_os_close(fd);
    if (inbox >= 0)
        return inbox;
    answer[len] = '\0';
    if (len == 0)
        return refuse(error, ORIBI_ECLOSED, "%.120s: no answer of the server", path);
    return refuse(error, ORIBI_EAPP, "%.*s", (int)strcspn(answer, "\n"),
                  strncmp(answer, "error ", 6) == 0 ? answer + 6 : answer);
}

/* Gives a descriptor of the inbox, the caller's. `anew`: what was found before is no good. */
static int inbox_of(const char *path, bool anew, char *error)
{
    (void)pthread_mutex_lock(&found.lock); /* cannot fail, as the other */
    bool known = found.fd >= 0 && oribi_os_is_marked(found.fd, &found.mark);
    if (known && !anew && strcmp(found.path, path) == 0) {
        int fd = oribi_os_dup(found.fd);
        (void)pthread_mutex_unlock(&found.lock);
        return fd < 0 ? refuse(error, fd, "%s", oribi_os_error_text()) : fd;
    }
    if (known)
        oribi_os_close(found.fd);
    int fd = found.fd = ask(path, error);
    if (fd >= 0) {
        oribi_os_mark(found.fd, &found.mark);
        (void)snprintf(found.path, sizeof(found.path), "%s", path); /* fits */
        fd = oribi_os_dup(found.fd);
        if (fd < 0)
            (void)refuse(error, fd, "%s", oribi_os_error_text());
    }
    (void)pthread_mutex_unlock(&found.lock);
    return fd;
}

static int by_control(const char *control, const struct oribi_publication *publication, char *error)
{
    char path[ORIBI__CONTROL_PATH_CAP];
    int code = find_path(control, path, error);
    for (int i = 0; i < 2 && code == 0; i++) { /* the server may have been started anew since */
        int fd = inbox_of(path, i > 0, error);
        if (fd < 0)
            return fd;
        code = oribi_inbox_publish(fd, publication, ORIBI_INBOX_WAIT_MS);
        oribi_os_close(fd);
        if (code != ORIBI_ECLOSED)
            return code;
        (void)refuse(error, code, "%.120s: the server has ended", path);
        code = i ? code : 0;
    }
    return code;
}

/* --- publishing --- */

int oribi_publish(const char *control, const struct oribi_publication *publication, char *error)
{
    int inbox;
    int code = oribi_publication_check(publication);
    error[0] = '\0';
    if (code < 0)
        return refuse(error, ORIBI_EINVAL, "%s", oribi_publication_mistake(publication, code));
    enum oribi_publisher publisher = control ? ORIBI_PUBLISHER_OUTSIDE : oribi_publisher_inbox(&inbox);
    if (publisher == ORIBI_PUBLISHER_NONE)
        return refuse(error, ORIBI_EAPP, ORIBI__PUBLISH_NEEDS);
    if (publisher == ORIBI_PUBLISHER_READY)
        code = oribi_inbox_publish(inbox, publication, ORIBI_INBOX_WAIT_MS);
    bool shut = publisher == ORIBI_PUBLISHER_READY && code == ORIBI_ECLOSED;
    if (publisher == ORIBI_PUBLISHER_OUTSIDE || shut) /* where a process has shut the inbox there is another one */
        code = by_control(shut ? oribi_publisher_control() : control, publication, error);
    if (code == ORIBI_AGAIN)
        return refuse(error, code, "the inbox of publications is full: the frontends do not keep up, or none is there");
    if (shut && code < 0)
        return refuse(error, code,
                      "the server has ended, or its inbox of publications was shut: then it needs a reload");
    if (code < 0 && !error[0])
        return refuse(error, code, code == ORIBI_ECLOSED ? "the server has ended" : "the message cannot be sent: %s",
                      oribi_os_error_text());
    return code;
}
