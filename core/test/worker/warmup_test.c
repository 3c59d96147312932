/* Warm-up requests through a worker, against an application in C. */
#include "worker/warmup.c"

#include "tap.h"
#include "oribi/worker/req.h"

#include <stdlib.h>

static char error[ORIBI_ERROR_TEXT_CAP];
static char seen[4096];
static int failing_call; /* answered with 500; 0: none */
static int calls;

static void app(struct oribi_req *req)
{
    const struct oribi_head *head = req->head;
    size_t len = strlen(seen);
    (void)snprintf(seen + len, sizeof(seen) - len, "%.*s %.*s from %.*s:%.*s, ", (int)head->method.n, head->method.p,
                   (int)head->target.n, head->target.p, (int)req->server_name.n, req->server_name.p,
                   (int)req->server_port.n, req->server_port.p);
    if (++calls == failing_call) {
        oribi_reply_error(req, 500);
        return;
    }
    static char body[300 * 1024]; /* more than a socket takes: somebody must read */
    const struct iovec part = {body, sizeof(body)};
    (void)oribi_reply(req, calls == 2 ? 404 : 200, NULL, 0, &part, 1);
}

/* Warms up with these targets; the result of the end. */
static int warm_up(const struct oribi_listeners *listeners, const char *const *targets)
{
    struct oribi_options options;
    struct oribi_worker *worker = NULL;
    struct oribi_warmup *warmup = NULL;
    struct oribi_req *req;
    oribi_options_init(&options);
    for (; *targets; targets++)
        (void)oribi_options_set(&options, "warmup", *targets, error);
    (void)oribi_options_set(&options, "requests_max", "1", error);
    seen[0] = error[0] = '\0';
    calls = 0;
    ok_eq(oribi_worker_create(&(struct oribi_worker_setup){.options = &options, .life_fd = -1}, &worker), 0);
    ok_eq(oribi_warmup_begin(worker, listeners, &warmup), 0);
    while ((req = oribi_worker_take(worker)) || !oribi_worker_done(worker)) {
        if (req)
            app(req);
        else
            oribi_worker_wait_for(worker, -1);
    }
    int code = oribi_warmup_end(warmup, error);
    oribi_worker_destroy(worker);
    oribi_options_deinit(&options);
    return code;
}

#define WARM_UP(...) warm_up(NULL, (const char *const[]){__VA_ARGS__, NULL})

static void test_targets_are_asked_in_their_order(void)
{
    failing_call = 0;
    ok_eq(WARM_UP("/a", "/b?c=d", "/a"), 0);
    is_str(seen, "GET /a from localhost:80, GET /b?c=d from localhost:80, GET /a from localhost:80, ");
}

static void test_a_listener_lends_its_port(void)
{
    struct oribi_listeners *listeners = calloc(1, sizeof(*listeners));
    listeners->count = 1;
    listeners->items[0] = (struct oribi_listener){.fd = -1, .host = "127.0.0.1", .port = "9292"};
    failing_call = 0;
    ok_eq(warm_up(listeners, (const char *const[]){"/", NULL}), 0);
    is_str(seen, "GET / from localhost:9292, ");
    free(listeners);
}

static void test_a_500_fails_and_is_named(void)
{
    failing_call = 3;
    ok_eq(WARM_UP("/a", "/b", "/c", "/d"), ORIBI_EAPP);
    is_str(error, "warmup: GET /c was answered with 500");
    ok_eq(calls, 4);
}

static void test_a_target_that_is_too_long_is_refused_below_500(void)
{
    char target[17 * 1024];
    memset(target, 'a', sizeof(target));
    target[0] = '/';
    target[sizeof(target) - 1] = '\0';
    failing_call = 0;
    ok_eq(WARM_UP(target), 0);
    ok_eq(calls, 0);
}

static void test_as_many_as_a_list_may_hold(void)
{
    const char *targets[ORIBI_OPTION_ITEMS_MAX + 1] = {NULL};
    for (int i = 0; i < ORIBI_OPTION_ITEMS_MAX; i++)
        targets[i] = "/x";
    failing_call = 0;
    ok_eq(warm_up(NULL, targets), 0);
    ok_eq(calls, ORIBI_OPTION_ITEMS_MAX);
}

int main(void)
{
    test_targets_are_asked_in_their_order();
    test_a_listener_lends_its_port();
    test_a_500_fails_and_is_named();
    test_a_target_that_is_too_long_is_refused_below_500();
    test_as_many_as_a_list_may_hold();
    return done_testing();
}
