/* The status listener over real sockets, moved on by hand. */
#include "observe/status_listener.c"

#include "system.h"
#include "observe_world.h"
#include "tap.h"
#include "words.h"

#include "oribi/base/mem.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { WORKERS = 64, SLOTS = 2 * WORKERS, FLOOD = 1000, ANSWER_CAP = 1 << 20 };

static char answer[ANSWER_CAP];

static void open_listener(const char *address, const char *token)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    (void)world_begin(WORKERS, SLOTS);
    ok_eq(oribi_options_set(&world->options, "status", address, error), 0);
    if (token)
        ok_eq(oribi_options_set(&world->options, "status_token", token, error), 0);
    ok_eq(oribi__status_open(&world->observe, error), 0);
    is_str(error, "");
}

static void close_listener(void)
{
    world_end(world);
}

static void turn(void)
{
    world_turn(world);
}

static uint32_t clients(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        count += world->observe.state->status.clients[i].fd >= 0;
    return count;
}

/* `room`: bytes that the client's socket takes before it reads; 0: the usual. */
static int dial_with(int room)
{
    struct sockaddr_storage where = {0};
    socklen_t n = sizeof(where);
    (void)getsockname(world->observe.state->status.side.fd, (struct sockaddr *)&where, &n);
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (room)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    if (fd < 0 || connect(fd, (struct sockaddr *)&where, n) < 0 || oribi_os_set_nonblock(fd, true) < 0)
        diag("cannot connect");
    return fd;
}

static int dial(void)
{
    return dial_with(0);
}

static void say(int fd, const char *text)
{
    ok_eq(write(fd, text, strlen(text)), strlen(text));
}

/* Turns until the connection is at its end; gives the bytes that came. */
static size_t hear(int fd)
{
    size_t len = 0;
    int64_t until = oribi_clock_ms() + 30000;
    ssize_t n = ORIBI_AGAIN;
    while (n != 0 && oribi_clock_ms() < until) {
        turn();
        n = oribi_os_read(fd, answer + len, ANSWER_CAP - 1 - len);
        if (n < 0 && n != ORIBI_AGAIN)
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    answer[len] = '\0';
    return len;
}

static const char *ask(const char *request)
{
    int fd = dial();
    say(fd, request);
    (void)hear(fd);
    oribi_os_close(fd);
    turn();
    return answer;
}

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

static void test_paths_and_methods(void)
{
    open_listener("127.0.0.1:0", NULL);
    ok(begins(ask(GET("/healthz")), "HTTP/1.1 200 OK\r\n"));
    ok(strstr(answer, "\r\nConnection: close\r\n") && strstr(answer, "\r\n\r\nok\n"));
    ok(begins(ask(GET("/ready")), "HTTP/1.1 503 "));
    ok(begins(ask(GET("/")), "HTTP/1.1 200 OK\r\n"));
    ok(begins(ask(GET("/none")), "HTTP/1.1 404 "));
    ok(begins(ask("POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\n\r\nx"), "HTTP/1.1 405 "));
    ok(strstr(answer, "\r\nAllow: GET, HEAD\r\n") != NULL);
    ok(begins(ask("HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), "HTTP/1.1 200 OK\r\n"));
    ok(strstr(answer, "\r\n\r\nok") == NULL && strstr(answer, "Content-Length: 3\r\n") != NULL);
    ok(begins(ask(GET("/status.json")), "HTTP/1.1 200 OK\r\n"));
    ok(strstr(answer, "\"queue_wait_ms\":{\"count\":0,") != NULL);
    ok_eq(clients(), 0);
    close_listener();
}

static void test_the_history_is_kept_while_the_listener_is_open(void)
{
    open_listener("127.0.0.1:0", NULL);
    struct oribi_timer *timer = &world->observe.state->history.reading;
    ok(oribi_timer_at(timer) <= oribi_clock_ms()); /* the first reading is taken at once */
    world->policy.records[0].state = ORIBI_RECORD_SERVING;
    world->policy.records[0].pid = getpid();
    turn();
    int64_t next_ms = oribi_timer_at(timer);
    ok(next_ms > oribi_clock_ms() && next_ms <= oribi_clock_ms() + ORIBI__HISTORY_MS);
    turn(); /* too early */
    ok_eq(oribi_timer_at(timer), next_ms);
    ok(begins(ask(GET("/history.json")), "HTTP/1.1 200 OK\r\n") && strstr(answer, "\"samples\":[]"));
    world->context.board.slots[0].status_class[2] = 5;
    world->observe.state->history.history->last_ms -= ORIBI__HISTORY_MS; /* time passes */
    world->observe.state->history.next_ms = 1;
    world_expire(world, timer);
    ok(oribi_timer_at(timer) > oribi_clock_ms()); /* what was missed is not made up for */
    ok(strstr(ask(GET("/history.json?since=0")), ",0,0,5,0,0,0,") != NULL);
    const struct oribi__history_sample *sample = &world->observe.state->history.history->samples[0];
    ok_eq(sample->values[ORIBI__HISTORY_WORKERS], 1);
    ok_eq(sample->values[ORIBI__HISTORY_THREADS], 1);
    ok_eq(sample->values[ORIBI__HISTORY_MEMORY] > 0, oribi_os_adopts_orphans());
    ok(strstr(ask(GET("/history.json?a=b&since=1&c")), "\"samples\":[]") != NULL);
    ok(begins(ask(GET("/history.json?since=")), "HTTP/1.1 400 "));
    ok(begins(ask(GET("/history.json?since=-1")), "HTTP/1.1 400 "));
    ok(begins(ask(GET("/history.json?since=99999999999999999999")), "HTTP/1.1 400 "));
    ok(begins(ask(GET("/history.json?since=999999999999999999")), "HTTP/1.1 200 "));
    oribi__observe_close(&world->observe, false);
    ok_eq(oribi_timer_at(timer), INT64_MAX);
    close_listener();
}

static void test_ready_is_what_the_policy_says(void)
{
    open_listener("127.0.0.1:0", NULL);
    world->policy.up = true;
    world->policy.records[0].state = ORIBI_RECORD_SERVING;
    ok(begins(ask(GET("/ready")), "HTTP/1.1 200 "));
    static const struct oribi__acme_certificate certificate = {.name = "example.org", .placeholder = true};
    world->acme = (struct oribi__acme_set){.count = 1, .items = {&certificate}};
    const char *ready = ask(GET("/ready"));
    ok(begins(ready, "HTTP/1.1 200 ") && strstr(ready, "\r\n\r\nready; a placeholder serves for 1 certificate\n"));
    world->policy.stop_at = 1;
    ok(begins(ask(GET("/ready")), "HTTP/1.1 503 "));
    close_listener();
}

static void test_mistakes_are_refused_and_closed(void)
{
    static char long_head[ORIBI__STATUS_HEAD_BYTES_MAX + 64];
    open_listener("127.0.0.1:0", NULL);
    ok(begins(ask("nonsense\r\n\r\n"), "HTTP/1.1 400 "));
    ok(begins(ask("GET / HTTP/2.0\r\n\r\n"), "HTTP/1.1 505 "));
    ok(begins(ask("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 400 "));
    int n = snprintf(long_head, sizeof(long_head), "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    memset(long_head + n, 'x', sizeof(long_head) - 1 - (size_t)n);
    ok(begins(ask(long_head), "HTTP/1.1 431 "));
    ok_eq(clients(), 0);
    close_listener();
}

static void test_a_head_may_come_byte_by_byte(void)
{
    static const char request[] = GET("/healthz");
    open_listener("127.0.0.1:0", NULL);
    int fd = dial();
    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        if (write(fd, request + i, 1) != 1)
            diag("cannot write");
        turn();
    }
    ok(hear(fd) > 0 && begins(answer, "HTTP/1.1 200 "));
    oribi_os_close(fd);
    close_listener();
}

static void test_other_names_of_this_machine_need_a_token(void)
{
    open_listener("127.0.0.1:0", NULL);
    ok(begins(ask("GET /metrics HTTP/1.1\r\nHost: evil.example:9394\r\n\r\n"), "HTTP/1.1 421 "));
    ok(begins(ask("GET /metrics HTTP/1.1\r\nHost: localhost:9394\r\n\r\n"), "HTTP/1.1 200 "));
    ok(begins(ask("GET /metrics HTTP/1.1\r\nHost: [::1]:9394\r\n\r\n"), "HTTP/1.1 200 "));
    close_listener();
}

static void test_the_token_is_asked_for(void)
{
    open_listener("127.0.0.1:0", "s3cret");
    ok(begins(ask(GET("/healthz")), "HTTP/1.1 401 "));
    ok(strstr(answer, "\r\nWWW-Authenticate: Bearer\r\n") != NULL);
    ok(begins(ask("GET /metrics HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer s3cre\r\n\r\n"), "HTTP/1.1 401 "));
    ok(begins(ask("GET /metrics HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer s3cret2\r\n\r\n"),
              "HTTP/1.1 401 "));
    ok(begins(ask("GET /metrics HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer s3cret\r\n\r\n"),
              "HTTP/1.1 200 "));
    ok(begins(ask(GET("/status.json?token=s3cret")), "HTTP/1.1 401 "));
    ok(begins(ask(GET("/history.json")), "HTTP/1.1 401 "));
    ok(begins(ask(GET("/none")), "HTTP/1.1 401 "));
    ok(begins(ask("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"), "HTTP/1.1 200 ")); /* the page asks its reader */
    ok(strstr(answer, "s3cret") == NULL);
    close_listener();
}

/* One more each time, so that no page may run what another one brings. */
static void test_the_page_may_run_its_own_script_alone(void)
{
    static char nonce[64];
    open_listener("127.0.0.1:0", NULL);
    for (int i = 0; i < 2; i++) {
        ok(begins(ask(GET("/")), "HTTP/1.1 200 OK\r\n"));
        ok(strstr(answer, "\r\nContent-Type: text/html; charset=utf-8\r\n") != NULL);
        const char *policy = strstr(answer, "\r\nContent-Security-Policy: default-src 'none'; script-src 'nonce-");
        const char *script = strstr(answer, "<script nonce=\"");
        if (!ok(policy && script && strstr(answer, "<style nonce=\"")))
            break;
        ok(!begins(nonce, script));
        (void)snprintf(nonce, 49, "%s", script);
        ok(strncmp(strstr(policy, "nonce-") + 6, script + strlen("<script nonce=\""), 32) == 0);
        ok(strstr(answer, "{{nonce}}") == NULL && strstr(answer, "</html>\n") != NULL);
        ok(strstr(answer, "unsafe") == NULL && strstr(answer, "innerHTML") == NULL);
    }
    ok(begins(ask("HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), "HTTP/1.1 200 OK\r\n"));
    ok(begins(ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "HTTP/1.1 421 "));
    close_listener();
}

/* A target that is half written, or was never UTF-8, and names of files are strings of JSON all the same. */
static void test_lines_of_calls_are_valid_json(void)
{
    open_listener("127.0.0.1:0", NULL);
    struct oribi_slot *slot = &world->context.board.slots[0];
    world->policy.records[0].state = ORIBI_RECORD_SERVING;
    world->policy.records[0].pid = getpid();
    slot->call_started_us = 1;
    slot->call_deadline_us = 2;
    memset(slot->line, '\\', sizeof(slot->line)); /* torn: without an end */
    memcpy(slot->line, "GET /\"<b>\xc3\xa4\xc3\x01\n\xff", 15);
    memset(slot->id, 'x', sizeof(slot->id));
    ok(strstr(ask(GET("/status.json")), "\"call\":\"GET /\\\"<b>\xc3\xa4\\u00c3\\u0001\\u000a\\u00ff\\\\") != NULL);
    ok(strstr(answer, "\"call_overdue\":true") != NULL);
    ok(strstr(answer, "\"stopped\":false") != NULL);
    ok(strcmp(answer + strlen(answer) - 2, "}\n") == 0);
    close_listener();
}

static void test_a_socket_file_is_the_owners_alone_and_goes(void)
{
    char path[64];
    struct stat entry;
    (void)snprintf(path, sizeof(path), "/tmp/oribi-status-%d", getpid());
    open_listener(path, NULL);
    ok_eq(lstat(path, &entry), 0);
    ok_eq(entry.st_mode & 0777, 0600);
    ok(begins(ask("GET /healthz HTTP/1.1\r\nHost: any.example\r\n\r\n"), "HTTP/1.1 200 "));
    close_listener();
    ok(lstat(path, &entry) < 0);
}

/* They send nothing, or a part; one that asks between them is answered at once. */
static void test_hanging_clients_keep_no_other_away(void)
{
    static int fds[FLOOD];
    open_listener("127.0.0.1:0", NULL);
    for (int i = 0; i < FLOOD; i++) {
        fds[i] = dial();
        if (i % 2)
            (void)!write(fds[i], "GET /metrics HT", 15);
        turn();
    }
    ok_eq(clients(), ORIBI__STATUS_CLIENTS_MAX);
    ok(begins(ask(GET("/healthz")), "HTTP/1.1 200 "));
    for (int i = 0; i < FLOOD; i++)
        oribi_os_close(fds[i]);
    turn();
    ok_eq(clients(), 0);
    close_listener();
}

static void expire(void)
{
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        if (world->observe.state->status.clients[i].fd >= 0)
            world_expire(world, &world->observe.state->status.clients[i].until);
}

static void test_a_silent_client_is_closed_in_time(void)
{
    open_listener("127.0.0.1:0", NULL);
    int fd = dial();
    turn();
    ok_eq(clients(), 1);
    int64_t until = oribi_timer_at(&world->observe.state->status.clients[0].until);
    ok(until > oribi_clock_ms() && until <= oribi_clock_ms() + ORIBI__STATUS_MS);
    expire();
    ok_eq(clients(), 0);
    oribi_os_close(fd);
    close_listener();
}

static void test_each_place_is_taken_before_the_oldest_goes(void)
{
    int fds[ORIBI__STATUS_CLIENTS_MAX + 1];
    char byte;
    open_listener("127.0.0.1:0", NULL);
    for (int i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++) {
        fds[i] = dial();
        turn();
        oribi_dispatcher_arm(&world->dispatcher, &world->observe.state->status.clients[i].until,
                             oribi_clock_ms() + ORIBI__STATUS_MS + i); /* however quick this is */
    }
    ok_eq(clients(), ORIBI__STATUS_CLIENTS_MAX);
    for (int i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        ok_eq(oribi_os_read(fds[i], &byte, 1), ORIBI_AGAIN);
    fds[ORIBI__STATUS_CLIENTS_MAX] = dial();
    turn();
    ok_eq(clients(), ORIBI__STATUS_CLIENTS_MAX);
    ok_eq(oribi_os_read(fds[0], &byte, 1), 0);
    for (int i = 1; i <= ORIBI__STATUS_CLIENTS_MAX; i++)
        ok_eq(oribi_os_read(fds[i], &byte, 1), ORIBI_AGAIN);
    for (int i = 0; i <= ORIBI__STATUS_CLIENTS_MAX; i++)
        oribi_os_close(fds[i]);
    turn();
    ok_eq(clients(), 0);
    close_listener();
}

/* Its request has come in the moment in which a newcomer takes its place. */
static void test_the_oldest_is_answered_before_it_goes(void)
{
    int fds[ORIBI__STATUS_CLIENTS_MAX + 1];
    open_listener("127.0.0.1:0", NULL);
    for (int i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        fds[i] = dial();
    turn();
    for (int i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        say(fds[i], GET("/healthz"));
    fds[ORIBI__STATUS_CLIENTS_MAX] = dial();
    newcomer(&world->observe, ORIBI_READ); /* before any other handler */
    for (int i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++) {
        ok(hear(fds[i]) > 0 && begins(answer, "HTTP/1.1 200 "));
        oribi_os_close(fds[i]);
    }
    oribi_os_close(fds[ORIBI__STATUS_CLIENTS_MAX]);
    close_listener();
}

/* Before it has sent anything, in its head, with the answer half sent, and after it. */
static void test_a_client_may_close_at_every_step(void)
{
    static const char request[] = GET("/metrics");
    int small = 1;
    open_listener("127.0.0.1:0", NULL);
    (void)setsockopt(world->observe.state->status.side.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    for (size_t n = 0; n < sizeof(request); n++) {
        int fd = dial_with(1);
        ok_eq(write(fd, request, n), n);
        turn();
        ok_eq(clients(), 1);
        oribi_os_close(fd);
        turn();
        ok_named(clients() == 0, "after %zu bytes", n);
    }
    int fd = dial();
    say(fd, request);
    (void)shutdown(fd, SHUT_WR); /* it has nothing more to say, and reads */
    turn();
    ok(hear(fd) > 0 && begins(answer, "HTTP/1.1 200 "));
    turn();
    ok_eq(clients(), 0);
    oribi_os_close(fd);
    close_listener();
}

/* Its answer stays in parts until its time is over; others are answered meanwhile. */
static void test_a_client_that_never_reads_is_closed_in_time(void)
{
    int small = 1;
    open_listener("127.0.0.1:0", NULL);
    (void)setsockopt(world->observe.state->status.side.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    int fd = dial_with(1);
    say(fd, GET("/metrics"));
    turn();
    ok(world->observe.state->status.clients[0].out.len > 0);
    ok(begins(ask(GET("/healthz")), "HTTP/1.1 200 "));
    ok_eq(clients(), 1);
    expire();
    ok_eq(clients(), 0);
    oribi_os_close(fd);
    close_listener();
}

/* A client that sends on and on after its request is heard, until its time is over, and its answer is whole. */
static void test_bytes_after_the_request_are_dropped(void)
{
    static char more[64 * 1024];
    open_listener("127.0.0.1:0", NULL);
    int fd = dial();
    say(fd, GET("/healthz"));
    memset(more, 'x', sizeof(more));
    turn();
    for (int i = 0; i < 16; i++) {
        if (write(fd, more, sizeof(more)) < 0)
            diag("cannot write");
        turn();
    }
    ok(hear(fd) > 0 && strstr(answer, "\r\n\r\nok\n") != NULL);
    ok_eq(clients(), 1);
    expire();
    ok_eq(clients(), 0);
    oribi_os_close(fd);
    close_listener();
}

static void test_all_who_ask_for_stacks_get_one_answer(void)
{
    int fds[3];
    open_listener("127.0.0.1:0", NULL);
    for (int i = 0; i < 3; i++) {
        fds[i] = dial();
        say(fds[i], GET("/stacks"));
    }
    oribi_os_close(fds[2]); /* in the middle */
    for (int i = 0; i < 2; i++) {
        ok(hear(fds[i]) > 0 && strstr(answer, "\r\n\r\nthere are no workers now\n") != NULL);
        oribi_os_close(fds[i]);
    }
    turn();
    ok_eq(clients(), 0);
    close_listener();
}

static void test_one_answer_a_handler_and_none_is_forgotten(void)
{
    int fds[ORIBI__STATUS_CLIENTS_MAX];
    open_listener("127.0.0.1:0", NULL);
    for (int i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++) {
        fds[i] = dial();
        say(fds[i], GET("/metrics"));
    }
    while (clients() == 0)
        ok(oribi_dispatcher_next(&world->dispatcher));
    ok_eq(clients(), 1);
    for (int i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++) {
        ok(hear(fds[i]) > 0 && begins(answer, "HTTP/1.1 200 "));
        oribi_os_close(fds[i]);
    }
    close_listener();
}

/* A listener that is ready and cannot accept would be ready for ever: it pauses. */
static void test_without_descriptors_the_listener_pauses(void)
{
    struct rlimit before;
    struct rlimit none = {0};
    open_listener("127.0.0.1:0", NULL);
    int fd = dial();
    ok_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none.rlim_max = before.rlim_max;
    ok_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    newcomer(&world->observe, ORIBI_READ);
    newcomer(&world->observe, ORIBI_READ);
    ok_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ok_eq(clients(), 0);
    ok(oribi_timer_at(&world->observe.state->status.side.retry) <= oribi_clock_ms() + ORIBI__SIDE_RETRY_MS);
    turn(); /* ends: nothing is ready */
    world_expire(world, &world->observe.state->status.side.retry);
    say(fd, GET("/healthz"));
    ok(hear(fd) > 0 && begins(answer, "HTTP/1.1 200 "));
    oribi_os_close(fd);
    close_listener();
}

/* Bytes that the socket does not take wait for the client. */
static void test_an_answer_longer_than_the_socket_takes_is_sent_in_parts(void)
{
    int small = 1;
    open_listener("127.0.0.1:0", NULL);
    (void)setsockopt(world->observe.state->status.side.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    for (uint32_t i = 0; i < SLOTS; i++) {
        world->policy.records[i].state = ORIBI_RECORD_SERVING;
        world->policy.records[i].pid = getpid();
    }
    int fd = dial_with(1);
    say(fd, GET("/status.json"));
    turn();
    ok_eq(world->observe.state->status.clients[0].watcher.watch.interest, ORIBI_WRITE);
    size_t n = hear(fd);
    ok(n > 20000 && strcmp(answer + n - 3, "}}\n") == 0);
    oribi_os_close(fd);
    close_listener();
}

static void test_an_address_in_use_is_refused_and_tried_again_by_a_successor(void)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char address[64];
    struct sockaddr_in where;
    socklen_t n = sizeof(where);
    open_listener("127.0.0.1:0", NULL);
    struct world *first = world;
    (void)getsockname(first->observe.state->status.side.fd, (struct sockaddr *)&where, &n);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(where.sin_port));
    struct world *second = world_begin(1, 2);
    struct oribi__side_listener *side = &second->observe.state->status.side;
    ok_eq(oribi_options_set(&second->options, "status", address, error), 0);
    ok_eq(oribi__status_open(&second->observe, error), ORIBI_ESYS);
    ok(strstr(error, words_of(EADDRINUSE)) != NULL);
    second->predecessor_fd = 0; /* it runs */
    ok_eq(oribi__status_open(&second->observe, error), 0);
    ok(oribi_timer_at(&side->retry) <= oribi_clock_ms() + ORIBI__SIDE_RETRY_MS);
    world_expire(second, &side->retry); /* too early: the predecessor has not been told to end */
    ok_eq(side->tries, 0);
    second->predecessor_fd = -1; /* the first server was told to end */
    world_expire(second, &side->retry);
    ok_eq(side->fd, -1);
    ok_eq(side->tries, 1);
    oribi__status_close(&first->observe, true); /* the first server leaves */
    world_expire(second, &side->retry);
    ok(side->fd >= 0);
    ok_eq(oribi_timer_at(&side->retry), INT64_MAX);
    world_end(second);
    world_end(first);
}

static void test_addresses_that_others_reach_need_a_token(void)
{
    static struct oribi_options options;
    static const struct {
        const char *address;
        bool alone; /* without a token */
        bool with;
    } cases[] = {
        {"127.0.0.1:9394", true, true}, {"127.9.9.9:1", true, true},
        {"[::1]:9394", true, true},     {"localhost:9394", true, true},
        {"/run/x.sock", true, true},    {":9394", false, true},
        {"0.0.0.0:9394", false, true},  {"192.168.1.2:80", false, true},
        {"[::]:9394", false, true},     {"a.example:1", false, false},
        {"fd://3", false, false},       {"127.0.0.1:1?proxy=on", false, false},
        {"nonsense:x", false, false},   {"[::ffff:10.0.0.1]:1", false, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int token = 0; token < 2; token++) {
            char error[ORIBI_ERROR_TEXT_CAP] = "";
            oribi_options_init(&options);
            ok_eq(oribi_options_set(&options, "status", cases[i].address, error), 0);
            if (token)
                ok_eq(oribi_options_set(&options, "status_token", "t", error), 0);
            bool good = oribi_options_finish(&options, error) == 0;
            ok_named(good == (token ? cases[i].with : cases[i].alone) && good == !error[0], "%s %s a token: %s",
                     cases[i].address, token ? "with" : "without", error);
            oribi_options_deinit(&options);
        }
    }
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    oribi_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), ORIBI_LOG_ERROR);
    test_paths_and_methods();
    test_the_history_is_kept_while_the_listener_is_open();
    test_ready_is_what_the_policy_says();
    test_mistakes_are_refused_and_closed();
    test_a_head_may_come_byte_by_byte();
    test_other_names_of_this_machine_need_a_token();
    test_the_token_is_asked_for();
    test_the_page_may_run_its_own_script_alone();
    test_lines_of_calls_are_valid_json();
    test_a_socket_file_is_the_owners_alone_and_goes();
    test_hanging_clients_keep_no_other_away();
    test_a_silent_client_is_closed_in_time();
    test_each_place_is_taken_before_the_oldest_goes();
    test_the_oldest_is_answered_before_it_goes();
    test_a_client_may_close_at_every_step();
    test_a_client_that_never_reads_is_closed_in_time();
    test_bytes_after_the_request_are_dropped();
    test_all_who_ask_for_stacks_get_one_answer();
    test_one_answer_a_handler_and_none_is_forgotten();
    test_without_descriptors_the_listener_pauses();
    test_an_answer_longer_than_the_socket_takes_is_sent_in_parts();
    test_an_address_in_use_is_refused_and_tried_again_by_a_successor();
    test_addresses_that_others_reach_need_a_token();
    return done_testing();
}
