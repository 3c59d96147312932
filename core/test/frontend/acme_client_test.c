/* Words of clients that fail, and challenges. Real clients: e2e/acme_test.rb. */
#include <poll.h>

static int poll_late(struct pollfd *fds, nfds_t count, int ms);
#define poll poll_late
#include "frontend/acme_client.c"
#undef poll

#include "tap.h"

static bool client_is_first; /* the next wait ends behind the client's end */

static int poll_late(struct pollfd *fds, nfds_t count, int ms)
{
    siginfo_t info;
    if (client_is_first && ms > 0) {
        client_is_first = false;
        (void)waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
    }
    return poll(fds, count, ms);
}

static char reason[ORIBI_ACME_REASON_MAX + 1];

static const char *words_of(const char *output)
{
    memset(reason, '#', sizeof(reason));
    oribi__acme_client_words(oribi_slice(output, strlen(output)), reason);
    return reason;
}

static void test_the_authority_is_quoted(void)
{
    is_str(words_of("uacme: challenge https://a/b failed with status invalid\n"
                    "uacme: the server reported the following error:\n{\n"
                    "    \"type\": \"urn:ietf:params:acme:error:unauthorized\",\n"
                    "    \"detail\": \"Get \\\"http://a/x\\\" returned 404\",\n    \"status\": 403\n}\n"
                    "uacme: failed to authorize order at https://a/c\n"),
           "unauthorized: Get \"http://a/x\" returned 404; do all names lead to this server, at port 80?");
    is_str(words_of("{\"type\":\"urn:ietf:params:acme:error:rateLimited\",\"detail\":\"too many\"}"),
           "rateLimited: too many; the authority limits orders: wait");
    is_str(words_of("{\"type\":\"about:blank\",\"detail\":\"what\"}"), "what");
    is_str(words_of("{\"detail\":\"first\"} {\"detail\":\"second\"}"), "second");
}

static void test_else_the_line_that_tells_most(void)
{
    is_str(words_of(
               "uacme: curl_get: GET https://a/ failed: Couldn't connect to server\n"
               "uacme: curl_get: waiting 5 seconds before retrying\nuacme: failed to fetch directory at https://a/\n"),
           "curl_get: GET https://a/ failed: Couldn't connect to server; can this machine reach the host of "
           "acme_directory?");
    is_str(words_of("uacme: curl_get: GET https://a/ failed: SSL peer certificate or SSH remote key was not OK\n"
                    "uacme: failed to fetch directory at https://a/\n"),
           "curl_get: GET https://a/ failed: SSL peer certificate or SSH remote key was not OK; does this machine "
           "trust the host of acme_directory (update-ca-certificates)?");
    is_str(words_of("uacme: one\n\nuacme: two\n\n"), "two");
    is_str(words_of(""), "the ACME client has failed without a word");
    is_str(words_of("\n\n"), "the ACME client has failed without a word");
    is_str(words_of("\x1b[31m\xff x"), "?[31m? x");
    is_str(words_of("{\"detail\":\"open"), "{\"detail\":\"open");
    is_str(words_of("\"detail\""), "\"detail\"");
}

static void test_long_words_are_cut(void)
{
    static char output[100000];
    memset(output, 'x', sizeof(output) - 1);
    ok(strlen(words_of(output)) <= ORIBI_ACME_REASON_MAX);
    memcpy(output, "{\"detail\":\"", 11);
    memcpy(output + sizeof(output) - 61, "\",\"type\":\"urn:ietf:params:acme:error:rejectedIdentifier\"}", 57);
    ok(strlen(words_of(output)) <= ORIBI_ACME_REASON_MAX);
    ok_named(strstr(reason, "the authority issues nothing for that name") != NULL, "%s", reason + 350);
}

static void test_what_is_a_challenge(void)
{
    char token[ORIBI_ACME_TOKEN_MAX + 2];
    char authorization[ORIBI_ACME_AUTHORIZATION_MAX + 2];
    ok(oribi_acme_is_challenge("aB-_9", "aB-_9.thumb"));
    ok(!oribi_acme_is_challenge("", ".thumb"));
    ok(!oribi_acme_is_challenge("a/b", "a/b.thumb"));
    ok(!oribi_acme_is_challenge("a", "b.thumb"));
    ok(!oribi_acme_is_challenge("a", "a."));
    ok(!oribi_acme_is_challenge("a", "a.th umb"));
    ok(!oribi_acme_is_challenge("a", "a"));
    ok(!oribi_acme_is_challenge("a", ""));
    memset(token, 'a', sizeof(token));
    token[ORIBI_ACME_TOKEN_MAX] = '\0';
    (void)snprintf(authorization, sizeof(authorization), "%s.x", token);
    ok(oribi_acme_is_challenge(token, authorization));
    token[ORIBI_ACME_TOKEN_MAX] = 'a';
    token[ORIBI_ACME_TOKEN_MAX + 1] = '\0';
    (void)snprintf(authorization, sizeof(authorization), "%s.x", token);
    ok(!oribi_acme_is_challenge(token, authorization));
    memset(authorization, 'a', sizeof(authorization));
    authorization[1] = '.';
    authorization[ORIBI_ACME_AUTHORIZATION_MAX] = '\0';
    ok(oribi_acme_is_challenge("a", authorization));
    authorization[ORIBI_ACME_AUTHORIZATION_MAX] = 'a';
    authorization[ORIBI_ACME_AUTHORIZATION_MAX + 1] = '\0';
    ok(!oribi_acme_is_challenge("a", authorization));
}

/* The client, a shell script, makes an account only where no key is left. */
static void test_an_empty_key_of_a_full_disk_is_removed(void)
{
    struct oribi__acme_store store = {.lock_fd = -1};
    struct oribi__acme_client client = {
        .store = &store, .command = "false", .directory = "https://localhost:1/dir", .user = "", .supervisor_fd = -1};
    char folder[] = "/tmp/acme_client_test.XXXXXX";
    char private[PATH_MAX];
    char key[PATH_MAX + 16];
    ok(mkdtemp(folder) != NULL);
    (void)snprintf(client.account, sizeof(client.account), "%s", folder);
    (void)snprintf(private, sizeof(private), "%s/private", folder);
    (void)snprintf(key, sizeof(key), "%s/key.pem", private);
    ok(mkdir(private, 0700) == 0);
    FILE *file = fopen(key, "w");
    ok(!has_key(&client, key));
    ok(access(key, F_OK) < 0);
    ok(!has_key(&client, key));
    (void)fclose(file);
    file = fopen(key, "w");
    (void)fputs("a key", file);
    (void)fclose(file);
    ok(has_key(&client, key));
    ok(oribi__acme_client_account(&client, "", false, reason) == 0);
    ok(access(key, F_OK) == 0);
    (void)unlink(key);
    (void)rmdir(private);
    (void)rmdir(folder);
}

static void test_what_a_client_gets_of_the_environment(void)
{
    static const char *const all[] = {"PATH=/bin", "https_proxy=x",  "NO_PROXY=x",
                                      "LC_ALL=C",  "UACME_CAINFO=x", "TZ=UTC"};
    static const char *const none[] = {"DATABASE_URL=x",   "SECRET_KEY_BASE=x", "PATHS=x", "PAT=x", "XPATH=x",
                                       "ORIBI_FRONTEND=x", "LD_LC_=x",          "=x",      ""};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        ok_named(is_for_client(all[i]), "%s", all[i]);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ok_named(!is_for_client(none[i]), "%s", none[i]);
}

/* --- hooks --- */

static char hook_folder[] = "/tmp/acme_hook_test.XXXXXX";

/* Opens DIR/name, a FIFO of the client's script: one side waits for the other one so. */
static void meet(const char *name, int flags)
{
    char path[PATH_MAX];
    char byte;
    (void)snprintf(path, sizeof(path), "%s/%s", hook_folder, name);
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0 || (flags == O_RDONLY && read(fd, &byte, 1) < 0))
        _exit(1);
    oribi_os_close(fd);
}

/* A supervisor that accepts the first challenge once its hook was killed, and refuses the second one. */
static void play_supervisor(int fd)
{
    char message[ORIBI_ACME_MESSAGE_MAX];
    (void)alarm(1000);
    if (recv(fd, message, sizeof(message), 0) <= 0)
        _exit(1);
    meet("asked", O_WRONLY);
    meet("killed", O_RDONLY);
    (void)send(fd, "y", 1, 0);
    if (recv(fd, message, sizeof(message), 0) <= 0)
        _exit(2);
    (void)send(fd, "n", 1, 0);
    _exit(0);
}

/* The client's hook is this program (main). */
static const char hook_script[] =
    "hook() { while [ $# -gt 3 ]; do shift; done; \"$1\" begin http-01 a.test $token $token.x; }\n"
    "dir=$1; shift; token=one; hook \"$@\" & pid=$!\n"
    "read x <$dir/asked; kill -9 $pid; wait $pid; : >$dir/killed\n"
    "token=two; hook \"$@\"; echo \"two: $?\"; exit 2\n";

static void test_the_answer_to_a_killed_hook_is_no_other_hook_s(void)
{
    struct oribi__acme_store store = {.lock_fd = -1};
    struct oribi__acme_client client = {.store = &store,
                                        .directory = "https://localhost:1/dir",
                                        .user = "",
                                        .account = "none",
                                        .until_ms = oribi_clock_ms() + 1000 * 1000};
    static const char *const names[] = {"asked", "killed", "script"};
    char path[PATH_MAX];
    char command[PATH_MAX * 2];
    int fds[2];
    int status;
    ok(mkdtemp(hook_folder) != NULL);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", hook_folder, names[i]);
        ok(mkfifo(path, 0600) == 0);
    }
    (void)snprintf(path, sizeof(path), "%s/script", hook_folder);
    FILE *file = fopen(path, "we");
    ok(file && fputs(hook_script, file) >= 0 && fclose(file) == 0);
    (void)snprintf(command, sizeof(command), "sh %s %s", path, hook_folder);
    client.command = command;
    ok_eq(oribi_os_socket_pair(oribi_os_record_type(false), false, fds), 0);
    pid_t pid = fork();
    if (pid == 0)
        play_supervisor(fds[1]);
    client.supervisor_fd = fds[0];
    ok(oribi__acme_client_issue(&client, "none", reason) < 0);
    is_str(reason, "two: 1");
    oribi_os_close(fds[0]);
    oribi_os_close(fds[1]);
    ok(waitpid(pid, &status, 0) == pid && status == 0);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", hook_folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(hook_folder);
}

/* The last words of its hooks are read though it has ended in the same moment. */
static void test_challenges_end_with_a_client_that_ends_at_once(void)
{
    static const char script[] =
        "while [ $# -gt 3 ]; do shift; done\n"
        "for token in one two; do \"$1\" done http-01 a.test $token $token.x || exit 1; done\n";
    struct oribi__acme_store store = {.lock_fd = -1};
    struct oribi__acme_client client = {.store = &store,
                                        .directory = "https://localhost:1/dir",
                                        .user = "",
                                        .account = "none",
                                        .until_ms = oribi_clock_ms() + 1000 * 1000};
    char path[] = "/tmp/acme_client_test.XXXXXX";
    char command[PATH_MAX];
    char message[ORIBI_ACME_MESSAGE_MAX + 1] = "";
    int fds[2];
    int fd = mkstemp(path);
    ok(fd >= 0 && write(fd, script, strlen(script)) == (ssize_t)strlen(script));
    oribi_os_close(fd);
    (void)snprintf(command, sizeof(command), "sh %s", path);
    client.command = command;
    ok_eq(oribi_os_socket_pair(oribi_os_record_type(false), false, fds), 0);
    client.supervisor_fd = fds[0];
    client_is_first = true;
    ok_eq(oribi__acme_client_issue(&client, "none", reason), 0);
    ssize_t n = recv(fds[1], message, sizeof(message) - 1, MSG_DONTWAIT);
    ok(n > 0 && message[0] == ORIBI_ACME_SAYS_END && strcmp(message + 1, "one") == 0);
    memset(message, 0, sizeof(message));
    n = recv(fds[1], message, sizeof(message) - 1, MSG_DONTWAIT);
    ok(n > 0 && message[0] == ORIBI_ACME_SAYS_END && strcmp(message + 1, "two") == 0);
    oribi_os_close(fds[0]);
    oribi_os_close(fds[1]);
    (void)unlink(path);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return oribi_frontend_acme_hook(argc, argv);
    test_the_authority_is_quoted();
    test_else_the_line_that_tells_most();
    test_long_words_are_cut();
    test_what_is_a_challenge();
    test_an_empty_key_of_a_full_disk_is_removed();
    test_what_a_client_gets_of_the_environment();
    test_the_answer_to_a_killed_hook_is_no_other_hook_s();
    test_challenges_end_with_a_client_that_ends_at_once();
    return done_testing();
}
