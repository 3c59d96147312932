/* Whole orders: this program plays the supervisor, the client and the authority; the order and the client's hook are
 * the real ones. Real clients: e2e/acme_test.rb. */
#include "frontend/acme_order.c"

#include "tap.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define TOKEN "tokentokentokentoken12"

enum { PATH_CAP = 2 * PATH_MAX };

static char base[] = "/tmp/oribi-order-XXXXXX";
static char self[PATH_MAX];

/* By how much this program's clock is ahead; shared with the processes that it forks. */
static _Atomic int64_t *ahead_ms;

int64_t oribi_clock_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + (ahead_ms ? atomic_load(ahead_ms) : 0);
}

/* --- the client: SELF client MODE [-a URL -c ACCOUNT …] new|issue --- */

static int call_hook(const char *hook, const char *method, const char *type, const char *authorization)
{
    char command[PATH_CAP];
    (void)snprintf(command, sizeof(command), "%s %s %s a.test " TOKEN " %s", hook, method, type, authorization);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static X509 *sign(EVP_PKEY *of, const char *title, EVP_PKEY *by, long days)
{
    X509 *made = X509_new();
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 4711);
    X509_gmtime_adj(X509_getm_notBefore(made), -10L * 86400);
    X509_gmtime_adj(X509_getm_notAfter(made), days * 86400);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC, (const unsigned char *)title, -1, -1,
                               0);
    X509_NAME *issuer = X509_NAME_new();
    X509_NAME_add_entry_by_txt(issuer, "CN", MBSTRING_ASC, (const unsigned char *)"authority", -1, -1, 0);
    X509_set_issuer_name(made, issuer);
    X509_NAME_free(issuer);
    X509_set_pubkey(made, of);
    const char *names = strcmp(title, "names") == 0 ? "DNS:a.test" : "DNS:a.test,DNS:b.test";
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
    X509_add_ext(made, extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(made, by, EVP_sha256());
    return made;
}

static int issue(const char *request, const char *mode)
{
    char path[PATH_CAP];
    FILE *file = fopen(request, "r");
    X509_REQ *asked = file ? PEM_read_X509_REQ(file, NULL, NULL, NULL) : NULL;
    EVP_PKEY *authority = EVP_EC_gen("P-256");
    if (!asked || X509_REQ_verify(asked, X509_REQ_get0_pubkey(asked)) != 1)
        return 3;
    (void)fclose(file);
    EVP_PKEY *key = strcmp(mode, "other") == 0 ? authority : X509_REQ_get0_pubkey(asked);
    X509 *leaf = sign(key, mode, authority, strcmp(mode, "expired") == 0 ? -1 : 30);
    X509 *issuer = sign(authority, "authority", authority, 300);
    (void)snprintf(path, sizeof(path), "%.*s-cert.pem", (int)(strlen(request) - 4), request);
    file = fopen(path, "w");
    (void)(PEM_write_X509(file, leaf) && PEM_write_X509(file, issuer));
    return fclose(file) == 0 ? 0 : 3;
}

static void wait_for_ever(void)
{
    for (;;)
        (void)pause();
}

static int play_client(int argc, char **argv)
{
    const char *mode = argv[2];
    const char *account = argv[6];
    const char *verb = "";
    const char *hook = "";
    char path[PATH_CAP];
    struct stat found;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "-h") == 0)
            hook = argv[i + 1];
        if (strcmp(argv[i], "new") == 0 || strcmp(argv[i], "issue") == 0)
            verb = argv[i];
    }
    if (strcmp(verb, "new") == 0) {
        (void)mkdir(account, 0700);
        (void)snprintf(path, sizeof(path), "%s/private", account);
        bool again = mkdir(path, 0700) < 0;
        (void)snprintf(path, sizeof(path), "%s/%s", account, again ? "again" : "private/key.pem");
        FILE *file = fopen(path, "w");
        (void)fputs("key\n", file);
        return fclose(file) == 0 ? 0 : 3;
    }
    if (strcmp(mode, "hang") == 0)
        wait_for_ever();
    if (strcmp(mode, "refused") == 0) {
        (void)fputs("uacme: the server reported the following error:\n{\n    \"type\": "
                    "\"urn:ietf:params:acme:error:caa\",\n    \"detail\": \"forbidden\"\n}\n",
                    stderr);
        return 2;
    }
    (void)snprintf(path, sizeof(path), "%s/again", account);
    if (strcmp(mode, "lost") == 0 && stat(path, &found) < 0) {
        (void)fputs("uacme: no account associated with key.pem found\n", stderr);
        return 2;
    }
    if (call_hook(hook, "begin", "tls-alpn-01", "x") == 0 || call_hook(hook, "begin", "http-01", "no.thumb") == 0 ||
        call_hook(hook, "begin", "http-01", TOKEN ".thumb") != 0)
        return 2;
    if (strcmp(mode, "asks") == 0) /* the authority does not look at the challenge */
        wait_for_ever();
    if (call_hook(hook, "done", "http-01", TOKEN ".thumb") != 0)
        return 2;
    if (strcmp(mode, "signs") == 0) /* the authority does not issue */
        wait_for_ever();
    return issue(argv[argc - 1], mode);
}

/* --- the supervisor --- */

struct heard {
    char kinds[16]; /* of messages, in their order */
    char facts[ORIBI_ACME_MESSAGE_MAX + 1];
    char begin[ORIBI_ACME_MESSAGE_MAX + 1];
    char last[ORIBI_ACME_MESSAGE_MAX + 1]; /* behind its kind */
};

static struct order *make_order(const char *folder, const char *mode)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct order *order = oribi_mem_alloc(1, sizeof(*order));
    order->lines = oribi_mem_alloc(1, sizeof(*order->lines));
    order->count = 1;
    order->store.lock_fd = -1;
    (void)snprintf(order->store.dir, sizeof(order->store.dir), "%s/%s", base, folder);
    (void)snprintf(order->directory, sizeof(order->directory), "https://localhost:14000/dir");
    (void)snprintf(order->command, sizeof(order->command), "%.500s client %s", self, mode);
    ok_eq(oribi_acme_read("a.test,b.test?email=me@a.test", order->lines, error), 0);
    return order;
}

/* `leaves`: the supervisor goes once the client has an account. */
static struct heard ask_for(const char *folder, const char *mode, char kind, char answer, bool leaves)
{
    struct heard heard = {0};
    struct order *order = make_order(folder, mode);
    char message[ORIBI_ACME_MESSAGE_MAX + 1];
    char path[PATH_CAP];
    struct stat found;
    int fds[2];
    int status = -1;
    size_t count = 0;
    ok_eq(oribi_os_socket_pair(SOCK_SEQPACKET, false, fds), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(fds[1], SUPERVISOR_FD);
        oribi_os_close(fds[0]);
        oribi_os_close(fds[1]);
        run(order, kind);
        _exit(0);
    }
    oribi_os_close(fds[1]);
    (void)snprintf(path, sizeof(path), "%s/account/localhost_14000/private/key.pem", order->store.dir);
    while (leaves && stat(path, &found) < 0)
        (void)poll(NULL, 0, 5);
    if (leaves)
        (void)shutdown(fds[0], SHUT_RDWR);
    for (ssize_t n; (n = recv(fds[0], message, sizeof(message) - 1, 0)) > 0;) {
        message[n] = '\0';
        if (count + 1 < sizeof(heard.kinds))
            heard.kinds[count++] = message[0];
        if (message[0] == ORIBI_ACME_SAYS_FACTS)
            memcpy(heard.facts, message + 1, (size_t)n);
        if (message[0] == ORIBI_ACME_SAYS_BEGIN)
            memcpy(heard.begin, message + 1, (size_t)n);
        if (message[0] == ORIBI_ACME_SAYS_BEGIN)
            (void)send(fds[0], &answer, 1, MSG_NOSIGNAL);
        memcpy(heard.last, message + 1, (size_t)n);
    }
    oribi_os_close(fds[0]);
    ok(waitpid(pid, &status, 0) == pid && status == 0);
    oribi_mem_free(order->lines);
    oribi_mem_free(order);
    return heard;
}

static struct heard order_for(const char *folder, const char *mode)
{
    return ask_for(folder, mode, ORIBI_ACME_TOLD_ORDER, ORIBI_ACME_TOLD_READY, false);
}

static unsigned failures_of(const char *facts)
{
    unsigned failures = 99;
    (void)sscanf(facts, "%*u %*d %*d %u", &failures);
    return failures;
}

/* No key, no request and no half-written file stays. */
static void check_left(const char *folder, bool issued)
{
    char command[PATH_CAP];
    (void)snprintf(command, sizeof(command), "test %s -f %s/%s/a.test.pem", issued ? "" : "!", base, folder);
    ok_named(system(command) == 0, "%s: the certificate %s", folder, issued ? "is there" : "is not there");
    (void)snprintf(command, sizeof(command), "test -z \"$(ls -A %s/%s/request; ls %s/%s | grep new$)\"", base, folder,
                   base, folder);
    ok_named(system(command) == 0, "%s: nothing else is left", folder);
}

/* --- cases --- */

static void test_a_certificate_comes(void)
{
    struct heard heard = order_for("good", "good");
    is_str(heard.kinds, "beFD");
    is_str(heard.begin, TOKEN " " TOKEN ".thumb");
    ok_named(strstr(heard.facts, " 0 0 1267 good ") != NULL, "%s", heard.facts);
    check_left("good", true);
    char path[PATH_CAP];
    struct stat found;
    (void)snprintf(path, sizeof(path), "%s/good/a.test.pem", base);
    ok(stat(path, &found) == 0 && (found.st_mode & 0777) == 0600);
}

static void test_another_server_has_got_it_meanwhile(void)
{
    struct heard heard = order_for("good", "refused");
    is_str(heard.kinds, "Fd");
    ok_named(strstr(heard.facts, " 0 0 1267 good ") != NULL, "%s", heard.facts);
    heard = ask_for("good", "refused", ORIBI_ACME_TOLD_LOOK, ORIBI_ACME_TOLD_READY, false);
    is_str(heard.kinds, "FD");
    ok_eq(failures_of(heard.facts), 0);
}

static void test_an_account_that_the_authority_has_lost(void)
{
    struct heard heard = order_for("lost", "lost");
    is_str(heard.kinds, "beFD");
    check_left("lost", true);
}

static void test_what_the_authority_says_is_told(void)
{
    for (unsigned i = 1; i <= 2; i++) {
        struct heard heard = order_for("refused", "refused");
        is_str(heard.kinds, "FX");
        is_str(heard.last, "caa: forbidden; allow the authority in the name's CAA record");
        ok_eq(failures_of(heard.facts), i);
    }
    check_left("refused", false);
    struct heard heard = order_for("refused", "good");
    is_str(heard.kinds, "beFD");
    ok_eq(failures_of(heard.facts), 0);
}

static void test_a_challenge_that_nobody_answers(void)
{
    struct heard heard = ask_for("mute", "good", ORIBI_ACME_TOLD_ORDER, ORIBI_ACME_TOLD_FAILED, false);
    is_str(heard.kinds, "bFX");
    check_left("mute", false);
}

static void test_certificates_that_cannot_be_used(void)
{
    static const char *const all[][2] = {{"other", "the key is not this certificate's"},
                                         {"names", "lacks a name that was asked for"},
                                         {"expired", "is this machine's clock right?"}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct heard heard = order_for(all[i][0], all[i][0]);
        is_str(heard.kinds, "beFX");
        ok_named(strstr(heard.last, all[i][1]) != NULL, "%s", heard.last);
        ok_eq(failures_of(heard.facts), 1);
        check_left(all[i][0], false);
    }
}

static void test_a_client_that_is_not_there(void)
{
    struct order *order = make_order("missing", "x");
    struct oribi__acme_client client = {.store = &order->store,
                                        .command = "/nowhere/uacme",
                                        .directory = order->directory,
                                        .user = "",
                                        .account = "/nowhere",
                                        .supervisor_fd = -1,
                                        .until_ms = oribi_clock_ms() + 60000};
    char reason[ORIBI_ACME_REASON_MAX + 1];
    ok_eq(oribi__acme_client_account(&client, "", false, reason), ORIBI_EINVAL);
    ok_named(strstr(reason, "apt-get install uacme") != NULL, "%s", reason);
    client.command = " ";
    ok_eq(oribi__acme_client_account(&client, "", false, reason), ORIBI_EINVAL);
    is_str(reason, "acme_command is empty");
    oribi_mem_free(order->lines);
    oribi_mem_free(order);
}

/* The end of the program's socket is the last thing that a client's group could hold. */
static void test_a_supervisor_that_goes_ends_the_client(void)
{
    struct heard heard = ask_for("hang", "hang", ORIBI_ACME_TOLD_ORDER, ORIBI_ACME_TOLD_READY, true);
    is_str(heard.kinds, "");
    check_left("hang", false);
    heard = ask_for("hang", "x", ORIBI_ACME_TOLD_LOOK, ORIBI_ACME_TOLD_READY, false);
    ok_named(failures_of(heard.facts) == 0, "a server that ends is no failure");
}

/* Answers challenges; when a message of this kind has come, the time is over. */
static void play_supervisor_until(int fd, char kind)
{
    char message[ORIBI_ACME_MESSAGE_MAX];
    static const char ready = ORIBI_ACME_TOLD_READY;
    while (recv(fd, message, sizeof(message), 0) > 0) {
        if (message[0] == ORIBI_ACME_SAYS_BEGIN)
            (void)send(fd, &ready, 1, MSG_NOSIGNAL);
        if (message[0] == kind)
            atomic_store(ahead_ms, 120 * 1000);
    }
    _exit(0);
}

/* An authority that does not answer any more, whatever the client has come to. */
static void test_a_client_whose_time_is_over(void)
{
    static const struct {
        const char *mode;
        char last; /* of its messages; 0: none */
    } all[] = {{"hang", 0}, {"asks", ORIBI_ACME_SAYS_BEGIN}, {"signs", ORIBI_ACME_SAYS_END}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct order *order = make_order("late", all[i].mode);
        char error[ORIBI_ERROR_TEXT_CAP];
        char reason[ORIBI_ACME_REASON_MAX + 1];
        int fds[2];
        int status;
        ok_eq(oribi_os_socket_pair(SOCK_SEQPACKET, false, fds), 0);
        ok_eq(oribi__acme_store_open(&order->store, error), 0);
        struct oribi__acme_client client = {.store = &order->store,
                                            .command = order->command,
                                            .directory = order->directory,
                                            .user = "",
                                            .supervisor_fd = fds[1],
                                            .until_ms = oribi_clock_ms() + (all[i].last ? 60 * 1000 : 50)};
        (void)fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            oribi_os_close(fds[1]);
            play_supervisor_until(fds[0], all[i].last);
        }
        account_folder(order, client.account);
        ok_eq(oribi__acme_client_issue(&client, "/nowhere/a.test.csr", reason), ORIBI_EINVAL);
        ok_named(strstr(reason, "did not answer in time") != NULL, "%s: %s", all[i].mode, reason);
        oribi_os_close(fds[0]);
        oribi_os_close(fds[1]);
        ok(waitpid(pid, &status, 0) == pid && status == 0);
        ok_named(waitpid(-1, NULL, WNOHANG) < 0, "the client has been reaped");
        atomic_store(ahead_ms, 0);
        oribi_os_close(order->store.lock_fd);
        oribi_mem_free(order->lines);
        oribi_mem_free(order);
    }
}

static void test_texts_of_the_supervisor(void)
{
    static const struct {
        const char *text;
        bool good;
    } all[] = {
        {"dir 2\n/d\ncertificate 6\na.test\n", true},
        {"dir 2\n/d\norder 0 0\n\nclock 2\n-5\ncertificate 6\na.test\n", true},
        {"dir 1\nd\ncertificate 6\na.test\n", false},
        {"dir 2\n/d\n", false},
        {"certificate 6\na.test\n", false},
        {"dir 2\n/d\norder 1 0\n\ncertificate 6\na.test\n", false},
        {"dir 2\n/d\norder -1 0\n\ncertificate 6\na.test\n", false},
        {"dir 2\n/d\nclock 2\nx5\ncertificate 6\na.test\n", false},
        {"dir 2\n/d\nclock 0\n\ncertificate 6\na.test\n", false},
        {"dir 2\n/d\nother 0\n\ncertificate 6\na.test\n", false},
        {"dir 2\n/d\ncertificate 3\n*.a\n", false},
        {"dir 2\n/d\ncertificate 6\na.test", false},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct order *order = oribi_mem_alloc(1, sizeof(*order));
        order->lines = oribi_mem_alloc(ORIBI_ACME_CERTIFICATES_MAX, sizeof(*order->lines));
        bool taken = take_text(order, oribi_slice(all[i].text, strlen(all[i].text)));
        ok_named(taken == all[i].good, "text %zu", i);
        oribi_mem_free(order->lines);
        oribi_mem_free(order);
    }
}

static _Noreturn void leave(int code)
{
    (void)fflush(NULL);
    _exit(code);
}

int main(int argc, char **argv)
{
    /* Memory that these leave to the end of their process is no leak of the test. */
    if (argc > 7 && strcmp(argv[1], "client") == 0)
        leave(play_client(argc, argv));
    if (getenv(ORIBI__ACME_HOOK))
        leave(oribi_frontend_acme_hook(argc, argv));
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    ok(n > 0 && mkdtemp(base) != NULL);
    ahead_ms = mmap(NULL, sizeof(*ahead_ms), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ok(ahead_ms != MAP_FAILED);
    test_a_certificate_comes();
    test_another_server_has_got_it_meanwhile();
    test_an_account_that_the_authority_has_lost();
    test_what_the_authority_says_is_told();
    test_a_challenge_that_nobody_answers();
    test_certificates_that_cannot_be_used();
    test_a_client_that_is_not_there();
    test_a_supervisor_that_goes_ends_the_client();
    test_a_client_whose_time_is_over();
    test_texts_of_the_supervisor();
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -rf %s", base);
    ok_eq(system(command), 0);
    return done_testing();
}
