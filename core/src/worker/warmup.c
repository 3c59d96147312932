/* Warm-up requests: a worker without listeners on one end of socket pairs, a thread that never touches the language
 * on the other. The requests lie in the sockets before the worker's first turn, so no thread has to write while the
 * worker's thread is inside the application. */
#include "worker/worker_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/worker/worker.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_LINE_BYTES = 12 /* "HTTP/1.1 200" */ };

struct asked {
    int fd;     /* -1: answered to the end */
    size_t got; /* of the status line */
    char line[STATUS_LINE_BYTES];
};

struct oribi_warmup {
    struct oribi_worker *worker;
    pthread_t reader;
    uint32_t count;
    struct asked asked[ORIBI_OPTION_ITEMS_MAX]; /* the reader's until it is joined */
};

/* --- the reader's thread --- */

/* False at the end of the answer. What stands behind its first bytes is not kept. */
static bool read_some(struct asked *asked)
{
    char scratch[4096];
    ssize_t n = oribi_os_read(asked->fd, scratch, sizeof(scratch));
    if (n == ORIBI_AGAIN)
        return true;
    if (n <= 0)
        return false;
    size_t more = sizeof(asked->line) - asked->got;
    more = (size_t)n < more ? (size_t)n : more;
    memcpy(asked->line + asked->got, scratch, more);
    asked->got += more;
    return true;
}

static void *read_answers(void *p)
{
    struct oribi_warmup *warmup = p;
    uint32_t open = warmup->count;
    while (open > 0) {
        struct pollfd fds[ORIBI_OPTION_ITEMS_MAX];
        for (uint32_t i = 0; i < warmup->count; i++)
            fds[i] = (struct pollfd){.fd = warmup->asked[i].fd, .events = POLLIN};
        (void)poll(fds, warmup->count, -1); /* all signals are blocked here: it cannot fail */
        for (uint32_t i = 0; i < warmup->count; i++) {
            struct asked *asked = &warmup->asked[i];
            if (asked->fd < 0 || fds[i].revents == 0 || read_some(asked))
                continue;
            oribi_os_close(asked->fd);
            asked->fd = -1;
            open--;
        }
    }
    oribi_worker_stop(warmup->worker);
    return NULL;
}

/* Signals are for the language's thread. */
static int start_reader(struct oribi_warmup *warmup)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* arguments are right, here and below */
    int code = pthread_create(&warmup->reader, NULL, read_answers, warmup);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == 0 ? 0 : ORIBI_ESYS;
}

/* --- the worker's thread --- */

/* Without a listener the server has no name of its own. */
static const struct oribi_listener *nowhere(void)
{
    static const struct oribi_listener listener = {.fd = -1, .host = "localhost", .port = "80", .text = "warmup"};
    return &listener;
}

static int ask(struct oribi_warmup *warmup, const struct oribi_listener *listener, const char *target)
{
    struct oribi_worker *w = warmup->worker;
    struct asked *asked = &warmup->asked[warmup->count];
    int fds[2];
    int code = oribi_os_socket_pair(SOCK_STREAM, true, fds);
    if (code < 0)
        return code;
    asked->fd = fds[0];
    warmup->count++;
    const struct iovec request[] = {
        {(void *)(uintptr_t) "GET ", 4},
        {(void *)(uintptr_t)target, strlen(target)},
        {(void *)(uintptr_t) " HTTP/1.0\r\nHost: localhost\r\nUser-Agent: oribi warmup\r\n\r\n", 57},
    };
    /* A fresh socket takes more than a text option may hold (ORIBI_OPTION_TEXT_MAX). */
    (void)oribi_os_send_vec(fds[0], request, sizeof(request) / sizeof(request[0]));
    struct oribi_conn *c = oribi_conn_open(&w->reactor, fds[1], listener);
    if (!c)
        return ORIBI_ENOMEM;
    oribi_conn_start(&w->reactor, c);
    return 0;
}

static void close_all(struct oribi_warmup *warmup)
{
    for (uint32_t i = 0; i < warmup->count; i++)
        oribi_os_close(warmup->asked[i].fd);
    oribi_mem_free(warmup);
}

int oribi_warmup_begin(struct oribi_worker *worker, const struct oribi_listeners *listeners, struct oribi_warmup **out)
{
    const struct oribi_text_list *targets = &worker->options->warmup;
    const struct oribi_listener *listener = listeners && listeners->count > 0 ? &listeners->items[0] : nowhere();
    struct oribi_warmup *warmup = oribi_mem_alloc(1, sizeof(*warmup));
    int code = 0;
    warmup->worker = worker;
    worker->request_limit = 0; /* a limit is for the workers to come */
    for (size_t i = 0; i < targets->count && code == 0; i++)
        code = ask(warmup, listener, targets->items[i]);
    if (code == 0)
        code = start_reader(warmup);
    if (code == 0)
        *out = warmup;
    else
        close_all(warmup);
    return code;
}

static int status_of(const struct asked *asked)
{
    const char *p = asked->line + STATUS_LINE_BYTES - 3;
    return asked->got == STATUS_LINE_BYTES ? (p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0') : 0;
}

int oribi_warmup_end(struct oribi_warmup *warmup, char *error)
{
    const struct oribi_text_list *targets = &warmup->worker->options->warmup;
    int code = 0;
    (void)pthread_join(warmup->reader, NULL); /* ours and not joined yet: it cannot fail */
    for (uint32_t i = 0; i < warmup->count && code == 0; i++) {
        int status = status_of(&warmup->asked[i]);
        if (status > 0 && status < 500)
            continue;
        code = ORIBI_EAPP;
        if (status > 0)
            (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "warmup: GET %.160s was answered with %d", targets->items[i],
                           status);
        else
            (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "warmup: GET %.160s got no answer", targets->items[i]);
    }
    close_all(warmup);
    return code;
}
