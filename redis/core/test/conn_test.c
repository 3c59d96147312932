/* Connections to servers that misbehave: what they answer is never taken for another's. */
#include "src/conn.c"

#include "told.h"

#include "child.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { SHORT_MS = 30, LONG_MS = 20000 };

static struct oribi_redis_conn conn;
static int peer = -1;

/* A connection to `peer`. */
static void open_pair(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        exit(2);
    oribi_redis_conn_init(&conn, 0);
    conn.read_ms = conn.write_ms = LONG_MS;
    oribi_redis_conn_attach(&conn, pair[0]);
    peer = pair[1];
}

static void close_pair(void)
{
    oribi_redis_conn_deinit(&conn);
    if (peer >= 0)
        close(peer);
    peer = -1;
}

static void hang_up(void)
{
    close(peer);
    peer = -1;
}

static void answer(const char *text)
{
    if (send(peer, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
        exit(2);
}

static int send_ping(uint64_t quiet, uint64_t replies)
{
    struct oribi_slice ping = ORIBI_SLICE("PING");
    for (uint64_t i = 0; i < quiet + replies; i++)
        oribi_redis_command(&conn.out, &ping, 1);
    return oribi_redis_conn_send(&conn, quiet, replies);
}

/* Begins, sends one command, and reads `events` events. What came, or the error. */
static int ask(int events, struct told *told)
{
    int found = oribi_redis_conn_begin(&conn);
    if (found == 0)
        found = send_ping(0, 1);
    for (int i = 0; i < events && found == 0; i++) {
        struct oribi_redis_event event;
        found = oribi_redis_conn_next(&conn, &event);
        if (found == 0)
            tell(told, &event);
    }
    if (found == 0)
        oribi_redis_conn_end(&conn);
    return found;
}

static void test_a_half_reply_and_silence(void)
{
    static const char *const HALVES[] = {"", "+", "+O", "+OK", "+OK\r", "$5\r\nhel", "*2\r\n:1\r\n", "$20000\r\nabc"};
    for (size_t i = 0; i < sizeof(HALVES) / sizeof(HALVES[0]); i++) {
        struct told told = {.n = 0};
        open_pair();
        conn.read_ms = SHORT_MS;
        int found = oribi_redis_conn_begin(&conn);
        answer(HALVES[i]);
        if (found == 0)
            found = send_ping(0, 1);
        char body[20000];
        struct oribi_redis_event event;
        while (found == 0 && (found = oribi_redis_conn_next(&conn, &event)) == 0)
            if (event.kind == ORIBI_REDIS_LONG)
                found = oribi_redis_conn_body(&conn, body, (size_t)event.count);
        ok_eq(found, ORIBI_ETIMEOUT);
        ok_eq(conn.state, ORIBI_REDIS_CLOSED);
        ok(strstr(oribi_redis_conn_why(&conn), "no reply within 30 ms") != NULL);
        ok_eq(ask(1, &told), ORIBI_ECLOSED);
        close_pair();
    }
}

static void test_the_end_in_the_middle_of_a_reply(void)
{
    static const char REPLY[] = "*3\r\n$5\r\nhello\r\n:1\r\n+OK\r\n";
    for (size_t cut = 0; cut < sizeof(REPLY) - 1; cut++) {
        open_pair();
        int found = oribi_redis_conn_begin(&conn);
        if (found == 0)
            found = send_ping(0, 1);
        if (send(peer, REPLY, cut, MSG_NOSIGNAL) != (ssize_t)cut)
            exit(2);
        shutdown(peer, SHUT_WR);
        struct oribi_redis_event event = {.ends = false};
        while (found == 0 && !event.ends)
            found = oribi_redis_conn_next(&conn, &event);
        ok_named(found == ORIBI_ECLOSED && conn.state == ORIBI_REDIS_CLOSED && conn.sent, "ends after %zu bytes", cut);
        close_pair();
    }
}

static void test_what_nobody_asked_for(void)
{
    static const char *const WRONG[] = {"+OK\r\n", ":1\r\n", "*1\r\n", "HTTP/1.1 400 Bad Request\r\n"};
    struct told told = {.n = 0};
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        open_pair();
        answer(WRONG[i]);
        ok_eq(oribi_redis_conn_begin(&conn), ORIBI_EBAD);
        ok_eq(conn.state, ORIBI_REDIS_CLOSED);
        close_pair();
    }
    /* Behind the reply, in one packet with it. */
    open_pair();
    int found = oribi_redis_conn_begin(&conn);
    if (found == 0)
        found = send_ping(0, 1);
    answer("+PONG\r\n+MINE?\r\n");
    struct oribi_redis_event event;
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    oribi_redis_conn_end(&conn);
    ok_eq(oribi_redis_conn_begin(&conn), ORIBI_EBAD);
    close_pair();

    open_pair();
    found = oribi_redis_conn_begin(&conn);
    answer("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    if (found == 0)
        found = send_ping(0, 1);
    ok_eq(oribi_redis_conn_next(&conn, &event), ORIBI_EBAD);
    ok(strstr(oribi_redis_conn_why(&conn), "is it a Redis?") != NULL);
    ok_eq(ask(1, &told), ORIBI_ECLOSED);
    close_pair();
}

static void test_a_peer_that_left(void)
{
    struct told told = {.n = 0};
    open_pair();
    hang_up();
    ok_eq(ask(1, &told), ORIBI_ECLOSED);
    ok_named(!conn.sent, "nothing was sent");
    close_pair();
    open_pair();
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    hang_up();
    ok_eq(send_ping(0, 1), ORIBI_ECLOSED);
    ok_named(!conn.sent, "nothing was sent");
    close_pair();
}

static void test_pushes_do_not_shift_replies(void)
{
    struct told told = {.n = 0};
    open_pair();
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    ok_eq(send_ping(0, 3), 0);
    answer("+1\r\n>2\r\n+invalidate\r\n*1\r\n+k\r\n+2\r\n>1\r\n+x\r\n>0\r\n+3\r\n");
    struct oribi_redis_event event;
    while (conn.owed > 0 && oribi_redis_conn_next(&conn, &event) == 0)
        tell(&told, &event);
    is_str(told.text, "status 1., push 2, status invalidate, array 1, status k., status 2., push 1, status x., "
                      "push 0., status 3.");
    oribi_redis_conn_end(&conn);

    /* Between operations they are told of before a command is sent. */
    conn.begun_ms = 0;
    answer(">1\r\n+x\r\n");
    ok_eq(oribi_redis_conn_begin(&conn), 1);
    told.n = 0;
    for (int found = 1; found == 1; found = oribi_redis_conn_push(&conn)) {
        ok_eq(oribi_redis_conn_next(&conn, &event), 0);
        tell(&told, &event);
        ok_eq(oribi_redis_conn_next(&conn, &event), 0);
        tell(&told, &event);
    }
    is_str(told.text, "push 1, status x.");
    ok_eq(send_ping(0, 1), 0);
    answer("+PONG\r\n");
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    oribi_redis_conn_end(&conn);
    ok_eq(conn.state, ORIBI_REDIS_IDLE);
    close_pair();
}

/* Pushes for ever, until its peer has enough. */
static void *push_for_ever(void *data)
{
    int fd = *(int *)data;
    for (int i = 0; i < 4000 && send(fd, ">1\r\n+x\r\n", 8, MSG_NOSIGNAL) == 8; i++)
        poll(NULL, 0, 1);
    shutdown(fd, SHUT_RDWR);
    return NULL;
}

static void test_pushes_do_not_stand_for_a_reply(void)
{
    pthread_t server;
    open_pair();
    conn.read_ms = SHORT_MS;
    int found = oribi_redis_conn_begin(&conn);
    if (found == 0)
        found = send_ping(0, 1);
    pthread_create(&server, NULL, push_for_ever, &peer);
    struct oribi_redis_event event;
    while (found == 0)
        found = oribi_redis_conn_next(&conn, &event);
    ok_eq(found, ORIBI_ETIMEOUT);
    oribi_redis_conn_close(&conn);
    pthread_join(server, NULL);
    close_pair();
}

static void test_quiet_commands(void)
{
    open_pair();
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    ok_eq(send_ping(20, 1), 0);
    char wide[600];
    memset(wide, 'w', sizeof(wide));
    memcpy(wide, "-", 1);
    memcpy(wide + sizeof(wide) - 3, "\r\n", 3);
    answer(wide);
    answer("+OK\r\n*2\r\n-ERR within\r\n:1\r\n");
    for (int i = 0; i < 17; i++)
        answer("-ERR no\r\n");
    answer("+mine\r\n");
    struct oribi_redis_event event;
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    is_slice(event.text, "mine");
    oribi_redis_conn_end(&conn);
    ok_eq(conn.quiet_errors, 18);
    ok_eq(conn.errors_kept, ORIBI_REDIS_ERRORS_KEPT);
    ok_eq(strlen(conn.errors[0]), ORIBI_REDIS_ERROR_BYTES - 1);
    is_str(conn.errors[1], "ERR no");
    oribi_redis_conn_forget_errors(&conn);
    ok_eq(conn.quiet_errors + conn.errors_kept, 0);

    /* A long string, a push in between, and what is left for settle(). */
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    ok_eq(send_ping(3, 0), 0);
    oribi_redis_conn_end(&conn);
    struct oribi_buf text = {0};
    oribi_buf_print(&text, "$20000\r\n");
    for (int i = 0; i < 20000; i++)
        oribi_buf_append(&text, "x", 1);
    oribi_buf_append(&text, "\r\n>1\r\n+p\r\n+OK\r\n-ERR last\r\n", 27);
    oribi_buf_append(&text, "", 1);
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    answer(text.p);
    ok_eq(oribi_redis_conn_settle(&conn, &event), 1);
    ok_eq(event.kind, ORIBI_REDIS_PUSH);
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    is_slice(event.text, "p");
    ok_eq(oribi_redis_conn_settle(&conn, &event), 0);
    oribi_redis_conn_end(&conn);
    ok_eq(conn.quiet_errors, 1);
    is_str(conn.errors[0], "ERR last");
    oribi_buf_deinit(&text);
    close_pair();
}

static void *answer_quietly(void *data)
{
    struct oribi_buf text = {0};
    for (int i = 0; i < ORIBI_REDIS_QUIET_MAX; i++)
        oribi_buf_append(&text, i == 5000 ? ">1\r\n+p\r\n:1\r\n" : ":1\r\n", i == 5000 ? 12 : 4);
    oribi_buf_append(&text, "+PONG\r\n", 7);
    for (size_t at = 0; at < text.len;) {
        ssize_t n = send(peer, text.p + at, text.len - at, MSG_NOSIGNAL);
        if (n < 0)
            break;
        at += (size_t)n;
    }
    oribi_buf_deinit(&text);
    return NULL;
}

static void test_quiet_replies_have_a_maximum(void)
{
    pthread_t server;
    struct oribi_redis_event event;
    open_pair();
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    conn.out.len = 0;
    oribi_buf_append(&conn.out, "x", 1);
    ok_eq(oribi_redis_conn_send(&conn, ORIBI_REDIS_QUIET_MAX - 1, 0), 0);
    oribi_redis_conn_end(&conn);
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    ok_eq(conn.quiet, ORIBI_REDIS_QUIET_MAX - 1);
    oribi_buf_append(&conn.out, "x", 1);
    ok_eq(oribi_redis_conn_send(&conn, 1, 0), 0);
    oribi_redis_conn_end(&conn);
    /* They are waited for, and the push among them is told. */
    pthread_create(&server, NULL, answer_quietly, NULL);
    ok_eq(oribi_redis_conn_begin(&conn), 1);
    ok_eq(conn.quiet, ORIBI_REDIS_QUIET_MAX - 5000);
    ok_eq(oribi_redis_conn_push(&conn), 1);
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    ok_eq(event.kind, ORIBI_REDIS_PUSH);
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    is_slice(event.text, "p");
    ok_eq(oribi_redis_conn_push(&conn), 0);
    ok_eq(send_ping(0, 1), 0);
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    is_slice(event.text, "PONG");
    oribi_redis_conn_end(&conn);
    pthread_join(server, NULL);
    close_pair();

    open_pair();
    conn.read_ms = SHORT_MS;
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    oribi_buf_append(&conn.out, "x", 1);
    ok_eq(oribi_redis_conn_send(&conn, ORIBI_REDIS_QUIET_MAX, 0), 0);
    oribi_redis_conn_end(&conn);
    ok_eq(oribi_redis_conn_begin(&conn), ORIBI_ETIMEOUT);
    ok_eq(conn.state, ORIBI_REDIS_CLOSED);
    close_pair();

    /* settle() tells that push as any other. */
    open_pair();
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    oribi_buf_append(&conn.out, "x", 1);
    ok_eq(oribi_redis_conn_send(&conn, ORIBI_REDIS_QUIET_MAX, 0), 0);
    oribi_redis_conn_end(&conn);
    pthread_create(&server, NULL, answer_quietly, NULL);
    ok_eq(oribi_redis_conn_begin(&conn), 1);
    ok_eq(oribi_redis_conn_settle(&conn, &event), 1);
    ok_eq(event.kind, ORIBI_REDIS_PUSH);
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    ok_eq(oribi_redis_conn_settle(&conn, &event), 0);
    ok_eq(conn.quiet, 0);
    oribi_redis_conn_end(&conn);
    pthread_join(server, NULL);
    close_pair();
}

/* Answers each command of 100 bytes with 4 KiB, and does not read while it cannot write: the worst server. */
enum { COMMANDS = 3000, COMMAND_BYTES = 1000, REPLY_BYTES = 4096 };
static void *answer_greedily(void *data)
{
    int fd = *(int *)data;
    char in[COMMAND_BYTES];
    char out[REPLY_BYTES + 16];
    int head = snprintf(out, sizeof(out), "$%d\r\n", REPLY_BYTES);
    memset(out + head, 'r', REPLY_BYTES);
    memcpy(out + head + REPLY_BYTES, "\r\n", 2);
    for (int i = 0; i < COMMANDS; i++)
        if (recv(fd, in, sizeof(in), MSG_WAITALL) != (ssize_t)sizeof(in) ||
            send(fd, out, (size_t)head + REPLY_BYTES + 2, MSG_NOSIGNAL) != head + REPLY_BYTES + 2)
            break;
    return NULL;
}

static void test_a_pipeline_larger_than_the_buffers_of_both(void)
{
    pthread_t server;
    open_pair();
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    pthread_create(&server, NULL, answer_greedily, &peer);
    char *p = oribi_buf_reserve(&conn.out, (size_t)COMMANDS * COMMAND_BYTES);
    memset(p, 'c', (size_t)COMMANDS * COMMAND_BYTES);
    conn.out.len = (size_t)COMMANDS * COMMAND_BYTES;
    ok_eq(oribi_redis_conn_send(&conn, 0, COMMANDS), 0);
    ok_eq(conn.out.len + conn.out.cap, 0);
    int good = 0;
    struct oribi_redis_event event;
    while (conn.owed > 0 && oribi_redis_conn_next(&conn, &event) == 0)
        good += event.kind == ORIBI_REDIS_STRING && event.text.n == REPLY_BYTES;
    ok_eq(good, COMMANDS);
    oribi_redis_conn_end(&conn);
    pthread_join(server, NULL);
    close_pair();
}

static void test_a_server_that_takes_nothing(void)
{
    open_pair();
    conn.write_ms = SHORT_MS;
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    char *p = oribi_buf_reserve(&conn.out, 8 << 20);
    memset(p, 'c', 8 << 20);
    conn.out.len = 8 << 20;
    ok_eq(oribi_redis_conn_send(&conn, 0, 1), ORIBI_ETIMEOUT);
    ok_named(conn.sent, "a part was sent");
    ok_eq(conn.state, ORIBI_REDIS_CLOSED);
    close_pair();
}

static int in_the_child(void *data)
{
    if (oribi_redis_conn_begin(&conn) != ORIBI_ECLOSED || conn.fd != -1)
        return 1;
    oribi_redis_conn_deinit(&conn);
    return 7;
}

static void test_a_child_leaves_the_connection_alone(void)
{
    struct told told = {.n = 0};
    open_pair();
    ok_eq(child_code(in_the_child, NULL), 7);
    answer("+PONG\r\n");
    conn.begun_ms = oribi_clock_ms(); /* the reply is there already */
    ok_eq(ask(1, &told), 0);
    is_str(told.text, "status PONG.");
    char sent[100];
    ssize_t n = recv(peer, sent, sizeof(sent), MSG_DONTWAIT);
    is_slice(oribi_slice(sent, n > 0 ? (size_t)n : 0), "*1\r\n$4\r\nPING\r\n");
    close_pair();
}

/* --- hooks --- */

/* Gives `text` in pieces: `first` bytes, then `step` at a time; then silence. */
static struct {
    const char *text;
    size_t n, at, first, step;
    bool throws; /* instead of silence */
    bool drips;  /* each piece takes a millisecond */
    jmp_buf out;
} script;

static ssize_t scripted(struct oribi_redis_conn *c, const struct iovec *pieces, int n, int timeout_ms)
{
    if (script.drips && timeout_ms == 0)
        return ORIBI_AGAIN;
    if (script.drips)
        poll(NULL, 0, 1);
    size_t step = script.at < script.first ? script.first - script.at : script.step;
    size_t done = 0;
    for (int i = 0; i < n; i++) {
        size_t most = script.n - script.at < step - done ? script.n - script.at : step - done;
        size_t now = most < pieces[i].iov_len ? most : pieces[i].iov_len;
        memcpy(pieces[i].iov_base, script.text + script.at, now);
        script.at += now;
        done += now;
    }
    if (done > 0)
        return (ssize_t)done;
    if (script.throws)
        longjmp(script.out, 1);
    if (timeout_ms)
        poll(NULL, 0, 1);
    return ORIBI_AGAIN;
}

static const struct oribi_redis_transport SCRIPTED = {.receive = scripted};

static void test_replies_cut_at_every_byte(void)
{
    static const struct {
        const char *text, *want;
    } CASES[] = {
        {"+OK\r\n", "status OK."},
        {"-ERR a b\r\n", "error ERR a b."},
        {":-12\r\n", "int -12."},
        {"$11\r\nhello\r\nabcd\r\n", "string hello\r\nabcd."},
        {"$-1\r\n", "null."},
        {"*3\r\n*1\r\n:1\r\n$0\r\n\r\n*-1\r\n", "array 3, array 1, int 1, string , null."},
        {"%1\r\n+k\r\n~2\r\n#t\r\n,1.5\r\n", "map 1, status k, set 2, bool 1, double 1.5."},
        {"=8\r\ntxt:abcd\r\n", "txt:abcd."},
        {"(123\r\n", "big 123."},
        {"!6\r\nERR a\n\r\n", "error ERR a\n."},
        {"|1\r\n+a\r\n+b\r\n_\r\n", "null."},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        size_t n = strlen(CASES[i].text);
        size_t good = 0;
        for (size_t cut = 1; cut <= n; cut++)
            for (size_t step = 1; step <= n; step += n - 1) {
                struct told told = {.n = 0};
                open_pair();
                conn.transport = &SCRIPTED;
                script.text = CASES[i].text;
                script.n = script.at = 0;
                script.first = cut;
                script.step = step;
                int found = oribi_redis_conn_begin(&conn);
                script.n = n;
                if (found == 0)
                    found = send_ping(0, 1);
                struct oribi_redis_event event;
                while (found == 0 && conn.owed > 0 && (found = oribi_redis_conn_next(&conn, &event)) == 0)
                    tell(&told, &event);
                good += found == 0 && strcmp(told.text, CASES[i].want) == 0;
                close_pair();
            }
        ok_named(good == 2 * n, "%s", CASES[i].want);
    }
}

static void test_a_drip_does_not_extend_the_time(void)
{
    static char drip[ORIBI_REDIS_PROGRESS_BYTES];
    memset(drip, 'x', sizeof(drip));
    memcpy(drip, "$60000\r\n", 8);
    open_pair();
    conn.transport = &SCRIPTED;
    conn.read_ms = SHORT_MS;
    script.text = drip;
    script.at = script.n = script.first = 0;
    script.step = 1;
    int found = oribi_redis_conn_begin(&conn);
    if (found == 0)
        found = send_ping(0, 1);
    script.n = 2000;
    script.drips = true;
    struct oribi_redis_event event;
    char body[60000];
    if (found == 0 && (found = oribi_redis_conn_next(&conn, &event)) == 0)
        found = oribi_redis_conn_body(&conn, body, sizeof(body));
    ok_eq(found, ORIBI_ETIMEOUT);
    ok_named(script.at < script.n, "after %zu bytes", script.at);
    script.drips = false;
    close_pair();
}

static void test_hooks_that_leave_by_an_exception(void)
{
    static const char PUSH[] = ">2\r\n+half\r\n";
    struct told told = {.n = 0};
    /* In the middle of a push that came between operations. */
    open_pair();
    conn.transport = &SCRIPTED;
    script.text = PUSH;
    script.at = 0;
    script.n = script.first = sizeof(PUSH) - 1;
    script.throws = true;
    volatile int begun = oribi_redis_conn_begin(&conn);
    struct oribi_redis_event event;
    if (setjmp(script.out) == 0)
        for (;;)
            if (oribi_redis_conn_next(&conn, &event) != 0)
                break;
    ok_eq(begun, 1);
    script.throws = false;
    ok_eq(ask(1, &told), ORIBI_ECLOSED);
    ok_eq(conn.state, ORIBI_REDIS_CLOSED);
    close_pair();

    /* In the look at the beginning, and in the wait for a reply. */
    for (volatile int sends = 0; sends < 2; sends++) {
        open_pair();
        conn.transport = &SCRIPTED;
        conn.begun_ms = sends ? oribi_clock_ms() : 0;
        script.n = script.at = 0;
        script.throws = true;
        if (setjmp(script.out) == 0)
            (void)ask(1, &told);
        script.throws = false;
        ok_eq(ask(1, &told), ORIBI_ECLOSED);
        ok_eq(conn.state, ORIBI_REDIS_CLOSED);
        close_pair();
    }
}

static void test_long_strings_go_where_they_will_lie(void)
{
    enum { N = 300000 };
    open_pair();
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    ok_eq(send_ping(0, 2), 0);
    struct oribi_buf text = {0};
    oribi_buf_print(&text, "*2\r\n$%d\r\n", N);
    for (int i = 0; i < N; i++)
        oribi_buf_append(&text, &"abcdefg"[i % 7], 1);
    oribi_buf_append(&text, "\r\n:5\r\n+OK\r\n", 11);
    conn.transport = &SCRIPTED;
    script.text = text.p;
    script.n = text.len;
    script.at = 0;
    script.first = 100;
    script.step = 70000;
    struct oribi_redis_event event;
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    ok_eq(event.kind, ORIBI_REDIS_LONG);
    ok_eq(event.count, N);
    char *body = oribi_mem_alloc(1, N);
    ok_eq(oribi_redis_conn_body(&conn, body, 10), 0);
    ok_eq(oribi_redis_conn_body(&conn, body + 10, N - 10), 0);
    ok_named(memcmp(body, text.p + text.len - 11 - N, N) == 0, "its bytes");
    oribi_mem_free(body);
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    ok_named(event.kind == ORIBI_REDIS_INTEGER && event.integer == 5 && event.ends, "what follows");
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    is_slice(event.text, "OK");
    oribi_redis_conn_end(&conn);
    ok_named(conn.reader.in.cap < N, "the string was not in the buffer");
    oribi_buf_deinit(&text);
    close_pair();
}

/* --- signals, and what the kernel is asked --- */

static void nothing(int number)
{
}

static void *answer_later(void *data)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    poll(NULL, 0, 40);
    answer("+PONG\r\n");
    return NULL;
}

static void test_signals_end_no_wait(void)
{
    struct sigaction on_alarm = {.sa_handler = nothing};
    struct sigaction before;
    sigaction(SIGALRM, &on_alarm, &before);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    struct itimerval never = {{0, 0}, {0, 0}};
    struct told told = {.n = 0};
    pthread_t server;
    open_pair();
    conn.begun_ms = oribi_clock_ms(); /* the reply may be there already */
    pthread_create(&server, NULL, answer_later, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    ok_eq(ask(1, &told), 0);
    setitimer(ITIMER_REAL, &never, NULL);
    is_str(told.text, "status PONG.");
    pthread_join(server, NULL);
    sigaction(SIGALRM, &before, NULL);
    close_pair();
}

static void test_a_server_that_is_no_master_is_left(void)
{
    static const char *const ERROR = "-READONLY no\r\n";
    for (int i = 0; i < 4; i++) { /* a reply; within an array; without follows; to a quiet command */
        struct told told = {.n = 0};
        open_pair();
        conn.follows = i != 2;
        conn.begun_ms = oribi_clock_ms();
        if (i == 3)
            ok_eq(oribi_redis_conn_begin(&conn) + send_ping(1, 0), 0);
        oribi_redis_conn_end(&conn);
        answer(i == 1 ? "*1\r\n" : "");
        answer(ERROR);
        answer(i == 3 ? "+PONG\r\n" : "");
        conn.begun_ms = oribi_clock_ms();
        ok_eq(ask(1 + (i == 1), &told), 0);
        bool leaves = i == 0 || i == 3;
        ok_eq(conn.left, leaves);
        ok_eq(oribi_redis_conn_begin(&conn), leaves ? ORIBI_ECLOSED : 0);
        ok_eq(conn.state, leaves ? ORIBI_REDIS_CLOSED : ORIBI_REDIS_IDLE);
        close_pair();
    }
}

static int64_t limit_ms(void)
{
    struct timeval limit = {0, 0};
    socklen_t size = sizeof(limit);
    getsockopt(conn.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &size);
    return limit.tv_sec * 1000 + limit.tv_usec / 1000;
}

static void test_a_short_wait_does_not_make_all_others_short(void)
{
    char in[10];
    struct iovec piece = {in, sizeof(in)};
    open_pair();
    ok_eq(oribi_redis_socket_receive(&conn, &piece, 1, 5), ORIBI_AGAIN);
    ok_named(limit_ms() >= 1 && limit_ms() < 20, "%d ms", (int)limit_ms());
    answer("a");
    ok_eq(oribi_redis_socket_receive(&conn, &piece, 1, 1000), 1);
    ok_named(limit_ms() >= 1000, "%d ms", (int)limit_ms());
    close_pair();
}

int main(void)
{
    int64_t before = oribi_mem_blocks();
    test_a_half_reply_and_silence();
    test_the_end_in_the_middle_of_a_reply();
    test_what_nobody_asked_for();
    test_a_peer_that_left();
    test_pushes_do_not_shift_replies();
    test_pushes_do_not_stand_for_a_reply();
    test_quiet_commands();
    test_quiet_replies_have_a_maximum();
    test_a_pipeline_larger_than_the_buffers_of_both();
    test_a_server_that_takes_nothing();
    test_a_child_leaves_the_connection_alone();
    test_replies_cut_at_every_byte();
    test_a_drip_does_not_extend_the_time();
    test_hooks_that_leave_by_an_exception();
    test_long_strings_go_where_they_will_lie();
    test_signals_end_no_wait();
    test_a_short_wait_does_not_make_all_others_short();
    test_a_server_that_is_no_master_is_left();
    ok_eq(oribi_mem_blocks(), before);
    return done_testing();
}
