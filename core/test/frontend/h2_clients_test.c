/* Clients that others wrote (curl, nghttp, h2load), through sockets, against bench/h2_server: with sessions that sleep
 * between requests, and with those that do not. */
#include "frontend/h2.h"
#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char server[512];
static pid_t server_pid;
static int port;

static bool has(const char *program)
{
    char command[100];
    snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", program);
    return system(command) == 0;
}

static bool start_server(const char *manner)
{
    int ends[2];
    char line[32] = "";
    if (pipe(ends) != 0)
        return false;
    server_pid = fork();
    if (server_pid == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        execl(server, server, "0", manner, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    bool fine = from && fgets(line, sizeof(line), from);
    if (from)
        fclose(from);
    port = (int)strtol(line, NULL, 10);
    return fine && port > 0;
}

/* Its exit code: sanitizers have theirs. */
static int end_server(void)
{
    int status = -1;
    kill(server_pid, SIGTERM);
    waitpid(server_pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Output of a command, in which %d is the port. */
static const char *told_by(const char *format)
{
    static char text[8192];
    char command[1000];
    int at = snprintf(command, sizeof(command), "timeout 60 ");
    snprintf(command + at, sizeof(command) - (size_t)at, format, port);
    FILE *from = popen(command, "r");
    size_t n = from ? fread(text, 1, sizeof(text) - 1, from) : 0;
    text[n] = 0;
    if (from)
        (void)pclose(from);
    return text;
}

#define CURL "curl -s --http2-prior-knowledge "
#define URL  "http://127.0.0.1:%d"

static void test_curl(void)
{
    if (!has("curl")) {
        tap_skip(6, "no curl here");
        return;
    }
    is_str(told_by(CURL URL "/"), "xxxxxxxxxxxxx");
    is_str(told_by(CURL "-o /dev/null -w '%%{http_code} %%{http_version} %%{size_download}' " URL "/3000000"),
           "200 2 3000000");
    is_str(told_by("sh -c 'head -c 3000000 /dev/zero | " CURL "-H Expect: --data-binary @- " URL "/'"), "3000000");
    is_str(told_by(CURL "-o /dev/null -I -w '%%{http_code} %%{size_download}' " URL "/"), "200 0");
    is_str(told_by(CURL "-o /dev/null -w %%{http_code} $(seq -f -Hx%%g:1 120) " URL "/"), "431");
    ok(strstr(told_by(CURL "-i " URL "/hints"), "HTTP/2 103") != NULL);
}

static void test_nghttp(void)
{
    if (!has("nghttp")) {
        tap_skip(1, "no nghttp here");
        return;
    }
    const char *text = told_by("nghttp -ns -m 30 " URL "/20000 | grep -c ' 200 '");
    is_str(text, "30\n");
}

static void test_h2load(void)
{
    if (!has("h2load")) {
        tap_skip(3, "no h2load here");
        return;
    }
    ok(strstr(told_by("h2load -n 4000 -c 8 -m 1 " URL "/"), " 4000 succeeded, 0 failed") != NULL);
    ok(strstr(told_by("h2load -n 4000 -c 8 -m 32 " URL "/"), " 4000 succeeded, 0 failed") != NULL);
    ok(strstr(told_by("h2load -n 400 -c 4 -m 20 -w 14 -W 16 " URL "/100000"), " 400 succeeded, 0 failed") != NULL);
}

int main(int argc, char **argv)
{
    static const char *const manners[] = {"", "sleep"};
    char *slash = strrchr(argv[0], '/');
    snprintf(server, sizeof(server), "%.*s/../../bench/h2_server", slash ? (int)(slash - argv[0]) : 1,
             slash ? argv[0] : ".");
    for (size_t i = 0; i < 2; i++) {
        if (!ok(start_server(manners[i])))
            break;
        test_curl();
        test_nghttp();
        test_h2load();
        ok_eq(end_server(), 0);
    }
    return done_testing();
}
