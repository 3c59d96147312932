/* Sentinels of a script: addresses, whom to ask, and what each answer means. */
#include "src/sentinel.c"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct oribi_redis_sentinels list;

static void add_text(const char *text)
{
    if (oribi_redis_sentinels_add(&list, oribi_slice(text, strlen(text))))
        exit(2);
}

/* The addresses in their order, between blanks. */
static const char *listed(const struct oribi_redis_sentinels *all)
{
    static char text[4096];
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < all->count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s:%d", i ? " " : "", all->at[i].host, all->at[i].path,
                              all->at[i].port);
    return text;
}

static void test_addresses(void)
{
    static const struct {
        const char *address, *means; /* NULL: refused */
    } CASES[] = {
        {"localhost", "localhost:26379"},
        {"localhost:1", "localhost:1"},
        {"10.0.0.1:65535", "10.0.0.1:65535"},
        {"[::1]", "::1:26379"},
        {"[::1]:7", "::1:7"},
        {"/run/sentinel", "/run/sentinel:0"},
        {"localhost:65536", NULL},
        {"localhost:0", NULL},
        {"localhost:", NULL},
        {"localhost:1x", NULL},
        {":1", NULL},
        {"", NULL},
        {"[::1", NULL},
        {"[]:1", NULL},
        {"[::1]x:1", NULL},
        {"::1", NULL},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        list.count = 0;
        const char *address = CASES[i].address;
        const char *wrong = oribi_redis_sentinels_add(&list, oribi_slice(address, strlen(address)));
        ok_named((wrong == NULL) == (CASES[i].means != NULL), "%s: %s", address, wrong ? wrong : "taken");
        is_str(listed(&list), CASES[i].means ? CASES[i].means : "");
    }
    char longest[ORIBI_REDIS_HOST_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    ok(!oribi_redis_sentinels_add(&list, oribi_slice(longest, ORIBI_REDIS_HOST_MAX)));
    ok(oribi_redis_sentinels_add(&list, oribi_slice(longest, ORIBI_REDIS_HOST_MAX + 1)) != NULL);
    longest[0] = '/';
    ok(!oribi_redis_sentinels_add(&list, oribi_slice(longest, ORIBI_REDIS_PATH_MAX)));
    ok(oribi_redis_sentinels_add(&list, oribi_slice(longest, ORIBI_REDIS_PATH_MAX + 1)) != NULL);
    ok(oribi_redis_sentinels_add(&list, oribi_slice("a\0b", 3)) != NULL);
}

static void test_sentinels_have_a_maximum(void)
{
    char text[32];
    list.count = 0;
    for (int i = 1; i <= ORIBI_REDIS_SENTINELS_MAX; i++) {
        snprintf(text, sizeof(text), "a:%d", i);
        add_text(text);
        add_text(text); /* once */
    }
    ok_eq(list.count, ORIBI_REDIS_SENTINELS_MAX);
    ok(oribi_redis_sentinels_add(&list, ORIBI_SLICE("b:1")) != NULL);
}

#define BULK(n, text) "$" #n "\r\n" text "\r\n"
#define MASTER        "*2\r\n" BULK(5, "a.b.c") BULK(4, "6379")
#define OTHER         "*4\r\n" BULK(2, "ip") BULK(3, "::1") BULK(4, "port") BULK(1, "9")

static const char *found_text(int code, const struct oribi_redis_place *master)
{
    static char text[ORIBI_REDIS_HOST_MAX + 16];
    snprintf(text, sizeof(text), "%s:%d", master->host, master->port);
    return code == 0 ? text : "";
}

/* Asks one Sentinel that answers so and then ends. */
static int ask_one(struct oribi_redis_asking *asking, const char *answer, const char *password,
                   struct oribi_redis_place *master, char *sent, size_t cap)
{
    int pair[2];
    struct oribi_redis_conn conn;
    struct oribi_redis_place place;
    oribi_redis_conn_init(&conn, 0);
    conn.read_ms = conn.write_ms = 20000;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 || !oribi_redis_asking_next(asking, &place))
        exit(2);
    oribi_redis_conn_attach(&conn, pair[0]);
    conn.begun_ms = oribi_clock_ms() + 60000; /* the answer is there already */
    if (send(pair[1], answer, strlen(answer), MSG_NOSIGNAL) != (ssize_t)strlen(answer))
        exit(2);
    shutdown(pair[1], SHUT_WR);
    int code =
        oribi_redis_asking_ask(asking, &conn, 0, ORIBI_SLICE(""), oribi_slice(password, strlen(password)), master);
    ssize_t n = recv(pair[1], sent, cap - 1, MSG_DONTWAIT);
    sent[n > 0 ? n : 0] = '\0';
    oribi_redis_conn_deinit(&conn);
    close(pair[1]);
    return code;
}

static void test_what_answers_mean(void)
{
    static const struct {
        const char *answer, *found, *says, *known;
    } CASES[] = {
        {MASTER "*0\r\n", "a.b.c:6379", NULL, "b:2 a:1"},
        {MASTER "*-1\r\n", "a.b.c:6379", NULL, "b:2 a:1"},
        {MASTER "-ERR no\r\n", "a.b.c:6379", NULL, "b:2 a:1"},
        {MASTER "*1\r\n" OTHER, "a.b.c:6379", NULL, "b:2 a:1 ::1:9"},
        {MASTER "*2\r\n" OTHER OTHER, "a.b.c:6379", NULL, "b:2 a:1 ::1:9"},
        {MASTER "*1\r\n%2\r\n+ip\r\n+a\r\n+port\r\n+1\r\n", "a.b.c:6379", NULL, "b:2 a:1"},
        {MASTER "*1\r\n*5\r\n*1\r\n+ip\r\n+x\r\n+ip\r\n*2\r\n+y\r\n*0\r\n+port\r\n", "a.b.c:6379", NULL, "b:2 a:1"},
        {MASTER "*2\r\n:1\r\n" OTHER, "a.b.c:6379", NULL, "b:2 a:1 ::1:9"},
        {MASTER "*1\r\n*4\r\n+ip\r\n+c\r\n+port\r\n+70000\r\n", "a.b.c:6379", NULL, "b:2 a:1"},
        {"*-1\r\n*0\r\n", "", "b:2: knows no master of that name", "a:1 b:2"},
        {"$-1\r\n-ERR No such master with that name\r\n", "", "b:2: knows no master of that name", "a:1 b:2"},
        {"-NOAUTH Authentication required.\r\n-NOAUTH\r\n", "", "b:2: NOAUTH Authentication required.", "a:1 b:2"},
        {"*1\r\n+a\r\n*0\r\n", "", "b:2: knows no master of that name", "a:1 b:2"},
        {"*3\r\n+a\r\n+1\r\n+2\r\n*0\r\n", "", "b:2: knows no master of that name", "a:1 b:2"},
        {"*2\r\n+a\r\n+0\r\n*0\r\n", "", "b:2: knows no master of that name", "a:1 b:2"},
        {"*2\r\n+a\r\n*1\r\n+1\r\n*0\r\n", "", "b:2: knows no master of that name", "a:1 b:2"},
        {"+OK\r\n+OK\r\n", "", "b:2: knows no master of that name", "a:1 b:2"},
        {MASTER, "", "b:2: the server closed the connection", "a:1 b:2"},
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "", "b:2: ", "a:1 b:2"},
        {">1\r\n+a\r\n" MASTER "*0\r\n", "", "b:2: a push came that nobody asked for", "a:1 b:2"},
        {"", "", "b:2: the server closed the connection", "a:1 b:2"},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct oribi_redis_asking asking;
        struct oribi_redis_place place;
        struct oribi_redis_place master = {.db = 3, .host = "before"};
        char sent[1024];
        list.count = 0;
        add_text("a:1");
        add_text("b:2");
        oribi_redis_asking_begin(&asking, &list, ORIBI_SLICE("main"));
        ok(oribi_redis_asking_next(&asking, &place) && strcmp(place.host, "a") == 0 && place.port == 1);
        int code = ask_one(&asking, CASES[i].answer, "", &master, sent, sizeof(sent));
        is_str(found_text(code, &master), CASES[i].found);
        is_str(listed(&list), CASES[i].known);
        ok_named(!CASES[i].says || strstr(asking.why, CASES[i].says), "%s", asking.why);
        ok(code == 0 || strcmp(master.host, "before") == 0);
        ok_eq(master.db, 3);
        ok(!oribi_redis_asking_next(&asking, &place));
    }
}

static void test_what_is_sent(void)
{
    struct oribi_redis_asking asking;
    struct oribi_redis_place master;
    char sent[1024];
    list.count = 0;
    add_text("[::1]:5");
    oribi_redis_asking_begin(&asking, &list, ORIBI_SLICE("main"));
    ok_eq(ask_one(&asking, "+OK\r\n" MASTER "*0\r\n", "secret", &master, sent, sizeof(sent)), 0);
    is_str(sent, "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"
                 "*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$4\r\nmain\r\n"
                 "*3\r\n$8\r\nSENTINEL\r\n$9\r\nSENTINELS\r\n$4\r\nmain\r\n");
    oribi_redis_asking_begin(&asking, &list, ORIBI_SLICE("main"));
    ok(ask_one(&asking, "-WRONGPASS no\r\n" MASTER "*0\r\n", "secret", &master, sent, sizeof(sent)) < 0);
    is_str(asking.why, "no Sentinel knows the master of main: [::1]:5: WRONGPASS no");
}

static void test_one_that_cannot_be_reached(void)
{
    struct oribi_redis_asking asking;
    struct oribi_redis_place place;
    struct oribi_redis_conn conn;
    list.count = 0;
    add_text("a:1");
    add_text("/b");
    oribi_redis_conn_init(&conn, 0);
    oribi_redis_asking_begin(&asking, &list, ORIBI_SLICE("main"));
    while (oribi_redis_asking_next(&asking, &place)) {
        oribi_redis_conn_fail(&conn, "refused");
        ok_eq(oribi_redis_asking_ask(&asking, &conn, ORIBI_ESYS, ORIBI_SLICE(""), ORIBI_SLICE(""), &place), ORIBI_ESYS);
    }
    is_str(asking.why, "no Sentinel knows the master of main: a:1: refused; /b: refused");
    oribi_redis_conn_deinit(&conn);
}

int main(void)
{
    int64_t before = oribi_mem_blocks();
    test_addresses();
    test_sentinels_have_a_maximum();
    test_what_answers_mean();
    test_what_is_sent();
    test_one_that_cannot_be_reached();
    ok_eq(oribi_mem_blocks(), before);
    return done_testing();
}
