/* Clients of fakes.c that are transcripts: they write down what they hear of their requests. */
#include "frontend/channel.h"
#include "frontend/count.h"
#include "frontend/frontend.h"
#include "frontend/upstream_request.h"

#include "fakes_private.h"
#include "frontend/canonical.h"
#include "oribi/base/os/os.h"
#include "oribi/http/head.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A call whose client is a transcript. */
struct fake_client {
    struct oribi__upstream_request *call; /* NULL: over */
    struct fake_request request;
    struct oribi_buf heard;
    struct oribi_buf body;
    int body_fd;
    int64_t untaken;
    uint32_t events;
    const char *reason;
};

static struct fake_client fakes[FAKE_CALLS_MAX];
static int fake_count;

static struct fake_client *fake_of(const struct oribi__upstream_request *call)
{
    return call->owner;
}

static void note_body(struct fake_client *fake, struct oribi_slice body, bool last)
{
    if (body.n > 40)
        oribi_buf_print(&fake->heard, "%zu", body.n);
    else
        oribi_buf_append(&fake->heard, body.p, body.n);
    oribi_buf_append(&fake->heard, last ? ". " : " ", last ? 2 : 1);
}

static void fake_destroy(struct fake_client *fake)
{
    struct oribi__upstream_request *call = fake->call;
    fake->call = NULL;
    if (call)
        oribi__upstream_destroy(call);
}

/* After an event: the client has gone in it, or its request is over, or it waits for its reader. */
static void after(struct fake_client *fake, char event, struct oribi_slice body, bool last)
{
    fake->events++;
    if (fake->request.feeds)
        (void)fake_floods(fake_last_far(), FAKE_FILLER_BYTES);
    if (fake->request.goes_in == event || (last && !fake->request.keeps)) {
        fake_destroy(fake);
        return;
    }
    if (!fake->request.streams || last)
        return;
    fake->untaken += (int64_t)body.n;
    if (fake->untaken > oribi__upstream_high(fake->call))
        oribi__upstream_block(fake->call);
}

static void fake_interim(struct oribi__upstream_request *call, const struct oribi_answer *answer)
{
    oribi_buf_print(&fake_of(call)->heard, "interim %d ", answer->status);
    after(fake_of(call), 'i', oribi_slice("", 0), false);
}

static void fake_begin_answer(struct oribi__upstream_request *call, struct oribi_answer *answer,
                              struct oribi_slice body, bool last)
{
    struct fake_client *fake = fake_of(call);
    oribi_buf_print(&fake->heard, "begin %d ", answer->status);
    note_body(fake, body, last);
    if (last && call->tail.len)
        oribi_buf_print(&fake->heard, "trailers %zu ", call->tail.len);
    after(fake, 'b', body, last);
}

static void fake_more(struct oribi__upstream_request *call, struct oribi_slice body, bool last)
{
    struct fake_client *fake = fake_of(call);
    oribi_buf_append(&fake->heard, "more ", 5);
    note_body(fake, body, last);
    if (last && call->tail.len)
        oribi_buf_print(&fake->heard, "trailers %zu ", call->tail.len);
    after(fake, 'm', body, last);
}

static void fake_fail(struct oribi__upstream_request *call, int status, const char *reason)
{
    struct fake_client *fake = fake_of(call);
    fake->reason = reason;
    oribi_buf_print(&fake->heard, call->begun ? "cut %d " : "fail %d ", status);
    fake_destroy(fake);
}

static void fake_reads_file(struct oribi__upstream_request *call)
{
    oribi_buf_append(&fake_of(call)->heard, "file ", 5);
}

static int64_t fake_pending(const struct oribi__upstream_request *call)
{
    return fake_of(call)->untaken;
}

static void fake_waits(struct oribi__upstream_request *call, int change)
{
    oribi_buf_append(&fake_of(call)->heard, change > 0 ? "+ " : "- ", 2);
}

static void fake_tunnel(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice rest)
{
    struct fake_client *fake = fake_of(call);
    oribi_buf_append(&fake->heard, "tunnel ", 7);
    note_body(fake, rest, false);
    if (fake->request.goes_in != 't')
        oribi_os_close(oribi__channel_release(call->channel));
    fake_destroy(fake);
}

static const struct oribi__upstream_ops fake_ops = {.interim = fake_interim,
                                                    .begin = fake_begin_answer,
                                                    .more = fake_more,
                                                    .reads_file = fake_reads_file,
                                                    .fail = fake_fail,
                                                    .pending = fake_pending,
                                                    .waits = fake_waits,
                                                    .tunnel = fake_tunnel};

static void fill_body(struct fake_client *fake)
{
    struct oribi__upstream_request *call = fake->call;
    const struct fake_request *request = &fake->request;
    if (request->body)
        oribi_buf_append(&fake->body, request->body, strlen(request->body));
    for (size_t i = 0; i < request->body_bytes; i++)
        oribi_buf_append(&fake->body, "b", 1);
    call->body_len = (int64_t)fake->body.len;
    if (!request->in_file) {
        call->body = oribi_slice(fake->body.p, fake->body.len);
        return;
    }
    fake->body_fd = memfd_create("body", MFD_CLOEXEC);
    fake_must(write(fake->body_fd, fake->body.p, fake->body.len) == (ssize_t)fake->body.len, "no body");
    call->body_fd = fake->body_fd;
}

static void fill_head(struct fake_client *fake)
{
    static struct oribi_head head;
    struct oribi__upstream_request *call = fake->call;
    const struct oribi__peer peer = {.fd = -1, .addr_len = 8, .port_len = 1, .addr = "10.0.0.1", .port = "1"};
    const char *method = fake->request.method ? fake->request.method : "GET";
    static char line[ORIBI_HEAD_BYTES_CAP];
    struct oribi_limits limits = fake_options()->limits;
    struct oribi_parser parser = {0};
    size_t head_bytes = fake->request.head_bytes;
    size_t n = (size_t)snprintf(line, sizeof(line), "%s /%d HTTP/1.1\r\nHost: a\r\n%s%s", method, fake_count - 1,
                                fake->request.upgrades ? "Connection: upgrade\r\nUpgrade: x\r\n" : "",
                                head_bytes ? "f: " : "");
    memset(line + n, 'x', head_bytes);
    n += head_bytes;
    n += (size_t)snprintf(line + n, sizeof(line) - n, "%s\r\n", head_bytes ? "\r\n" : "");
    memset(&head, 0, sizeof(head));
    limits.head_bytes_max = sizeof(line);
    fake_must(oribi_parser_head(&parser, &limits, line, n, &head) == (ssize_t)n, "no head");
    call->is_head = head.is_head;
    call->safe = oribi_canonical_is_safe(head.method);
    call->upgrades = head.upgrade;
    oribi__count_request(call, head.method, false);
    bool has_body = call->body_len > 0;
    fake_must(oribi__upstream_about(call, &peer, &head, 11, true) == 0 &&
                  oribi_canonical_head(&call->head, &head, has_body ? call->body_len : -1, fake->request.chunked) == 0,
              "no request");
    oribi_head_release(&head);
    if (!fake->request.chunked)
        return;
    if (call->body.n)
        call->chunk_len = (uint8_t)oribi_chunk_head(call->chunk, call->body.n);
    oribi_buf_print(&call->tail, "%s0\r\nx: y\r\n\r\n", call->body.n ? "\r\n" : "");
}

int fake_call(struct fake_request request)
{
    fake_must(fake_count < FAKE_CALLS_MAX, "too many calls");
    struct fake_client *fake = &fakes[fake_count++];
    *fake = (struct fake_client){.request = request, .body_fd = -1};
    fake->call = oribi__upstream_create(fake_frontend(), &fake_ops, fake);
    fake_must(fake->call != NULL, "no call");
    fill_body(fake);
    fill_head(fake);
    return fake_count - 1;
}

void fake_submits(int call)
{
    oribi__upstream_submit(fakes[call].call);
}

int fake_submit(struct fake_request request)
{
    int call = fake_call(request);
    fake_submits(call);
    return call;
}

int fake_out(struct fake_request request, int *far)
{
    int call = fake_submit(request);
    fake_dispatch();
    *far = fake_take(0);
    (void)fake_asked(*far);
    return call;
}

/* Of a call that has taken so long that its worker has one at a time. */
int fake_befriend(uint32_t worker)
{
    int call = fake_submit((struct fake_request){0});
    fake_dispatch();
    int far = fake_take(worker);
    (void)fake_asked(far);
    fake_passes_ms(1);
    fake_answers(far, FAKE_OK);
    fake_turn();
    ok_named(far >= 0 && !fake_upstream(call), "worker %u has answered", worker);
    return far;
}

struct oribi__upstream_request *fake_upstream(int call)
{
    return fakes[call].call;
}

struct oribi__upstream_request **fake_listed_at(void)
{
    return &fake_frontend()->upstream->listed_at;
}

const char *fake_heard(int call)
{
    struct oribi_buf *heard = &fakes[call].heard;
    oribi_buf_append(heard, "", 1);
    heard->len--;
    return heard->p;
}

const char *fake_reason(int call)
{
    return fakes[call].reason;
}

void fake_goes(int call)
{
    fake_destroy(&fakes[call]);
}

void fake_takes(int call, int64_t bytes)
{
    fakes[call].untaken -= bytes;
    if (fakes[call].call)
        oribi__upstream_taken(fakes[call].call);
}

int64_t fake_untaken(int call)
{
    return fakes[call].untaken;
}

uint32_t fake_events(int call)
{
    return fakes[call].events;
}

bool fake_is_blocked(int call)
{
    return fakes[call].call && fakes[call].call->blocked;
}

bool fake_is_queued(int call)
{
    return fakes[call].call && fakes[call].call->state == ORIBI__CALL_QUEUED;
}

bool fake_is_out(int call)
{
    return fakes[call].call && fakes[call].call->state == ORIBI__CALL_OUT;
}

void fake_sends_no_more(int call)
{
    struct oribi__upstream_request *upstream = fakes[call].call;
    upstream->finished = true;
    if (upstream->channel)
        oribi__channel_finish(upstream->channel);
}

void fake_calls_end(void)
{
    for (int i = 0; i < fake_count; i++) {
        fake_goes(i);
        oribi_buf_deinit(&fakes[i].heard);
        oribi_buf_deinit(&fakes[i].body);
        oribi_os_close(fakes[i].body_fd);
    }
    fake_count = 0;
}
