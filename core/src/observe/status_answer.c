/* Answers of the status listener: one request in, one answer out, with the parser and the writer that workers have.
 * Pure but for its look at the server. */
#include "observe/status.h"
#include "observe/status_listener.h"
#include "observe/state.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/http/date.h"
#include "oribi/http/fields.h"
#include "oribi/http/head.h"
#include "oribi/http/response.h"

#include <stdio.h>
#include <string.h>

enum {
    TARGET_BYTES_MAX = 1024,
    FIELDS_MAX = 64,
    HEAD_BYTES_MAX = 1024, /* of an answer */
    HEADERS_MAX = 5,
    POLICY_CAP = 256,
};

/* An answer under assembly. */
struct answer {
    int status;
    const char *type;
    const char *name; /* of one more field, and its value; NULL: none */
    const char *value;
    char policy[POLICY_CAP]; /* Content-Security-Policy of the page; "": none */
    uint32_t *asked;         /* the question about stacks that was asked for this request; 0: none */
    bool later;              /* not yet: the workers are being asked, or a body is to come */
    struct oribi_buf body;
};

static void put(struct answer *answer, const char *text)
{
    (void)oribi_buf_try_append(&answer->body, text, strlen(text)); /* where memory is out the rest is missing */
}

static void refuse(struct answer *answer, int status, const char *text)
{
    answer->status = status;
    put(answer, text);
}

/* --- who may ask --- */

static struct oribi_slice field_of(const struct oribi_head *head, const char *lower_name)
{
    struct oribi_slice lower = oribi_slice(lower_name, strlen(lower_name));
    for (uint32_t i = 0; i < head->field_count; i++)
        if (oribi_slice_equal_fold(oribi_slice(head->fields[i].name, head->fields[i].name_len), lower))
            return oribi_slice(head->fields[i].value, head->fields[i].value_len);
    return oribi_slice(NULL, 0);
}

/* Looks at every byte, so that the time does not tell how many were right. */
static bool is_token(struct oribi_slice given, const char *token)
{
    static const char scheme[] = "bearer ";
    size_t n = strlen(token);
    unsigned char differs = 0;
    if (given.n != n + sizeof(scheme) - 1 ||
        !oribi_slice_equal_fold(oribi_slice(given.p, sizeof(scheme) - 1), oribi_slice(scheme, sizeof(scheme) - 1)))
        return false;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned char)(given.p[sizeof(scheme) - 1 + i] ^ token[i]);
    return differs == 0;
}

bool oribi__status_has_token(const struct oribi__observe *observe, const struct oribi_head *head)
{
    const char *token = observe->view.context->options->status_token;
    return token && is_token(field_of(head, "authorization"), token);
}

/* Without a token a page that a browser has loaded from elsewhere could ask here by a name of its own that leads to
 * this machine (DNS rebinding); such a request names its host. */
static bool names_no_other(const struct oribi_head *head)
{
    struct oribi_slice host = head->host;
    if (host.n == 0 || host.p[0] == '[' || oribi_slice_equal_fold(host, ORIBI_SLICE("localhost")))
        return true;
    for (size_t i = 0; i < host.n; i++)
        if (host.p[i] != '.' && (host.p[i] < '0' || host.p[i] > '9'))
            return false;
    return true;
}

/* The page holds no data and asks its reader for the token: a browser cannot send one with its first request. */
static bool may_ask(const struct oribi__observe *observe, const struct oribi_head *head, struct answer *answer)
{
    const char *token = observe->view.context->options->status_token;
    bool is_page = oribi_slice_equal(head->path, ORIBI_SLICE("/"));
    if (token && !is_page && !is_token(field_of(head, "authorization"), token)) {
        answer->name = "WWW-Authenticate";
        answer->value = "Bearer";
        refuse(answer, 401, "this needs Authorization: Bearer and the text of status_token\n");
        return false;
    }
    if (!token && !observe->state->status.side.is_unix && !names_no_other(head)) {
        refuse(answer, 421, "ask for this by an address in numbers or as localhost, or set status_token\n");
        return false;
    }
    return true;
}

/* --- what is answered --- */

/* A server with a placeholder serves: its clients decide what they make of that. */
static void put_ready(const struct oribi__observe *observe, struct answer *answer)
{
    const struct oribi__acme_set *acme = observe->view.acme;
    char line[64];
    uint32_t placeholders = oribi__acme_placeholders(acme);
    (void)snprintf(line, sizeof(line), "ready; a placeholder serves for %u certificate%s\n", placeholders,
                   oribi_log_plural(placeholders)); /* fits */
    put(answer, placeholders ? line : "ready\n");
}

static void answer_ready(const struct oribi__observe *observe, struct answer *answer)
{
    const struct oribi_policy *policy = observe->view.policy;
    bool ready = policy->up && !policy->stopping && !policy->stop_at && oribi_policy_serving(policy) > 0;
    if (ready && oribi__frontends_missing(observe->view.frontends))
        refuse(answer, 503, "not ready: no frontend serves\n");
    else if (ready)
        put_ready(observe, answer);
    else
        refuse(answer, 503, policy->up ? "not ready: the server stops, or has no worker\n" : "not ready: starting\n");
}

/* The number behind `since=` in a query, 0 without it; -1: not a number. */
static int64_t since_of(struct oribi_slice query)
{
    static const char name[] = "since=";
    enum { DIGITS_MAX = 18 };
    const char *p = query.n ? oribi_os_memmem(query.p, query.n, name, sizeof(name) - 1) : NULL;
    const char *end = query.p + query.n;
    int64_t number = 0;
    if (!p || (p > query.p && p[-1] != '&'))
        return 0;
    const char *first = p += sizeof(name) - 1;
    while (p < end && *p >= '0' && *p <= '9' && p - first < DIGITS_MAX)
        number = number * 10 + (*p++ - '0');
    return p == first || (p < end && *p != '&') ? -1 : number;
}

static void answer_history(const struct oribi__observe *observe, const struct oribi_head *head, struct answer *answer)
{
    int64_t since = since_of(head->query);
    if (since < 0) {
        refuse(answer, 400, "since is the number of a sample: \"last\" of the answer before\n");
        return;
    }
    answer->type = "application/json";
    oribi__history_json(observe, (uint64_t)since, &answer->body);
}

/* The first time the workers are asked, the second time there is an answer. */
static void answer_stacks(struct oribi__observe *observe, struct answer *answer, bool json)
{
    answer->later = *answer->asked == 0 || !oribi__stacks_answered(observe, *answer->asked);
    if (*answer->asked == 0)
        *answer->asked = oribi__stacks_ask(observe);
    if (answer->later)
        return;
    const struct oribi_buf *found = oribi__stacks_answer_to(observe, json);
    if (json)
        answer->type = "application/json";
    (void)oribi_buf_try_append(&answer->body, found->p, found->len); /* where memory is out it is empty */
}

/* The page may run what it brings and ask this listener, and nothing else. */
static void answer_page(struct answer *answer)
{
    char nonce[ORIBI__PAGE_NONCE_CAP];
    if (oribi__page_nonce(nonce) < 0) {
        refuse(answer, 500, "no random numbers here\n");
        return;
    }
    (void)snprintf(
        answer->policy, sizeof(answer->policy),
        "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        nonce, nonce); /* fits */
    answer->type = "text/html; charset=utf-8";
    oribi__page(nonce, &answer->body);
}

static void route(struct oribi__observe *observe, const struct oribi_head *head, struct answer *answer)
{
    if (oribi_slice_equal(head->path, ORIBI_SLICE("/metrics"))) {
        bool open = oribi__metrics_open_wanted(field_of(head, "accept"));
        answer->type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                            : "text/plain; version=0.0.4; charset=utf-8";
        answer->name = "Vary";
        answer->value = "Accept";
        oribi__footprints_ask(observe);
        oribi__metrics(observe, &answer->body, open);
    } else if (oribi_slice_equal(head->path, ORIBI_SLICE("/status.json"))) {
        answer->type = "application/json";
        oribi__footprints_ask(observe);
        oribi__status_json(observe, &answer->body, true);
    } else if (oribi_slice_equal(head->path, ORIBI_SLICE("/history.json"))) {
        answer_history(observe, head, answer);
    } else if (oribi_slice_equal(head->path, ORIBI_SLICE("/stacks"))) {
        answer_stacks(observe, answer, false);
    } else if (oribi_slice_equal(head->path, ORIBI_SLICE("/stacks.json"))) {
        answer_stacks(observe, answer, true);
    } else if (oribi_slice_equal(head->path, ORIBI_SLICE("/healthz"))) {
        put(answer, "ok\n");
    } else if (oribi_slice_equal(head->path, ORIBI_SLICE("/ready"))) {
        answer_ready(observe, answer);
    } else if (oribi_slice_equal(head->path, ORIBI_SLICE("/"))) {
        answer_page(answer);
    } else {
        refuse(answer, 404,
               "not found; there are / for browsers, /metrics, /status.json, /history.json, /stacks, /stacks.json, "
               "/healthz, /ready, and /publish for POST\n");
    }
}

static void publish(const struct oribi__observe *observe, const struct oribi_head *head, struct oribi_slice body,
                    size_t head_bytes, size_t *wanted, struct answer *answer)
{
    char text[ORIBI_ERROR_TEXT_CAP];
    int status = oribi__status_publish(observe, head, body, head_bytes, wanted, text);
    answer->later = status == 0;
    if (status == 0)
        return;
    if (status == 401) {
        answer->name = "WWW-Authenticate";
        answer->value = "Bearer";
    }
    refuse(answer, status, text);
}

static void make(struct oribi__observe *observe, const struct oribi_head *head, struct oribi_slice body,
                 size_t head_bytes, size_t *wanted, struct answer *answer)
{
    bool is_get = oribi_slice_equal(head->method, ORIBI_SLICE("GET"));
    bool publishes = oribi_slice_equal(head->path, ORIBI_SLICE("/publish"));
    if (publishes && oribi_slice_equal(head->method, ORIBI_SLICE("POST"))) {
        publish(observe, head, body, head_bytes, wanted, answer);
    } else if (publishes || (!is_get && !head->is_head)) {
        answer->name = "Allow";
        answer->value = publishes ? "POST" : "GET, HEAD";
        refuse(answer, 405, publishes ? "POST alone\n" : "GET and HEAD alone\n");
    } else if (may_ask(observe, head, answer)) {
        route(observe, head, answer);
    }
}

/* --- bytes --- */

static struct oribi_header header(const char *name, const char *value)
{
    return (struct oribi_header){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
}

static void put_answer(const struct answer *answer, const struct oribi_head *head, struct oribi_buf *out)
{
    char date[ORIBI_DATE_LEN];
    char text[HEAD_BYTES_MAX];
    struct oribi_header headers[HEADERS_MAX];
    uint32_t count = 0;
    headers[count++] = header("Content-Type", answer->type);
    headers[count++] = header("Cache-Control", "no-store");
    headers[count++] = header("X-Content-Type-Options", "nosniff");
    if (answer->policy[0])
        headers[count++] = header("Content-Security-Policy", answer->policy);
    if (answer->name)
        headers[count++] = header(answer->name, answer->value);
    oribi_date_format(oribi_clock_wall_s(), date);
    struct oribi_response res = {
        .status = answer->status,
        .headers = headers,
        .header_count = count,
        .minor = head->minor,
        .is_head = head->is_head,
        .body_len = (int64_t)answer->body.len,
        .date = date,
    };
    ssize_t n = oribi_response_head(&res, text, sizeof(text)); /* fields of ours fit */
    if (n <= 0 || oribi_buf_try_append(out, text, (size_t)n) < 0)
        return;
    if (res.framing == ORIBI_FRAMING_LENGTH)
        (void)oribi_buf_try_append(out, answer->body.p, answer->body.len); /* Content-Length tells of what is missing */
}

/* A mistake of the client; without an answer the connection closes all the same. */
static void put_mistake(int code, bool is_head, struct oribi_buf *out)
{
    char date[ORIBI_DATE_LEN];
    char text[HEAD_BYTES_MAX];
    int status = oribi_error_status(code);
    oribi_date_format(oribi_clock_wall_s(), date);
    size_t n = oribi_response_error(status ? status : 400, date, oribi_slice(NULL, 0), is_head, text, sizeof(text));
    (void)oribi_buf_try_append(out, text, n);
}

bool oribi__status_answer(struct oribi__observe *observe, const char *request, size_t n, uint32_t *asked,
                          size_t *wanted, struct oribi_buf *out)
{
    struct oribi_parser parser = {0};
    struct oribi_head head = {0};
    struct oribi_limits limits;
    bool answered = true;
    oribi_limits_init(&limits);
    limits.target_bytes_max = TARGET_BYTES_MAX;
    limits.head_bytes_max = ORIBI__STATUS_HEAD_BYTES_MAX;
    limits.fields_max = FIELDS_MAX;
    ssize_t code = oribi_parser_head(&parser, &limits, request, n, &head);
    if (code == ORIBI_AGAIN)
        return false;
    if (code < 0) {
        put_mistake((int)code, head.is_head, out);
    } else {
        struct answer answer = {.status = 200, .type = "text/plain; charset=utf-8", .asked = asked};
        struct oribi_slice body = {request + code, n - (size_t)code};
        make(observe, &head, body, (size_t)code, wanted, &answer);
        answered = !answer.later;
        if (answered)
            put_answer(&answer, &head, out);
        oribi_buf_deinit(&answer.body);
    }
    oribi_head_release(&head);
    return answered;
}
