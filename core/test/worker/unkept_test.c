/* Bytes that cannot be stored: request bodies are refused before the application sees anything of them, answers break
 * off, and both logs tell the truth. */
#include "worker/logs/refused.c"

#include "worker/client.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

enum { BODY_MEMORY = 4096, FILE_MAX = 10000, PIECES = 20, LONG = 16000000 };

static char log_path[108];
static char access_path[108];
static char text[64 * 1024];
static int app_status; /* of the last write or reply */

/* Why nothing can be stored. */
static const struct fault {
    const char *name;
    int status;
    const char *words;
} faults[] = {
    {"no such folder", 503, "cannot be stored in /nonexistent/nowhere: no such file or directory"},
    {"no room", 507, "cannot be stored in /tmp: file too large"},
};

static void set_fault(const struct fault *fault)
{
    struct rlimit limit;
    (void)getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = fault && fault->status == 507 ? FILE_MAX : limit.rlim_max;
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    (void)setenv("TMPDIR", fault && fault->status == 503 ? "/nonexistent/nowhere" : "/tmp", 1);
}

static const char *content_of(const char *path)
{
    FILE *in = fopen(path, "r");
    size_t n = in ? fread(text, 1, sizeof(text) - 1, in) : 0;
    text[n] = '\0';
    if (in)
        fclose(in);
    return text;
}

static const char *error_log(void)
{
    return content_of(log_path);
}

static const char *access_lines(const struct site *site)
{
    oribi_access_log_flush(site->access_log);
    return content_of(access_path);
}

static void open_logs(struct site *site)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    int fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    oribi_log_init(fd, ORIBI_LOG_INFO);
    (void)unlink(access_path);
    ok_eq(oribi_access_log_open(access_path, "common", NULL, &site->access_log, error), 0);
}

static void begin(struct site *site, const struct fault *fault, void (*app)(struct oribi_req *))
{
    site_init(site);
    site->options.limits.body_memory_max = BODY_MEMORY;
    site->options.response_memory_max = 64 * 1024;
    open_logs(site);
    site_open(site, app);
    set_fault(fault);
}

static void end(struct site *site)
{
    struct oribi_access_log *log = site->access_log;
    set_fault(NULL);
    site_close(site);
    oribi_access_log_close(log);
    quiet_log();
}

/* ---- request bodies ---- */

static const struct upload {
    const char *name;
    const char *head;
    size_t len; /* of what is sent behind it */
} uploads[] = {
    {"announced as long", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n", 60000},
    {"announced, with more behind it", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n", 70000},
    {"waiting for 100", "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 60000\r\n\r\n",
     60000},
    {"chunked", "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nea60\r\n", 60007},
    {"of a client of 1.0", "POST /echo HTTP/1.0\r\nContent-Length: 60000\r\n\r\n", 60000},
    {"for HEAD", "HEAD /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n", 60000},
};

static void check_upload(const struct fault *fault, const struct upload *upload)
{
    struct site site;
    char *body = big_text(70000);
    char wanted[160];
    bool head = strncmp(upload->head, "HEAD", 4) == 0;
    memcpy(body + 60000, "\r\n0\r\n\r\n", 7);
    begin(&site, fault, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, upload->head));
    ok(client_send_bytes(&site, c, body, upload->len));
    struct answer answer = {0};
    ok(next_answer_to(&site, c, head, &answer));
    if (answer.status == 100)
        ok(next_answer_to(&site, c, head, &answer));
    ok_named(answer.status == fault->status, "%s, %s: %d", fault->name, upload->name, answer.status);
    ok(answer.closes);
    ok_named(pump_until(&site, c->eof || c->error) && !c->error, "%s, %s: FIN, no reset", fault->name, upload->name);
    ok_eq(site.calls, 0);
    client_close(&site, c);
    ok(pump_until(&site, nothing_open(&site)));
    ok_named(strstr(error_log(), fault->words) != NULL, "%s", error_log());
    (void)snprintf(wanted, sizeof(wanted), "\" %d %d\n", fault->status, head ? 0 : (int)answer.body_len);
    ok_named(strstr(access_lines(&site), wanted) != NULL, "%s", text);
    ok_eq(atomic_load(&site.slot.shed_count), 1);
    ok_eq(atomic_load(&site.slot.bad_requests), 0);
    ok_eq(site.worker->reactor.budget.memory_used + site.worker->reactor.budget.file_used, 0);

    set_fault(NULL); /* and the next is served */
    c = client_open(&site);
    ok(client_send(&site, c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n"));
    ok(client_send_bytes(&site, c, body, 60000));
    answer = ok_answer(&site, c, 200, NULL);
    ok(answer.body_len == 60000 && memcmp(answer.body, body, 60000) == 0);
    free(body);
    end(&site);
}

static void test_a_body_that_cannot_be_stored_is_refused(void)
{
    for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)
        for (size_t i = 0; i < sizeof(uploads) / sizeof(uploads[0]); i++)
            check_upload(&faults[f], &uploads[i]);
}

static void test_what_fits_into_memory_needs_no_file(void)
{
    struct site site;
    char *body = big_text(BODY_MEMORY);
    begin(&site, &faults[0], route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4096\r\n\r\n"));
    ok(client_send_bytes(&site, c, body, BODY_MEMORY));
    ok_eq(ok_answer(&site, c, 200, NULL).body_len, BODY_MEMORY);
    free(body);
    end(&site);
}

/* ---- answers ---- */

static void stream(struct oribi_req *req, int64_t len)
{
    struct iovec piece = {NULL, LONG / PIECES};
    char *body = big_text(LONG / PIECES);
    piece.iov_base = body;
    ok_eq(oribi_reply_begin(req, 200, &text_type, 1, len), 0);
    for (int i = 0; i < PIECES; i++)
        if ((app_status = oribi_reply_write(req, &piece, 1)) < 0)
            break;
    if (app_status >= 0)
        app_status = oribi_reply_end(req);
    else
        oribi_reply_abort(req);
    free(body);
}

static void answer_at_length(struct oribi_req *req)
{
    char *body = big_text(LONG);
    struct iovec whole = {body, LONG};
    if (path_is(req, "/whole"))
        app_status = oribi_reply(req, 200, &text_type, 1, &whole, 1);
    else if (path_is(req, "/stream"))
        stream(req, -1);
    else if (path_is(req, "/sized"))
        stream(req, LONG);
    else
        route(req);
    free(body);
}

static const struct cut {
    const char *request;
    const char *line;
    bool exact; /* the body's bytes are the connection's behind the head */
    bool reset; /* nothing else shows that something is missing */
} cuts[] = {
    {"GET /whole HTTP/1.1\r\nHost: a\r\n\r\n", "GET /whole HTTP/1.1", true, false},
    {"GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /whole HTTP/1.1\r\nHost: a\r\n\r\n", "GET /whole HTTP/1.1", true,
     false},
    {"GET /sized HTTP/1.1\r\nHost: a\r\n\r\n", "GET /sized HTTP/1.1", true, false},
    {"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", "GET /stream HTTP/1.1", false, false},
    {"GET /stream HTTP/1.0\r\n\r\n", "GET /stream HTTP/1.0", true, true},
};

/* The number that stands behind `words` in `from`, -1 without it. */
static long long number_behind(const char *from, const char *words)
{
    const char *at = strstr(from, words);
    return at ? strtoll(at + strlen(words), NULL, 10) : -1;
}

static void check_cut(const struct fault *fault, const struct cut *cut)
{
    struct site site;
    char wanted[120];
    begin(&site, fault, answer_at_length);
    struct client *c = client_open(&site);
    client_hold_little(c);
    c->paused = true;
    app_status = 1;
    ok(client_send(&site, c, cut->request));
    ok(pump_until(&site, app_status <= 0 && strstr(error_log(), ": answer cut after ")));
    c->paused = false;
    ok(pump_until(&site, c->eof || c->error));
    if (cut->reset)
        ok_named(c->error == ECONNRESET || over_unix, "%s: reset: %d", cut->line, c->error);
    const char *got = memmem(c->got, c->got_len, "/hello\r\n", 8) ? NULL : c->got;
    const char *head = got ? memmem(got, c->got_len, "\r\n\r\n", 4) : NULL;
    long long received = head ? c->got + c->got_len - head - 4 : -1;

    (void)snprintf(wanted, sizeof(wanted), "%.*s: answer cut after ",
                   (int)strcspn(cut->line, " ") + 1 + (int)strcspn(cut->line + 4, " "), cut->line);
    long long told = number_behind(error_log(), wanted);
    ok_named(told > 0 && told < LONG && strstr(text, fault->words) != NULL, "%s", text);
    (void)snprintf(wanted, sizeof(wanted), "\"%s\" 200 ", cut->line);
    long long logged = number_behind(access_lines(&site), wanted);
    bool marked = strstr(text, " cut\n") != NULL;
    ok_named(logged == told && marked, "%s, %s: %lld told, %s", fault->name, cut->line, told, text);
    if (!cut->reset && strncmp(cut->request, "GET /hello", 10) != 0) /* a reset takes bytes away that were sent */
        ok_named(cut->exact ? received == logged : received >= logged && received < logged + PIECES * 16,
                 "%s, %s: %lld received, %lld logged", fault->name, cut->line, received, logged);
    ok_eq(atomic_load(&site.slot.status_class[0]), 1);
    ok(pump_until(&site, nothing_open(&site)));
    end(&site);
}

static void test_an_answer_whose_rest_cannot_be_stored_is_cut_and_said_to_be(void)
{
    for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)
        for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++)
            check_cut(&faults[f], &cuts[i]);
}

static void test_a_client_that_leaves_has_what_it_took_in_the_log(void)
{
    struct site site;
    begin(&site, NULL, answer_at_length);
    struct client *c = client_open(&site);
    client_hold_little(c);
    struct linger now = {1, 0};
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    c->paused = true;
    ok(client_send(&site, c, "GET /whole HTTP/1.1\r\nHost: a\r\n\r\n"));
    client_close(&site, c); /* with an answer on its way: reset */
    ok(pump_until(&site, nothing_open(&site)));
    long long logged = number_behind(access_lines(&site), "\"GET /whole HTTP/1.1\" 200 ");
    ok_named(logged <= LONG, "%s", text);
    end(&site);
}

static void run_all(void)
{
    test_a_body_that_cannot_be_stored_is_refused();
    test_what_fits_into_memory_needs_no_file();
    test_an_answer_whose_rest_cannot_be_stored_is_cut_and_said_to_be();
    test_a_client_that_leaves_has_what_it_took_in_the_log();
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)snprintf(log_path, sizeof(log_path), "/tmp/oribi-unkept-%d.log", (int)getpid());
    (void)snprintf(access_path, sizeof(access_path), "/tmp/oribi-unkept-%d.access", (int)getpid());
    quiet_log();
    run_everywhere(run_all);
    (void)unlink(log_path);
    (void)unlink(access_path);
    return done_testing();
}
