/* A real redis-server, on a unix socket of the test's own: every kind of reply in both protocols. */
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/redis/conn.h"
#include "tap.h"
#include "told.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct oribi_redis_conn conn;
static struct oribi_redis_place place;
static char folder[] = "/tmp/oribi-redis-XXXXXX";
static pid_t server;

static bool start_server(void)
{
    if (access("/usr/bin/redis-server", X_OK) != 0)
        return false;
    if (!mkdtemp(folder))
        exit(2);
    snprintf(place.path, sizeof(place.path), "%s/socket", folder);
    fflush(stdout);
    pid_t test = getpid();
    server = fork();
    if (server == 0) {
        if (oribi_os_signal_on_parent_death(SIGKILL, test) < 0 || !freopen("/dev/null", "w", stdout))
            _exit(2);
        execl("/usr/bin/redis-server", "redis-server", "--port", "0", "--unixsocket", place.path, "--save", "", "--dir",
              folder, "--enable-debug-command", "yes", (char *)NULL);
        _exit(2);
    }
    for (int i = 0; i < 2000; i++) {
        if (oribi_redis_conn_connect(&conn, &place) == 0)
            return true;
        poll(NULL, 0, 10);
    }
    printf("Bail out! redis-server does not start\n");
    exit(1);
}

static void end_server(void)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    unlink(place.path);
    rmdir(folder);
}

/* Puts a command of words between spaces. */
static void put(const char *text)
{
    struct oribi_slice words[16];
    uint64_t count = 0;
    while (*text && count < 16) {
        size_t n = strcspn(text, " ");
        words[count++] = oribi_slice(text, n);
        text += n + (text[n] == ' ');
    }
    oribi_redis_command(&conn.out, words, count);
}

static void read_replies(struct told *told)
{
    struct oribi_redis_event event;
    int found = 0;
    while (conn.owed > 0 && (found = oribi_redis_conn_next(&conn, &event)) == 0)
        tell(told, &event);
    ok_eq(found, 0);
    oribi_redis_conn_end(&conn);
}

static void check(const char *command, const char *want)
{
    struct told told = {.n = 0};
    int found = oribi_redis_conn_begin(&conn);
    put(command);
    if (found == 0)
        found = oribi_redis_conn_send(&conn, 0, 1);
    if (found == 0)
        read_replies(&told);
    if (!ok_named(found == 0 && strcmp(told.text, want) == 0, "%s", command))
        diag("%d: %s\nwant %s", found, told.text, want);
}

static void test_every_kind(bool newer)
{
    check("FLUSHALL", "status OK.");
    check("SET s hello", "status OK.");
    check("GET s", "string hello.");
    check("GET none", "null.");
    check("INCR n", "int 1.");
    check("NOSUCH x", "error ERR unkn...60.");
    check("HSET h f v", "int 1.");
    check("HGETALL h", newer ? "map 1, string f, string v." : "array 2, string f, string v.");
    check("RPUSH l a b", "int 2.");
    check("LRANGE l 0 -1", "array 2, string a, string b.");
    check("LRANGE none 0 -1", "array 0.");
    check("BLPOP none 0.01", "null.");
    check("DEBUG PROTOCOL string", "string Hello World.");
    check("DEBUG PROTOCOL integer", "int 12345.");
    check("DEBUG PROTOCOL double", newer ? "double 3.141." : "string 3.141.");
    check("DEBUG PROTOCOL null", "null.");
    check("DEBUG PROTOCOL array", "array 3, int 0, int 1, int 2.");
    check("DEBUG PROTOCOL set", newer ? "set 3, int 0, int 1, int 2." : "array 3, int 0, int 1, int 2.");
    check("DEBUG PROTOCOL map", newer ? "map 3, int 0, bool 0, int 1, bool 1, int 2, bool 0."
                                      : "array 6, int 0, int 0, int 1, int 1, int 2, int 0.");
    check("DEBUG PROTOCOL verbatim", newer ? "txt:This is a verbatim\nstring." : "string This is a verbatim\nstring.");
    check("DEBUG PROTOCOL true", newer ? "bool 1." : "int 1.");
    check("DEBUG PROTOCOL false", newer ? "bool 0." : "int 0.");
    check("DEBUG PROTOCOL bignum",
          newer ? "big 1234567999999999999999999999999999999." : "string 1234567999999999999999999999999999999.");
    if (newer)
        check("DEBUG PROTOCOL attrib", "string Some real reply following the attribute.");
    check("PING", "status PONG.");
}

static void test_pushes_between_replies(void)
{
    struct told told = {.n = 0};
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    put("CLIENT TRACKING on");
    put("GET s");
    put("SET s other");
    put("GET s");
    put("DEBUG PROTOCOL push");
    put("GET s");
    put("CLIENT TRACKING off");
    ok_eq(oribi_redis_conn_send(&conn, 0, 7), 0);
    read_replies(&told);
    diag("%s", told.text);
    ok(strstr(told.text, "status OK., string hello., ") == told.text);
    ok(strstr(told.text, "push 2, string invalidate, array 1, string s.") != NULL);
    ok(strstr(told.text, "push 2, string server-cpu-usage, int 42.") != NULL);
    size_t others = 0;
    for (const char *at = told.text; (at = strstr(at, "string other.")) != NULL; at++)
        others++;
    ok_eq(others, 2);
}

static void test_a_mebibyte(void)
{
    enum { N = 1 << 20 };
    char *sent = oribi_mem_alloc(1, N);
    char *got = oribi_mem_alloc(1, N);
    for (int i = 0; i < N; i++)
        sent[i] = (char)(i * 7 + i / 251);
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    ok_eq(oribi_redis_begin(&conn.out, 3), 0);
    ok_eq(oribi_redis_argument(&conn.out, ORIBI_SLICE("SET")), 0);
    ok_eq(oribi_redis_argument(&conn.out, ORIBI_SLICE("large")), 0);
    ok_eq(oribi_redis_argument_head(&conn.out, N), 0);
    static char behind[] = "\r\n*2\r\n$3\r\nGET\r\n$5\r\nlarge\r\n";
    struct iovec pieces[] = {{sent, N}, {behind, sizeof(behind) - 1}};
    ok_eq(oribi_redis_conn_send_pieces(&conn, pieces, 2, 0, 2), 0);
    struct oribi_redis_event event;
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    is_slice(event.text, "OK");
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    ok_eq(event.kind, ORIBI_REDIS_LONG);
    ok_eq(event.count, N);
    ok_eq(oribi_redis_conn_body(&conn, got, N), 0);
    ok(memcmp(sent, got, N) == 0);
    oribi_redis_conn_end(&conn);
    oribi_mem_free(sent);
    oribi_mem_free(got);
}

static void test_a_killed_connection_comes_back(void)
{
    check("CLIENT NO-EVICT off", "status OK.");
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    put("CLIENT KILL TYPE normal SKIPME no");
    ok_eq(oribi_redis_conn_send(&conn, 0, 1), 0);
    struct oribi_redis_event event;
    ok_eq(oribi_redis_conn_next(&conn, &event), 0);
    oribi_redis_conn_end(&conn);
    conn.begun_ms = 0;
    int found = 0;
    for (int i = 0; i < 1000 && (found = oribi_redis_conn_begin(&conn)) == 0; i++) {
        conn.begun_ms = 0; /* looks again */
        poll(NULL, 0, 1);
    }
    ok_eq(found, ORIBI_ECLOSED);
    ok_eq(oribi_redis_conn_connect(&conn, &place), 0);
    check("GET s", "string other.");
}

int main(void)
{
    int64_t before = oribi_mem_blocks();
    oribi_redis_place_init(&place);
    oribi_redis_conn_init(&conn, 0);
    conn.connect_ms = conn.read_ms = conn.write_ms = 20000;
    if (!start_server()) {
        printf("1..0 # SKIP redis-server is not installed\n");
        return 0;
    }
    test_every_kind(false);
    check("HELLO 4", "error NOPROTO unsupported protocol version.");
    struct told told = {.n = 0};
    ok_eq(oribi_redis_conn_begin(&conn), 0);
    put("HELLO 3");
    ok_eq(oribi_redis_conn_send(&conn, 0, 1), 0);
    read_replies(&told);
    ok(strncmp(told.text, "map 7, string server, string redis, ", 36) == 0);
    test_every_kind(true);
    check("SET s hello", "status OK.");
    test_pushes_between_replies();
    test_a_mebibyte();
    test_a_killed_connection_comes_back();
    oribi_redis_conn_deinit(&conn);
    end_server();
    ok_eq(oribi_mem_blocks(), before);
    return done_testing();
}
