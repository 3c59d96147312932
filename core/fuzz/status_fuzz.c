/* Requests to the status listener. First byte: whether there is a token, whether it is a unix socket, whether the
 * server is up, how many workers there are. The rest is what a client has sent.
 *
 * Holds for every input: an answer is one whole HTTP/1.1 answer that closes, with a length that is right; more bytes
 * are wanted only as long as the head may still be completed; with a token nobody without it gets 200, save for the
 * page, which holds no data. */
#include "observe/status_answer.c"

#include "ours.h"

#include "oribi/config/listener.h"

#include <stdlib.h>

enum { TOKEN = 1, UNIX = 2, UP = 4, WORKERS_SHIFT = 3, SLOTS = 64 };

static const char token[] = "fuzz";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct oribi__observe *prepare(uint8_t flags, struct oribi_options *options)
{
    static struct oribi_policy_config config = {.workers = 1, .workers_max = SLOTS / 2};
    static struct oribi_listeners listeners;
    static struct oribi__process_context context = {.program = "fuzz", .listeners = &listeners};
    static struct oribi__frontend_set frontends;
    static struct oribi_policy policy;
    static struct oribi_dispatcher dispatcher;
    static int predecessor_fd = -1;
    static struct oribi__observe observe = {.view = {.context = &context,
                                                     .policy = &policy,
                                                     .frontends = &frontends,
                                                     .predecessor_fd = &predecessor_fd,
                                                     .version = "",
                                                     .restart_file = ""}};
    if (!observe.dispatcher) {
        expect(oribi_scoreboard_create(&context.board, SLOTS) == 0);
        expect(oribi_dispatcher_init(&dispatcher) == 0);
        observe.dispatcher = &dispatcher;
    }
    *options = (struct oribi_options){.status_token = flags & TOKEN ? (char *)(uintptr_t)token : NULL};
    oribi_policy_init(&policy, &config, context.board.slots, SLOTS);
    context.options = options;
    observe.status.side.is_unix = flags & UNIX;
    policy.up = flags & UP;
    for (uint32_t i = 0; i < (uint32_t)flags >> WORKERS_SHIFT; i++)
        policy.records[i].state = ORIBI_RECORD_SERVING;
    return &observe;
}

static void check(const struct oribi_buf *out, bool has_token, const uint8_t *request, size_t n)
{
    const char *end = memmem(out->p, out->len, "\r\n\r\n", 4);
    const char *length = memmem(out->p, out->len, "\r\nContent-Length: ", 18);
    expect(out->len > 12 && memcmp(out->p, "HTTP/1.1 ", 9) == 0);
    expect(end && length && length < end);
    expect(memmem(out->p, out->len, "\r\nConnection: close\r\n", 21) != NULL);
    size_t body = out->len - (size_t)(end + 4 - out->p);
    expect(body == 0 || body == strtoul(length + 18, NULL, 10)); /* none: HEAD */
    bool is_page = memmem(out->p, out->len, "\r\nContent-Type: text/html", 25) != NULL;
    if (has_token && !is_page && memcmp(out->p + 9, "200", 3) == 0)
        expect(memmem(request, n, token, sizeof(token) - 1) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_options options;
    struct oribi_buf out = {0};
    if (size < 1 || size > ORIBI__STATUS_HEAD_BYTES_MAX + 2)
        return 0;
    struct oribi__observe *observe = prepare(data[0], &options);
    size_t n = size - 1;
    char *request = malloc(n ? n : 1); /* so that one byte too many is seen */
    memcpy(request, data + 1, n);
    uint32_t asked = 0;
    bool answered = oribi__status_answer(observe, request, n, &asked, &out);
    expect(answered == (out.len > 0));
    if (answered)
        check(&out, data[0] & TOKEN, data + 1, n);
    else if (!asked)
        expect(n <= ORIBI__STATUS_HEAD_BYTES_MAX);
    (void)oribi__metrics_open_wanted(oribi_slice(request, n));
    oribi_buf_deinit(&out);
    free(request);
    return 0;
}
