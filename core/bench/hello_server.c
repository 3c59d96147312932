/* The core with a C application that says hello: what the bindings add is what they measure above this. One process,
 * one worker.
 *
 *     hello_server 127.0.0.1:9292 [BYTES [OPTION=VALUE]...]     ends with SIGTERM */
#include "oribi/base/error.h"
#include "oribi/worker/worker.h"
#include "oribi/worker/req.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct oribi_worker *worker; /* for the signal handler only */

static void on_term(int signal_number)
{
    oribi_worker_stop(worker);
}

static void serve(struct oribi_worker *w, char *body, size_t len)
{
    const struct oribi_header type = {"content-type", "text/plain", 12, 10};
    while (!oribi_worker_done(w)) {
        struct oribi_req *req = oribi_worker_take(w);
        if (!req) {
            oribi_worker_wait_for(w, -1);
            continue;
        }
        struct iovec vec = {body, len};
        (void)oribi_reply(req, 200, &type, 1, &vec, 1); /* a client that left is no concern of a benchmark */
    }
}

/* Sets the options of the command line's NAME=VALUE. 0, or ORIBI_EINVAL with one line in `error`. */
static int set_options(struct oribi_options *options, char **args, char *error)
{
    for (; *args; args++) {
        char *value = strchr(*args, '=');
        if (!value)
            return ORIBI_EINVAL;
        *value++ = '\0';
        if (oribi_options_set(options, *args, value, error) < 0)
            return ORIBI_EINVAL;
    }
    return 0;
}

int main(int argc, char **argv)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "usage: hello_server ADDRESS [BYTES [OPTION=VALUE]...]";
    struct oribi_options options;
    static struct oribi_listeners listeners;
    oribi_options_init(&options);
    if (argc < 2 || oribi_options_set(&options, "bind", argv[1], error) < 0 ||
        oribi_options_set(&options, "workers", "1", error) < 0 ||
        (argc > 3 && set_options(&options, argv + 3, error) < 0) || oribi_options_finish(&options, error) < 0 ||
        oribi_listeners_open(&listeners, &options, error) < 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    size_t len = argc > 2 ? strtoul(argv[2], NULL, 10) : 13;
    char *body = malloc(len + 14);
    memset(body, 'x', len);
    memcpy(body, "Hello, World!", 13);
    struct oribi_worker_setup setup = {.options = &options, .listeners = &listeners, .life_fd = -1};
    if (oribi_worker_create(&setup, &worker) < 0)
        return 1;
    signal(SIGTERM, on_term);
    serve(worker, body, len);
    oribi_worker_destroy(worker);
    oribi_listeners_close(&listeners, true);
    oribi_options_deinit(&options);
    free(body);
    return 0;
}
