/* Certificates by ACME without an authority: this program, started anew, plays the part of `oribi-frontend --acme`
 * (worker/acme_protocol.h), and the test that of a frontend. */
#include "supervisor/acme.c"

#include "supervisor/frontends_private.h"
#include "supervisor/modules.h"
#include "base/clock_ahead.h"
#include "tap.h"

#include "oribi/base/os/os.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 20 * 1000, DAYS = 24 * 60 * 60, HOUR_MS = 60 * 60 * 1000 };

static struct oribi_options options;
static struct oribi_supervisor *supervisor;
static struct oribi__context *context;
static struct oribi__acme *acme;
static char folder[64];
static char error[ORIBI_ERROR_TEXT_CAP];

/* --- the program's part --- */

/* Receives a message and, with the first one, the text. Gives its kind, 0: the supervisor has gone. */
static char receive(int fd, struct oribi_buf *text)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char kind = 0;
    struct iovec vec = {&kind, 1};
    struct msghdr message = {
        .msg_iov = &vec, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
    if (recvmsg(fd, &message, 0) <= 0)
        return 0;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int passed = -1;
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(&passed, CMSG_DATA(head), sizeof(passed));
    if (passed >= 0 && text) {
        text->len = 0;
        (void)oribi__frontend_text_read(passed, text);
        oribi_buf_append(text, "", 1);
    }
    if (passed >= 0)
        oribi_os_close(passed);
    return kind;
}

static void note(const char *kind, const char *text)
{
    FILE *file = fopen(getenv("ACME_TEST_TOLD"), "ae");
    if (!file)
        _exit(1);
    (void)fprintf(file, "%s %s\n", kind, text);
    (void)fclose(file);
}

/* Says the messages of ACME_TEST_LOOK or ACME_TEST_ORDER, with bars between them: "?" waits for an answer and notes it,
 * "hang" waits for the supervisor's end, "deaf" for ever, "die" dies. */
static int play(void)
{
    struct oribi_buf text = {0};
    char kind[2] = {receive(STDIN_FILENO, &text), '\0'};
    char says[4096];
    char *rest = NULL;
    note(kind, text.p);
    (void)snprintf(says, sizeof(says), "%s", getenv(kind[0] == 'O' ? "ACME_TEST_ORDER" : "ACME_TEST_LOOK"));
    for (char *word = strtok_r(says, "|", &rest); word; word = strtok_r(NULL, "|", &rest)) {
        if (strcmp(word, "die") == 0)
            (void)raise(SIGKILL);
        while (strcmp(word, "deaf") == 0)
            (void)pause();
        while (strcmp(word, "hang") == 0)
            if (!receive(STDIN_FILENO, NULL))
                return 0;
        if (strcmp(word, "?") != 0) {
            (void)!write(STDIN_FILENO, word, strlen(word)); /* it may have gone */
            continue;
        }
        kind[0] = receive(STDIN_FILENO, NULL);
        note("answer", kind);
    }
    return 0;
}

/* --- the frontend's part --- */

static int frontend_fd;
static bool frontend_is_silent;
static uint32_t read_anew;
static struct oribi_buf local; /* the last text of local content */

static void play_frontend(void)
{
    char kind;
    (void)oribi_os_set_nonblock(frontend_fd, true);
    while ((kind = receive(frontend_fd, &local)) != 0) {
        read_anew += kind == ORIBI_FRONTEND_TOLD_CERTIFICATES;
        char says = kind == ORIBI_FRONTEND_TOLD_CERTIFICATES ? ORIBI_FRONTEND_SAYS_TAKEN : ORIBI_FRONTEND_SAYS_LOCAL;
        if (!frontend_is_silent)
            (void)!write(frontend_fd, &says, 1);
    }
}

/* --- the test's part --- */

static void turn(void)
{
    int status;
    pid_t pid;
    modules_run(context);
    play_frontend();
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        ok(oribi__acme_ended(context, pid, status));
}

#define until(condition)                                                                                               \
    do {                                                                                                               \
        int64_t end_ = real_ms() + WAIT_MS;                                                                            \
        while (!(condition) && real_ms() < end_) {                                                                     \
            turn();                                                                                                    \
            (void)usleep(500);                                                                                         \
        }                                                                                                              \
        ok_named((condition), "%s: in the end %s", __func__, #condition);                                              \
    } while (0)

/* No child is there, and none comes before a timer. */
static bool is_quiet(void)
{
    turn();
    turn();
    return acme->child.pid == 0;
}

static void says(const char *look, const char *order)
{
    if (setenv("ACME_TEST_LOOK", look, 1) < 0 || setenv("ACME_TEST_ORDER", order, 1) < 0)
        exit(1);
}

static const char *told(void)
{
    static char text[65536];
    int fd = open(getenv("ACME_TEST_TOLD"), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        oribi_os_close(fd);
    return text;
}

static uint32_t count(const char *words)
{
    uint32_t n = 0;
    for (const char *at = told(); (at = strstr(at, words)) != NULL; at++)
        n++;
    return n;
}

#define LOOKS  count("L dir")
#define ORDERS count("O dir")

/* A server that serves, with these certificates and one frontend. It has not looked yet. */
static void begin_world(const char *line, const char *more)
{
    int fds[2];
    supervisor = modules_create(&oribi__server, &options);
    context = &supervisor->context;
    acme = context->acme;
    (void)unlink(getenv("ACME_TEST_TOLD"));
    ok_eq(oribi_options_set(&options, "acme", line, error), 0);
    if (more)
        ok_eq(oribi_options_set(&options, "acme", more, error), 0);
    ok_eq(oribi_options_set(&options, "acme_dir", folder, error), 0);
    ok_eq(oribi__acme_module.begin(context, error), 0);
    struct oribi__frontend *frontend = &context->frontends->items[0];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        exit(1);
    frontend->control_fd = fds[0];
    frontend->process.ready = true;
    context->frontends->set.count = 1;
    ok_eq(oribi_dispatcher_watch(&context->dispatcher, &frontend->watcher, fds[0], ORIBI_READ), 0);
    frontend_fd = fds[1];
    frontend_is_silent = false;
    read_anew = 0;
    context->policy.up = true;
}

static void settle_now(void)
{
    oribi__acme_module.settle(context);
}

static void end_world(void)
{
    modules_destroy(supervisor, &options);
    oribi_os_close(frontend_fd);
    oribi_buf_deinit(&local);
    ok(waitpid(-1, NULL, WNOHANG) < 0);
}

static const struct oribi__acme_certificate *shown(uint32_t i)
{
    return oribi__acme_set(context)->items[i];
}

static const char *facts(uint32_t index, int64_t from_s, int64_t to_s, uint32_t failures, int64_t tried_s,
                         const char *rest)
{
    static char text[4][512];
    static int turn_of;
    char *dst = text[turn_of++ % 4];
    int64_t now_s = (int64_t)time(NULL);
    (void)snprintf(dst, 512, "F%u %lld %lld %u %lld %s", index, (long long)(to_s ? now_s + from_s : 0),
                   (long long)(to_s ? now_s + to_s : 0), failures, (long long)tried_s, rest);
    return dst;
}

static const char *with(const char *first, const char *second)
{
    static char text[4][1600];
    static int turn_of;
    char *dst = text[turn_of++ % 4];
    (void)snprintf(dst, 1600, "%s|%s", first, second);
    return dst;
}

#define NONE    with(facts(0, 0, 0, 0, 0, "- none "), "D")
#define GOOD    with(facts(0, -1 * DAYS, 89 * DAYS, 0, 0, "aa good "), "D")
#define IS_GOOD (strcmp(shown(0)->state, "good") == 0)
#define NOW_S   oribi__acme_now_s(acme)

/* --- orders --- */

static void test_a_missing_certificate_is_asked_for_and_served(void)
{
    says(NONE, with("bTOK-en_1 TOK-en_1.print|?|eTOK-en_1", GOOD));
    begin_world("example.org,www.example.org?email=me@example.org", NULL);
    ok_eq(shown(0)->placeholder, false);
    settle_now();
    until(LOOKS == 1 && ORDERS == 1);
    until(IS_GOOD && acme->child.pid == 0);
    ok_eq(count("answer y"), 1);
    until(read_anew == 1);
    is_str(shown(0)->name, "example.org");
    is_str(shown(0)->names, "example.org,www.example.org");
    ok(!shown(0)->placeholder && shown(0)->failures == 0);
    ok_eq(context->observe->totals.acme_orders, 1);
    ok_eq(context->observe->totals.acme_failures, 0);
    /* the last third of 90 days, in its first quarter */
    ok(shown(0)->next_s >= NOW_S + 58 * DAYS && shown(0)->next_s < NOW_S + 67 * DAYS);
    ok(is_quiet());
    end_world();
}

/* Another server has the folder, too: nothing was ordered, and nothing is said to be. */
static void test_a_certificate_that_another_process_has_ordered_is_found(void)
{
    char log[80];
    char text[4096] = "";
    (void)snprintf(log, sizeof(log), "%s/log", folder);
    says(NONE, with(facts(0, -1 * DAYS, 89 * DAYS, 0, 0, "aa good "), "d"));
    begin_world("example.org", NULL);
    ok_eq(oribi_log_open(log, NULL), 0);
    settle_now();
    until(IS_GOOD && acme->child.pid == 0);
    until(read_anew == 1);
    ok_eq(context->observe->totals.acme_orders, 0);
    ok_eq(context->observe->totals.acme_failures, 0);
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    ok(oribi_os_read(fd, text, sizeof(text) - 1) > 0);
    oribi_os_close(fd);
    ok_named(strstr(text, "certificate of example.org: another process has put a good one into /") != NULL, "%s", text);
    ok(strstr(text, "issued") == NULL);
    (void)unlink(log);
    end_world();
}

static void test_the_program_is_told_all_that_it_needs(void)
{
    says(NONE, "XBad");
    begin_world("example.org?email=me@example.org", "example.net");
    acme->clock_s = 86400;
    settle_now();
    until(ORDERS == 1 && acme->child.pid == 0);
    ok(strstr(told(), folder) != NULL);
    ok(strstr(told(), "\ndirectory 46\nhttps://acme-v02.api.letsencrypt.org/directory\n") != NULL);
    ok(strstr(told(), "\ncommand 5\nuacme\n") != NULL);
    ok(strstr(told(), "\nclock 5\n86400\n") != NULL);
    ok(strstr(told(), "\norder 0 0\n") != NULL);
    ok(strstr(told(), "\ncertificate 32\nexample.org?email=me@example.org\ncertificate 11\nexample.net\n") != NULL);
    end_world();
}

static void test_frontends_answer_the_challenge_before_the_authority_asks(void)
{
    says(NONE, "bone one.print|?|hang");
    begin_world("example.org", NULL);
    frontend_is_silent = true;
    settle_now();
    until(acme->token_count == 1);
    until(local.len > 0 && strstr(local.p, "/.well-known/acme-challenge/one=200:one.print\n") != NULL);
    turn();
    ok_eq(count("answer"), 0);
    char taken = ORIBI_FRONTEND_SAYS_LOCAL;
    ok(write(frontend_fd, &taken, 1) == 1);
    until(count("answer y") == 1);
    frontend_is_silent = false;
    context->policy.stopping = true;
    settle_now();
    until(acme->child.pid == 0);
    until(strstr(local.p, "acme-challenge") == NULL); /* they go with the program */
    end_world();
}

static void test_a_frontend_that_does_not_answer_holds_up_no_order(void)
{
    says(NONE, "bone one.print|?|D");
    begin_world("example.org", NULL);
    frontend_is_silent = true;
    settle_now();
    until(acme->token_count == 1);
    pass_ms(ORIBI__ACME_READY_MS);
    until(count("answer y") == 1);
    end_world();
}

static void test_a_token_that_is_none_is_refused(void)
{
    static const char *const wrong[] = {"b",
                                        "bone",
                                        "bone two three",
                                        "bo=e one.print",
                                        "b../x one.print",
                                        "bone one\nprint more",
                                        "bone on\xc3\xa4.print"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        says(NONE, with(wrong[i], "?"));
        begin_world("example.org", NULL);
        settle_now();
        until(count("answer n") == 1 && acme->child.pid == 0);
        ok(local.len == 0 || strstr(local.p, "acme-challenge") == NULL);
        end_world();
    }
}

static void test_messages_without_sense_are_left_alone(void)
{
    says("F|F9 1 1 1 1 a good|F0|Fx|Z|F0 1 2 3|F-1 0 0 0 0 - none|D", "X");
    begin_world("example.org", NULL);
    settle_now();
    until(LOOKS == 1 && acme->child.pid == 0);
    is_str(shown(0)->state, "unknown");
    ok_eq(ORDERS, 0);
    end_world();
}

/* --- failures --- */

static void test_what_the_authority_said_is_shown_and_the_next_try_is_an_hour_later(void)
{
    says(NONE, "XrateLimited: too many certificates");
    begin_world("example.org", NULL);
    settle_now();
    until(shown(0)->failures == 1);
    is_str(shown(0)->state, "failed");
    is_str(shown(0)->reason, "rateLimited: too many certificates");
    ok(shown(0)->placeholder);
    ok(shown(0)->next_s >= NOW_S + 3600 - 5 && shown(0)->next_s <= NOW_S + 3600);
    ok_eq(context->observe->totals.acme_failures, 1);
    ok(is_quiet()); /* though the folder does not have the failure */
    ok_eq(ORDERS, 1);
    acme->clock_s += 3601;
    pass_ms(HOUR_MS);
    until(shown(0)->failures == 2);
    ok_eq(ORDERS, 2);
    ok(shown(0)->next_s >= NOW_S + 7200 - 5);
    is_str(shown(0)->reason, "rateLimited: too many certificates");
    end_world();
}

static void test_a_file_that_was_removed_takes_away_nothing_that_serves(void)
{
    says(GOOD, "Xno");
    begin_world("example.org", NULL);
    settle_now();
    until(IS_GOOD && acme->child.pid == 0);
    is_str(oribi__acme_without_file(&acme->items[0]), "the certificate that served last serves on");
    says(NONE, "Xno");
    pass_ms(HOUR_MS);
    until(shown(0)->failures == 1);
    ok(!shown(0)->placeholder);
    is_str(oribi__acme_without_file(&acme->items[0]), "the certificate that served last serves on");
    end_world();
    begin_world("example.org", NULL);
    settle_now();
    until(shown(0)->failures == 1);
    is_str(oribi__acme_without_file(&acme->items[0]), "a self-signed placeholder serves");
    end_world();
}

static void test_a_day_without_luck_takes_few_orders(void)
{
    says(NONE, "Xno");
    begin_world("example.org", NULL);
    settle_now();
    until(shown(0)->failures == 1);
    for (int hour = 1; hour <= 24; hour++) {
        uint32_t looks = LOOKS;
        acme->clock_s += 3600;
        pass_ms(HOUR_MS);
        until(LOOKS == looks + 1 && acme->child.pid == 0);
    }
    ok_eq(LOOKS, 25);
    ok(ORDERS <= 6);
    end_world();
}

static void test_a_program_that_dies_has_failed(void)
{
    says(NONE, "die");
    begin_world("example.org", NULL);
    settle_now();
    until(shown(0)->failures == 1);
    is_str(shown(0)->reason, "oribi-frontend --acme has ended early");
    ok(is_quiet());
    end_world();
}

static void test_a_client_that_takes_too_long_is_ended(void)
{
    says(NONE, "hang");
    begin_world("example.org", NULL);
    settle_now();
    until(acme->child.pid && ORDERS == 1);
    pass_ms(ORIBI_ACME_ORDER_MS + ORIBI__ACME_END_MS);
    until(shown(0)->failures == 1);
    is_str(shown(0)->reason, "the ACME client did not end in time");
    end_world();
    says(NONE, "deaf");
    begin_world("example.org", NULL);
    settle_now();
    until(acme->child.pid && ORDERS == 1);
    pass_ms(ORIBI_ACME_ORDER_MS + ORIBI__ACME_END_MS);
    until(acme->child.ended);
    pass_ms(ORIBI__ACME_END_MS);
    until(shown(0)->failures == 1);
    end_world();
}

static void test_a_folder_that_cannot_be_looked_at_asks_for_nothing(void)
{
    says("Xno right to read it", "D");
    begin_world("example.org", NULL);
    settle_now();
    until(LOOKS == 1 && acme->child.pid == 0);
    ok(is_quiet());
    for (uint32_t i = 2; i < 6; i++) {
        pass_ms(HOUR_MS);
        until(LOOKS == i && acme->child.pid == 0);
    }
    ok_eq(ORDERS, 0);
    end_world();
}

static void test_without_the_program_nothing_is_asked_for(void)
{
    char *program = strdup(getenv("ORIBI_FRONTEND_PROGRAM"));
    if (setenv("ORIBI_FRONTEND_PROGRAM", "/nonexistent/oribi-frontend", 1) < 0)
        exit(1);
    begin_world("example.org", NULL);
    settle_now();
    ok(is_quiet());
    is_str(shown(0)->state, "unknown");
    ok(oribi_timer_at(&acme->next) > oribi_clock_ms() + 1000);
    end_world();
    if (setenv("ORIBI_FRONTEND_PROGRAM", program, 1) < 0)
        exit(1);
    oribi_mem_free(program);
}

/* --- others --- */

static void test_where_another_process_asks_the_files_are_looked_at_again_soon(void)
{
    says(NONE, "B");
    begin_world("example.org", NULL);
    settle_now();
    until(ORDERS == 1 && acme->child.pid == 0);
    ok(is_quiet());
    ok_eq(shown(0)->failures, 0);
    says(GOOD, "B");
    pass_ms(ORIBI__ACME_AGAIN_MS);
    until(IS_GOOD && read_anew == 1);
    ok(is_quiet());
    ok_eq(ORDERS, 1);
    end_world();
}

/* A predecessor may have got it when the frontends had read their files. */
static void test_what_the_first_look_finds_is_read_once_more(void)
{
    says(GOOD, "X");
    begin_world("example.org", NULL);
    settle_now();
    until(IS_GOOD && read_anew == 1);
    pass_ms(HOUR_MS);
    until(LOOKS == 2 && acme->child.pid == 0);
    ok(is_quiet());
    ok_eq(read_anew, 1);
    end_world();
}

static void test_a_server_that_stops_ends_the_order_and_that_is_no_failure(void)
{
    says(NONE, "hang");
    begin_world("example.org", NULL);
    settle_now();
    until(ORDERS == 1);
    context->policy.stopping = true;
    settle_now();
    until(acme->child.pid == 0);
    ok(is_quiet());
    ok_eq(context->observe->totals.acme_failures, 0);
    end_world();
}

static void test_nothing_is_asked_for_beside_a_successor(void)
{
    says(NONE, "X");
    begin_world("example.org", NULL);
    context->policy.upgrade_pid = 1;
    settle_now();
    ok(is_quiet());
    ok_eq(LOOKS, 0);
    context->policy.upgrade_pid = 0; /* it has failed */
    settle_now();
    until(LOOKS == 1 && ORDERS == 1 && acme->child.pid == 0);
    end_world();
}

static void test_an_end_leaves_no_child(void)
{
    says(NONE, "deaf");
    begin_world("example.org", NULL);
    settle_now();
    until(ORDERS == 1);
    end_world();
}

/* --- several --- */

static void test_certificates_are_asked_for_one_after_the_other(void)
{
    says(with(facts(0, 0, 0, 0, 0, "- none "), with(facts(1, 0, 0, 0, 0, "- none "), "D")), "Xno");
    begin_world("example.org", "example.net");
    settle_now();
    until(ORDERS == 2 && acme->child.pid == 0);
    ok_eq(count("\norder 0 0\n"), 1);
    ok_eq(count("\norder 1 0\n"), 1);
    ok(shown(0)->failures == 1 && shown(1)->failures == 1);
    ok(is_quiet());
    end_world();
}

/* --- clocks --- */

static void test_an_order_of_the_future_holds_up_none(void)
{
    says(with(facts(0, 0, 0, 3, (int64_t)time(NULL) + 365 * DAYS, "- none no"), "D"), GOOD);
    begin_world("example.org", NULL);
    settle_now();
    until(IS_GOOD);
    end_world();
}

static void test_a_certificate_is_renewed_in_its_last_third(void)
{
    says(GOOD, with(facts(0, 70 * DAYS, 160 * DAYS, 0, 0, "bb good "), "D"));
    begin_world("example.org", NULL);
    settle_now();
    until(IS_GOOD && acme->child.pid == 0);
    acme->clock_s = 58 * DAYS;
    pass_ms(HOUR_MS);
    until(LOOKS == 2 && acme->child.pid == 0);
    ok(is_quiet());
    ok_eq(ORDERS, 0);
    acme->clock_s = 68 * DAYS;
    pass_ms(HOUR_MS);
    until(ORDERS == 1 && acme->child.pid == 0);
    until(read_anew == 2); /* the first look, the order */
    ok(IS_GOOD);
    end_world();
}

/* --- ctl --- */

static void test_ctl_asks_again_for_what_has_failed(void)
{
    char line[128];
    says(NONE, "Xno");
    begin_world("example.org", NULL);
    ok(oribi__acme_renew(context, line, sizeof(line)));
    ok(strstr(line, "looking") != NULL); /* nothing is known yet */
    settle_now();
    until(shown(0)->failures == 1);
    says(NONE, GOOD);
    ok(oribi__acme_renew(context, line, sizeof(line)));
    is_str(line, "asking for 1 certificate; see ctl certificates");
    ok(is_quiet());
    ok_eq(ORDERS, 1); /* once a minute */
    acme->clock_s += ORIBI__ACME_RENEW_S;
    pass_ms(ORIBI__ACME_RENEW_S * 1000);
    until(IS_GOOD);
    ok(oribi__acme_renew(context, line, sizeof(line)));
    is_str(line, "all certificates are good");
    end_world();
}

static void test_ctl_asks_for_nothing_twice(void)
{
    char line[128];
    says(NONE, with("hang", ""));
    begin_world("example.org", NULL);
    settle_now();
    until(ORDERS == 1);
    ok(oribi__acme_renew(context, line, sizeof(line)));
    acme->child.said = ORIBI__ACME_SAID_DONE;
    acme->child.has_facts = true;
    acme->items[0].file = ORIBI__ACME_GOOD;
    acme->items[0].facts = (struct oribi_acme_facts){NOW_S - DAYS, NOW_S + 89 * DAYS, 0, 0};
    (void)shutdown(acme->child.fd, SHUT_RDWR);
    until(acme->child.pid == 0);
    acme->clock_s += ORIBI__ACME_RENEW_S;
    pass_ms(ORIBI__ACME_RENEW_S * 1000);
    ok(is_quiet());
    ok_eq(ORDERS, 1);
    end_world();
}

static void test_the_table_has_all_of_them(void)
{
    struct oribi_buf out = {0};
    says(with(facts(0, -DAYS, 89 * DAYS, 0, 0, "aa good "), with(facts(1, 0, 0, 0, 0, "- none "), "D")), "Xdenied");
    begin_world("example.org", "example.net");
    ok(!oribi__acme_look(context)); /* not before the server serves */
    settle_now();
    until(shown(1)->failures == 1);
    oribi__acme_table(context, &out);
    oribi_buf_append(&out, "", 1);
    ok(strstr(out.p, "example.org ") && strstr(out.p, " good "));
    ok(strstr(out.p, "example.net ") && strstr(out.p, " failed ") && strstr(out.p, "denied\n"));
    oribi_buf_deinit(&out);
    uint32_t before = read_anew;
    uint32_t looks = LOOKS;
    ok(oribi__acme_look(context));
    until(LOOKS == looks + 1 && read_anew == before + 1);
    end_world();
}

/* --- the text of frontends --- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        exit(1);
}

static const char *text_with(const struct oribi__frontend_files *served, struct oribi__frontend_files *keep,
                             struct oribi_buf *out)
{
    static struct oribi_listeners listeners;
    listeners.count = 1;
    listeners.items[0] = (struct oribi_listener){.fd = -1, .tls = true, .frontend = true};
    out->len = 0;
    ok_eq(oribi__frontend_text_certificates(&options, &listeners, NULL, served, keep, NULL, out, error), 0);
    oribi_buf_append(out, "", 1);
    return out->p;
}

static void test_frontends_get_the_file_or_a_word_that_there_is_none(void)
{
    struct oribi_buf out = {0};
    struct oribi__frontend_files kept = {0};
    char path[128];
    begin_world("example.org,www.example.org", NULL);
    (void)snprintf(path, sizeof(path), "%s/example.org.pem", folder);
    const char *text = text_with(NULL, NULL, &out);
    ok(strstr(text, "\nplaceholder 27\nexample.org,www.example.org\n") && !strstr(text, "\nchain "));
    write_file(path, "CHAIN KEY");
    text = text_with(NULL, &kept, &out);
    ok(strstr(text, "\nmanaged 27\nexample.org,www.example.org\nchain 9\nCHAIN KEY\nkey 9\nCHAIN KEY\n") != NULL);
    ok(unlink(path) == 0);
    text = text_with(&kept, NULL, &out); /* what served last serves on */
    ok(strstr(text, "\nmanaged 27\n") && strstr(text, "\nchain 9\nCHAIN KEY\n"));
    oribi__frontend_files_free(&kept, false);
    oribi_buf_deinit(&out);
    end_world();
}

int main(int argc, char **argv)
{
    char self[PATH_MAX];
    char record[128];
    if (argc > 1 && strcmp(argv[1], "--acme") == 0) {
        int code = play();
        (void)fflush(NULL);
        _exit(code); /* what it leaves to its end is no leak of the test's */
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return skip_all("no /proc");
    self[n] = '\0';
    (void)snprintf(folder, sizeof(folder), "/tmp/oribi-acme-XXXXXX");
    if (!mkdtemp(folder))
        return skip_all("no temporary folder");
    (void)snprintf(record, sizeof(record), "%s/told", folder);
    if (setenv("ORIBI_FRONTEND_PROGRAM", self, 1) < 0 || setenv("ACME_TEST_TOLD", record, 1) < 0)
        return 1;
    test_a_missing_certificate_is_asked_for_and_served();
    test_the_program_is_told_all_that_it_needs();
    test_frontends_answer_the_challenge_before_the_authority_asks();
    test_a_frontend_that_does_not_answer_holds_up_no_order();
    test_a_token_that_is_none_is_refused();
    test_messages_without_sense_are_left_alone();
    test_what_the_authority_said_is_shown_and_the_next_try_is_an_hour_later();
    test_a_file_that_was_removed_takes_away_nothing_that_serves();
    test_a_day_without_luck_takes_few_orders();
    test_a_program_that_dies_has_failed();
    test_a_client_that_takes_too_long_is_ended();
    test_a_folder_that_cannot_be_looked_at_asks_for_nothing();
    test_without_the_program_nothing_is_asked_for();
    test_where_another_process_asks_the_files_are_looked_at_again_soon();
    test_what_the_first_look_finds_is_read_once_more();
    test_a_server_that_stops_ends_the_order_and_that_is_no_failure();
    test_nothing_is_asked_for_beside_a_successor();
    test_an_end_leaves_no_child();
    test_certificates_are_asked_for_one_after_the_other();
    test_an_order_of_the_future_holds_up_none();
    test_a_certificate_is_renewed_in_its_last_third();
    test_ctl_asks_again_for_what_has_failed();
    test_ctl_asks_for_nothing_twice();
    test_the_table_has_all_of_them();
    test_frontends_get_the_file_or_a_word_that_there_is_none();
    test_a_certificate_that_another_process_has_ordered_is_found(); /* last: the log is a file's from here on */
    (void)unlink(record);
    (void)rmdir(folder);
    return done_testing();
}
