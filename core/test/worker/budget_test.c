/* The cost of a request in system calls and allocations, counted and not timed: a worker process is traced (ptrace)
 * while a client process sends kept-alive requests. And what happens when an allocation fails: each one of a few
 * scenarios in turn. */
#include "base/mem_counted.h"

#include "child.h"
#include "worker/client.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Calls that the C library makes instead where a processor never had these. */
#ifndef SYS_epoll_wait
#define SYS_epoll_wait SYS_epoll_pwait
#define SYS_poll       SYS_ppoll
#endif
#ifndef SYS_newfstatat /* of processors with 32 bits */
#define SYS_newfstatat SYS_fstatat64
#endif
#ifndef SYS_mmap
#define SYS_mmap SYS_mmap2
#endif

enum { PLACES_MIN = 7, REQUESTS = 1000, CLIENTS = 8, SYSCALLS_MAX = 512 };

/* ---- system calls ---- */

/* Marks in the trace: a call nobody else makes. */
static void mark(void)
{
    (void)syscall(SYS_getpgid, 0);
}

static struct site *served;

static void count_app(struct oribi_req *req)
{
    if (path_is(req, "/mark")) {
        mark();
        allocations = 0;
        reply_text(req, 200, "marked");
    } else if (path_is(req, "/end")) {
        mark();
        reply_text(req, 200, "end");
        oribi_worker_stop(served->worker);
    } else {
        reply_text(req, 200, "hello");
    }
}

/* The worker's life, as a binding lives it. Exit code: allocations while counting. */
static int serve(struct site *site)
{
    served = site;
    for (;;) {
        struct oribi_req *req = oribi_worker_take(site->worker);
        if (req) {
            count_app(req);
            continue;
        }
        if (oribi_worker_done(site->worker))
            return allocations > 100 ? 100 : (int)allocations;
        oribi_worker_wait_for(site->worker, -1);
    }
}

static void ask_blocking(int fd, const char *request, char *back, size_t cap)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0 || poll(&wait, 1, 10000) != 1 ||
        recv(fd, back, cap, 0) <= 0)
        _exit(3);
}

static int send_requests(const struct site *site, const char *request)
{
    int fds[CLIENTS];
    char back[1024];
    alarm(1000);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = connect_socket(site);
        ask_blocking(fds[i], request, back, sizeof(back)); /* connected and registered */
    }
    for (int i = -10 * CLIENTS; i < REQUESTS; i += CLIENTS) {
        if (i == 0) /* as many buffers as clients have been needed at once by now */
            ask_blocking(fds[0], "GET /mark HTTP/1.1\r\nHost: a\r\n\r\n", back, sizeof(back));
        for (int c = 0; c < CLIENTS; c++)
            if (send(fds[c], request, strlen(request), MSG_NOSIGNAL) < 0)
                return 3;
        for (int c = 0; c < CLIENTS; c++) {
            struct pollfd wait = {.fd = fds[c], .events = POLLIN};
            if (poll(&wait, 1, 10000) != 1 || recv(fds[c], back, sizeof(back), 0) <= 0)
                return 3;
        }
    }
    ask_blocking(fds[0], "GET /end HTTP/1.1\r\nHost: a\r\n\r\n", back, sizeof(back));
    return 0;
}

static uint32_t calls_of[SYSCALLS_MAX];

/* Follows `pid` to its end and counts its system calls between two marks. Returns its exit status, -1 when tracing
 * is not allowed. */
static int trace(pid_t pid)
{
    int status;
    bool counting = false;
    bool entering = true;
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return -1;
    if (ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0)
        return -1;
    while (ptrace(PTRACE_SYSCALL, pid, NULL, 0) == 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        if (WSTOPSIG(status) != (SIGTRAP | 0x80))
            continue;
        struct __ptrace_syscall_info info;
        if (entering && ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0) {
            if (info.entry.nr == SYS_getpgid)
                counting = !counting;
            else if (counting && info.entry.nr < SYSCALLS_MAX)
                calls_of[info.entry.nr]++;
        }
        entering = !entering;
    }
    return status;
}

static char mount[64]; /* of the worker that is counted; empty: none */

/* 0, or 77 when this machine does not let us trace. */
static int count_calls(const char *request, int *allocated)
{
    struct site site;
    site_init(&site);
    char *mounts[] = {mount};
    site.options.keepalive_requests_max = 0;
    if (mount[0])
        site.options.mounts = (struct oribi_text_list){mounts, 1};
    memset(calls_of, 0, sizeof(calls_of));
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char bind_text[160] = "tcp://127.0.0.1:0";
    if (over_unix) {
        (void)snprintf(unix_path, sizeof(unix_path), "/tmp/oribi-test-%d.sock", (int)getpid());
        (void)snprintf(bind_text, sizeof(bind_text), "unix://%s", unix_path);
    }
    ok_eq(oribi_options_set(&site.options, "bind", bind_text, error), 0);
    ok_eq(oribi_listeners_open(&site.listeners, &site.options, error), 0);
    fflush(stdout);
    pid_t worker = fork();
    if (worker == 0) {
        alarm(1000);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(101);
        (void)raise(SIGSTOP);
        if (mount[0])
            hold_clock(true); /* files are compared with the disk once a second */
        struct oribi_worker_setup setup = {
            .options = &site.options, .listeners = &site.listeners, .slot = &site.slot, .life_fd = -1};
        if (oribi_worker_create(&setup, &site.worker) < 0)
            _exit(102);
        _exit(serve(&site));
    }
    pid_t client = fork();
    if (client == 0)
        _exit(send_requests(&site, request));
    int status = trace(worker);
    int client_status = 0;
    if (status == -1)
        (void)kill(client, SIGKILL);
    (void)waitpid(client, &client_status, 0);
    oribi_listeners_close(&site.listeners, true);
    site.options.mounts = (struct oribi_text_list){0};
    oribi_options_deinit(&site.options);
    if (status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == 101))
        return 77;
    ok_named(client_status == 0 && WIFEXITED(status), "%s: worker and client end well (%d, %d)", where_name, status,
             client_status);
    *allocated = WEXITSTATUS(status);
    return 0;
}

/* A worker looks once a second whether its descriptors are still its own (fd_guard.c), should the machine take so
 * long. */
enum { OWN_LOOKS = 40 };

static void check_budget(const char *name, const char *request)
{
    int allocated = -1;
    if (count_calls(request, &allocated) == 77) {
        tap_skip(1, "ptrace is not allowed here");
        return;
    }
    uint32_t total = 0;
    char list[512] = "";
    for (int i = 0; i < SYSCALLS_MAX; i++) {
        total += calls_of[i];
        size_t n = strlen(list);
        if (calls_of[i])
            (void)snprintf(list + n, sizeof(list) - n, " #%d: %u", i, calls_of[i]);
    }
    bool polls = getenv("ORIBI_EVENT_SOURCE") || strcmp(oribi_os_layer(), "portable") == 0;
    ok_named(calls_of[SYS_read] >= REQUESTS && calls_of[SYS_read] <= REQUESTS + 2, "%s: %s: one read a request: %u",
             where_name, name, calls_of[SYS_read]);
    uint32_t sends = calls_of[SYS_sendmsg] + calls_of[SYS_sendto];
    ok_named(sends >= REQUESTS && sends <= REQUESTS + 2, "%s: %s: one send a request: %u", where_name, name, sends);
    ok_named(calls_of[SYS_epoll_ctl] == 0, "%s: %s: no epoll_ctl: %u", where_name, name, calls_of[SYS_epoll_ctl]);
    /* poll(2) knows numbers only: the source looks whether an event is of the file that it was asked about. */
    uint32_t looks = calls_of[SYS_newfstatat] + calls_of[SYS_fstat];
    ok_named(looks <= (polls ? REQUESTS + 2 : 0) + OWN_LOOKS,
             "%s: %s: a look at the file for each event of poll alone: %u", where_name, name, looks);
    ok_named(total - looks <= 3 * REQUESTS, "%s: %s: %u calls for %d requests%s%s", where_name, name, total, REQUESTS,
             list, polls ? " (poll)" : "");
    uint32_t waits = calls_of[SYS_epoll_wait] + calls_of[SYS_poll];
    if (SYS_epoll_pwait != SYS_epoll_wait) /* which musl takes */
        waits += calls_of[SYS_epoll_pwait];
    uint32_t memory = calls_of[SYS_brk] + calls_of[SYS_mmap]; /* of malloc and of sanitizers, for `allocated` */
    uint32_t pids = calls_of[SYS_getpid] < OWN_LOOKS ? calls_of[SYS_getpid] : 0;
    ok_named(total - calls_of[SYS_read] - sends - memory - looks - pids == waits,
             "%s: %s: nothing but read, send and waiting", where_name, name);
    /* A buffer and a call for each client, should they all have come at once for the first time. */
    ok_named(allocated <= 2 * CLIENTS, "%s: %s: no allocation a request: %d in all", where_name, name, allocated);
}

static void test_calls_and_allocations_of_a_kept_alive_request(void)
{
    check_budget("GET", "GET /hello HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nUser-Agent: test\r\n\r\n");
    check_budget("1,000 pieces", "GET /parts/1000 HTTP/1.1\r\nHost: a\r\n\r\n");
    check_budget(
        "POST", "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\nhello world");
    check_budget("chunked",
                 "POST /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n");
}

static void test_calls_and_allocations_of_a_file_in_memory(void)
{
    char folder[] = "/tmp/oribi-budget-XXXXXX";
    char path[64];
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    ok(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof(path), "%s/a.txt", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ok(fd >= 0 && write(fd, "0123456789", 10) == 10 && futimens(fd, old) == 0 && close(fd) == 0);
    (void)snprintf(mount, sizeof(mount), "/s=%s", folder);
    check_budget("file", "GET /s/a.txt HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n");
    check_budget("range", "GET /s/a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\n\r\n");
    check_budget("several ranges", "GET /s/a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2,-1\r\n\r\n");
    check_budget("not modified", "GET /s/a.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n");
    check_budget("no such file", "GET /s/none HTTP/1.1\r\nHost: a\r\n\r\n");
    check_budget("beside files", "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    mount[0] = '\0';
    ok(unlink(path) == 0 && rmdir(folder) == 0);
}

/* ---- memory of a connection that rests ---- */

static void test_an_idle_connection_takes_512_bytes_at_most(void)
{
    enum { COUNT = 300, BYTES_MAX = 512 };
    struct site site;
    site_init(&site);
    site_open(&site, route);
    for (int i = 0; i <= COUNT; i++) {
        struct client *c = client_open(&site);
        ok(client_send(&site, c, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"));
        ok_answer(&site, c, 200, "hello\n");
        settle(&site);
        if (i == 0)
            memory_bytes = 0; /* of one: what was lent for its request is kept for the next */
    }
    ok_eq(site.worker->reactor.conn_count, COUNT + 1);
    ok_named(memory_bytes > 0 && memory_bytes <= (int64_t)COUNT * BYTES_MAX, "%s: %lld bytes each", where_name,
             (long long)memory_bytes / COUNT);
    site_close(&site);
}

/* ---- memory that runs out ---- */

/* An answer with more in its head than fits where heads are usually written. */
static void reply_large_head(struct oribi_req *req)
{
    static char value[80 * 1024];
    memset(value, 'v', sizeof(value));
    const struct oribi_header headers[] = {text_type, {"X-Large", value, 7, sizeof(value)}};
    struct iovec body = {"large", 5};
    if (oribi_reply(req, 200, headers, 2, &body, 1) == ORIBI_EAPP)
        oribi_reply_error(req, 500);
}

/* A body longer than its Content-Length: cut where that ends. */
static void reply_cut(struct oribi_req *req)
{
    const struct oribi_header headers[] = {text_type, {"Content-Length", "5", 14, 1}};
    struct iovec body[] = {{"01234", 5}, {"56789", 5}};
    (void)oribi_reply(req, 200, headers, 2, body, 2);
}

static void streaming_or_not(struct oribi_req *req)
{
    if (path_is(req, "/large")) {
        reply_large_head(req);
        return;
    }
    if (path_is(req, "/cut")) {
        reply_cut(req);
        return;
    }
    if (!path_is(req, "/stream")) {
        route(req);
        return;
    }
    struct iovec vec = {"streamed", 8};
    if (oribi_reply_begin(req, 200, &text_type, 1, -1) < 0) {
        oribi_reply_error(req, 500);
        return;
    }
    (void)oribi_reply_write(req, &vec, 1);
    (void)oribi_reply_end(req);
}

/* Everything that asks for memory of a size that a peer chooses, one after another on connections of their own. True
 * when all was answered. */
static bool live_through(struct site *site)
{
    static const char *const requests[] = {
        "GET /hello HTTP/1.1\r\nHost: a\r\nCookie: a=1\r\nCookie: b=2\r\nAccept: x\r\nAccept: y\r\n\r\n",
        "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /big/8000000 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /cut HTTP/1.1\r\nHost: a\r\n\r\n",
        ("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
         "1\r\nx\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n"),
    };
    bool all = true;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct client *c = client_open(site);
        struct answer answer = {0};
        all &= client_send(site, c, requests[i]) && next_answer(site, c, &answer) && answer.status == 200;
        client_close(site, c);
    }
    for (int chunked = 0; chunked < 3; chunked++) {
        struct client *c = client_open(site);
        struct answer answer = {0};
        char head[6000];
        size_t n = (size_t)snprintf(head, sizeof(head), "POST /echo HTTP/1.1\r\nHost: a\r\nX: ");
        memset(head + n, 'x', 4500); /* more than a first buffer */
        n += 4500;
        n += (size_t)snprintf(head + n, sizeof(head) - n, "%s",
                              chunked ? "\r\nTransfer-Encoding: chunked\r\n\r\n" : "\r\nContent-Length: 30000\r\n\r\n");
        char *body = big_text(30000);
        bool sent = client_send_bytes(site, c, head, n);
        settle(site);
        if (chunked)
            sent = sent && client_send(site, c, "7530\r\n");
        sent = sent && client_send_bytes(site, c, body, 30000);
        settle(site);
        if (chunked)
            sent = sent && client_send(site, c, "\r\n0\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        all &= next_answer(site, c, &answer) && sent && answer.body_len == 30000 && is_big_text(answer.body, 30000);
        if (all && chunked)
            all &= next_answer(site, c, &answer) && answer.body_len == 6;
        free(body);
        client_close(site, c);
    }
    return all;
}

static void test_every_allocation_may_fail(void)
{
    bool all = false;
    uint32_t failed = 0;
    for (uint32_t n = 1; n < 400 && !all; n++) {
        struct site site;
        site_init(&site);
        site_open(&site, streaming_or_not);
        fail_at = allocations_tried + n; /* and only this one: the next request finds memory again */
        all = live_through(&site);
        bool reached = allocations_tried >= fail_at;
        fail_at = 0;
        failed += reached;
        all = all && !reached;
        struct client *c = client_open(&site);
        struct answer answer = {0};
        if (!client_send(&site, c, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n") || !next_answer(&site, c, &answer) ||
            answer.status != 200)
            fail("%s: after failure %u the worker answers", where_name, n);
        site_close(&site);
    }
    ok_named(all && failed > 17, "%s: %u allocations failed, each was lived through", where_name, failed);
    ok_named(failed_place_count >= PLACES_MIN, "%s: at %u places of the code", where_name, failed_place_count);
    ok_eq(memory_in_use, 0);
}

/* Files by their descriptor and from memory, to clients that read late, with what the cache needs for them. True when
 * all was answered as it should be. */
static bool send_files(struct site *site)
{
    static const struct {
        const char *request;
        int status;
    } asked[] = {
        {"GET /s/large HTTP/1.1\r\nHost: a\r\n\r\n", 200},
        {"GET /s/large HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2999999,4000000-4000009\r\n\r\n", 206},
        {"GET /s/a.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: x\r\nAccept-Encoding: gzip\r\n\r\n", 200},
        {"GET /s/none HTTP/1.1\r\nHost: a\r\n\r\n", 404},
    };
    bool all = true;
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct client *c = client_open(site);
        struct answer answer = {0};
        client_hold_little(c);
        c->paused = true;
        all &= client_send(site, c, asked[i].request);
        settle(site);
        c->paused = false;
        bool there = next_answer(site, c, &answer);
        if (there && answer.status != asked[i].status && answer.status != 503)
            fail("%s: status %d", where_name, answer.status);
        all &= there && answer.status == asked[i].status;
        client_close(site, c);
    }
    return all;
}

static void test_every_allocation_for_files_may_fail(void)
{
    char folder[] = "/tmp/oribi-budget-XXXXXX";
    char line[64];
    char *mounts[] = {line};
    const char *const names[] = {"large", "a.txt"};
    char path[2][64];
    ok(mkdtemp(folder) != NULL);
    (void)snprintf(line, sizeof(line), "/s=%s", folder);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path[i], sizeof(path[i]), "%s/%s", folder, names[i]);
        int fd = open(path[i], O_WRONLY | O_CREAT | O_TRUNC, 0644);
        ok(fd >= 0 && ftruncate(fd, i == 0 ? 5000000 : 10) == 0 && close(fd) == 0);
    }
    bool all = false;
    uint32_t failed = 0;
    for (uint32_t n = 1; n < 100 && !all; n++) {
        struct site site;
        site_init(&site);
        site.options.mounts = (struct oribi_text_list){mounts, 1};
        site_open(&site, route);
        fail_at = allocations_tried + n;
        all = send_files(&site);
        bool reached = allocations_tried >= fail_at;
        fail_at = 0;
        failed += reached;
        all = all && !reached;
        if (!send_files(&site))
            fail("%s: after failure %u the files are sent", where_name, n);
        site.options.mounts = (struct oribi_text_list){0};
        site_close(&site);
    }
    ok_named(all && failed > 5, "%s: %u allocations for files failed, each was lived through", where_name, failed);
    ok_eq(memory_in_use, 0);
    ok(unlink(path[0]) == 0 && unlink(path[1]) == 0 && rmdir(folder) == 0);
}

int main(void)
{
    quiet_log();
    run_everywhere(test_calls_and_allocations_of_a_kept_alive_request);
    run_everywhere(test_calls_and_allocations_of_a_file_in_memory);
    run_everywhere(test_an_idle_connection_takes_512_bytes_at_most);
    run_everywhere(test_every_allocation_may_fail);
    run_everywhere(test_every_allocation_for_files_may_fail);
    return done_testing();
}
