/* The child that looks at certificates or orders one (worker/acme_protocol.h): its start, its messages, its end.
 * Reading order: oribi__acme_child_start, says, oribi__acme_ended. */
#include "supervisor/acme_private.h"

#include "supervisor/frontends.h"
#include "oribi/supervisor/frontend_text.h"
#include "oribi/supervisor/message.h"

#include "oribi/base/clock.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/frontend_protocol.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEARD_MAX = 64 }; /* messages at a time */

/* --- what it is told --- */

/* A user of its own where the server may give it one. */
static const char *user_of(const struct oribi_options *options)
{
    uid_t uid;
    gid_t gid;
    char ignored[ORIBI_ERROR_TEXT_CAP];
    if (geteuid() != 0)
        return "";
    if (options->acme_user)
        return options->acme_user;
    return oribi_process_find_user("oribi-acme", NULL, &uid, &gid, ignored) == 0 ? "oribi-acme" : "nobody";
}

static int add(struct oribi_buf *out, const char *name, const char *text)
{
    return oribi__frontend_add(out, name, text, strlen(text));
}

/* Gives the descriptor of the text, or a code with `error`. */
static int write_text(const struct oribi__acme *acme, bool orders, uint32_t index, char *error)
{
    const struct oribi_options *options = acme->context->process.options;
    struct oribi_buf text = {0};
    char number[32];
    int code = add(&text, "dir", acme->dir);
    code = code < 0 ? code : add(&text, "directory", options->acme_directory);
    code = code < 0 ? code : add(&text, "command", options->acme_command);
    code = code < 0 ? code : add(&text, "user", user_of(options));
    (void)snprintf(number, sizeof(number), "%lld", (long long)acme->clock_s); /* fits */
    code = code < 0 ? code : add(&text, "clock", number);
    (void)snprintf(number, sizeof(number), "order %u", index);
    if (orders && code == 0)
        code = add(&text, number, "");
    for (size_t i = 0; i < options->acme.count && code == 0; i++)
        code = add(&text, "certificate", options->acme.items[i]);
    int fd = code < 0 ? code : oribi__frontend_text_fd(&text, error);
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
    oribi_buf_deinit(&text);
    return fd;
}

/* --- its start --- */

static int spawn(char *program, int fd, pid_t *pid)
{
    char *argv[] = {program, (char *)"--acme", NULL};
    posix_spawn_file_actions_t files;
    if (posix_spawn_file_actions_init(&files) != 0)
        return ORIBI_ENOMEM;
    int failed = posix_spawn_file_actions_adddup2(&files, fd, STDIN_FILENO);
    failed = failed ? failed : posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!failed && oribi_log_fd() >= 0)
        failed = posix_spawn_file_actions_adddup2(&files, oribi_log_fd(), STDERR_FILENO);
    failed = failed ? failed : oribi__os_spawn(argv, &files, pid);
    (void)posix_spawn_file_actions_destroy(&files); /* cannot fail */
    return failed ? oribi_os_fail_saying("%s", strerror(failed)) : 0;
}

static int fail(char *error, const char *what)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s: %s", what, oribi_os_error_text());
    return ORIBI_ESYS;
}

static int connect_child(struct oribi__acme *acme, char *program, int text, bool orders, char *error)
{
    struct oribi__acme_child *child = &acme->child;
    int fds[2];
    pid_t pid = 0;
    if (oribi_message_pair(fds) < 0)
        return fail(error, "no socket for the ACME program");
    (void)oribi_os_set_nonblock(fds[0], true); /* it is open: cannot fail */
    int code = spawn(program, fds[1], &pid);
    oribi_os_close(fds[1]);
    if (code == 0)
        code = oribi__frontend_text_send(fds[0], orders ? ORIBI_ACME_TOLD_ORDER : ORIBI_ACME_TOLD_LOOK, text);
    if (code == 0)
        code = oribi_dispatcher_watch(&acme->context->dispatcher, &child->watcher, fds[0], ORIBI_READ);
    child->pid = pid;
    if (code == 0) {
        child->fd = fds[0];
        return 0;
    }
    code = fail(error, "the ACME program cannot be started");
    oribi_os_close(fds[0]);
    if (pid > 0) { /* it ends by itself: its socket is closed; it is reaped as any child then */
        (void)kill(-pid, SIGKILL);
        child->pid = 0;
    }
    return code;
}

int oribi__acme_child_start(struct oribi__acme *acme, bool orders, uint32_t index, char *error)
{
    struct oribi__acme_child *child = &acme->child;
    char program[512];
    if (!oribi__frontend_program(program, sizeof(program))) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "acme needs " ORIBI__FRONTEND_NEEDS);
        return ORIBI_ESYS;
    }
    int text = write_text(acme, orders, index, error);
    if (text < 0)
        return ORIBI_ESYS;
    child->orders = orders;
    child->index = index;
    child->said = ORIBI__ACME_SAID_NOTHING;
    child->has_facts = child->is_late = false;
    child->ended = NULL;
    child->why[0] = '\0';
    int code = connect_child(acme, program, text, orders, error);
    oribi_os_close(text);
    if (code == 0)
        oribi_dispatcher_arm(&acme->context->dispatcher, &child->until,
                             oribi_clock_ms() +
                                 (orders ? ORIBI_ACME_ORDER_MS + ORIBI__ACME_END_MS : ORIBI_ACME_LOOK_MS));
    return code;
}

/* --- challenges --- */

/* Frontends answer them as the operator's fixed answers (option answer). */
static void tell_frontends(struct oribi__acme *acme)
{
    struct oribi_buf records = {0};
    char value[sizeof(struct oribi__acme_token) + 64];
    int code = 0;
    for (uint32_t i = 0; i < acme->token_count && code == 0; i++) {
        (void)snprintf(value, sizeof(value), "/.well-known/acme-challenge/%s=200:%s", acme->tokens[i].token,
                       acme->tokens[i].authorization); /* fits */
        code = add(&records, "option answer", value);
    }
    if (code == 0)
        code = oribi__frontends_challenges(acme->context, &records);
    acme->told_tokens = acme->token_count > 0;
    oribi_buf_deinit(&records);
    if (code < 0)
        oribi_log(ORIBI_LOG_ERROR, "acme: out of memory: frontends do not answer the authority");
}

static void send_ready(struct oribi__acme *acme, char kind)
{
    oribi_dispatcher_arm(&acme->context->dispatcher, &acme->late, INT64_MAX);
    for (; acme->ready_owed > 0; acme->ready_owed--)
        if (acme->child.fd >= 0)
            (void)send(acme->child.fd, &kind, 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* one that has ended hears nothing */
}

void oribi__acme_look_at_challenges(struct oribi__context *context)
{
    struct oribi__acme *acme = context->acme;
    if (acme && acme->ready_owed > 0 && oribi__frontends_locals_taken(context))
        send_ready(acme, ORIBI_ACME_TOLD_READY);
}

static void is_late(void *owner)
{
    send_ready(owner, ORIBI_ACME_TOLD_READY); /* those that are there answer */
}

/* "TOKEN AUTHORIZATION" */
static void begin_challenge(struct oribi__acme *acme, const char *text)
{
    struct oribi__acme_token token;
    char extra;
    bool good = sscanf(text, "%200s %300s %c", token.token, token.authorization, &extra) == 2 &&
                oribi_acme_is_challenge(token.token, token.authorization) && acme->token_count < ORIBI_ACME_TOKENS_MAX;
    if (!good) {
        acme->ready_owed++;
        send_ready(acme, ORIBI_ACME_TOLD_FAILED);
        return;
    }
    acme->tokens[acme->token_count++] = token;
    tell_frontends(acme);
    acme->ready_owed++;
    oribi_dispatcher_arm(&acme->context->dispatcher, &acme->late, oribi_clock_ms() + ORIBI__ACME_READY_MS);
    oribi__acme_look_at_challenges(acme->context);
}

/* --- its messages --- */

static enum oribi__acme_file file_named(const char *word)
{
    return strcmp(word, "none") == 0    ? ORIBI__ACME_NONE
           : strcmp(word, "good") == 0  ? ORIBI__ACME_GOOD
           : strcmp(word, "names") == 0 ? ORIBI__ACME_NAMES
                                        : ORIBI__ACME_BAD;
}

static void take_facts(struct oribi__acme *acme, const char *text)
{
    unsigned index;
    long long begins_s;
    long long expires_s;
    unsigned failures;
    long long tried_s;
    char serial[ORIBI__ACME_SERIAL_MAX + 1];
    char word[16];
    int at = 0;
    if (sscanf(text, "%u %lld %lld %u %lld %80s %15s%n", &index, &begins_s, &expires_s, &failures, &tried_s, serial,
               word, &at) != 7 ||
        index >= acme->set.count)
        return;
    struct oribi__acme_item *item = &acme->items[index];
    item->file = file_named(word);
    item->facts = (struct oribi_acme_facts){begins_s, expires_s, failures, tried_s};
    (void)snprintf(item->serial, sizeof(item->serial), "%s", serial);
    const char *reason = text + at + (text[at] == ' ');
    if (reason[0] || (!failures && !item->failures)) /* else the folder does not have the reason that we know */
        (void)snprintf(item->reason, sizeof(item->reason), "%s", reason);
    acme->child.has_facts |= index == acme->child.index;
}

static void take_end(struct oribi__acme_child *child, enum oribi__acme_said said, const char *why)
{
    child->said = said;
    (void)snprintf(child->why, sizeof(child->why), "%.*s", (int)strcspn(why, "\n"), why);
}

static void take(struct oribi__acme *acme, const char *message)
{
    switch (message[0]) {
    case ORIBI_ACME_SAYS_FACTS:
        take_facts(acme, message + 1);
        break;
    case ORIBI_ACME_SAYS_BEGIN:
        begin_challenge(acme, message + 1);
        break;
    case ORIBI_ACME_SAYS_DONE:
        take_end(&acme->child, ORIBI__ACME_SAID_DONE, "");
        break;
    case ORIBI_ACME_SAYS_FOUND:
        take_end(&acme->child, ORIBI__ACME_SAID_FOUND, "");
        break;
    case ORIBI_ACME_SAYS_REFUSED:
        take_end(&acme->child, ORIBI__ACME_SAID_REFUSED, message + 1);
        break;
    case ORIBI_ACME_SAYS_BUSY:
        take_end(&acme->child, ORIBI__ACME_SAID_BUSY, "");
        break;
    default: /* the end of a challenge: all of them are forgotten with the child */
        break;
    }
}

static void shut(struct oribi__acme *acme)
{
    oribi_dispatcher_forget(&acme->context->dispatcher, &acme->child.watcher);
    oribi__close(&acme->child.fd);
}

/* Messages that are there. */
static void hear(struct oribi__acme *acme)
{
    char message[ORIBI_ACME_MESSAGE_MAX + 1];
    for (int i = 0; i < HEARD_MAX && acme->child.fd >= 0; i++) {
        ssize_t n = oribi_os_read(acme->child.fd, message, sizeof(message) - 1);
        if (n == ORIBI_AGAIN)
            return;
        if (n <= 0) {
            shut(acme);
            return;
        }
        message[n] = '\0';
        take(acme, message);
    }
}

static void says(void *owner, uint8_t ready)
{
    hear(owner);
}

/* --- its end --- */

/* Its client dies with it (PR_SET_PDEATHSIG). */
static void kill_group(const struct oribi__acme_child *child)
{
    (void)kill(-child->pid, SIGKILL); /* it may have ended just now */
    (void)kill(child->pid, SIGKILL);
}

void oribi__acme_child_stop(struct oribi__acme *acme, const char *why, bool late)
{
    struct oribi__acme_child *child = &acme->child;
    if (!child->pid || child->ended)
        return;
    child->ended = why;
    child->is_late = late;
    if (child->fd >= 0)
        (void)shutdown(child->fd, SHUT_RDWR); /* it ends its client, and itself */
    oribi_dispatcher_arm(&acme->context->dispatcher, &child->until, oribi_clock_ms() + ORIBI__ACME_END_MS);
}

static void time_is_over(void *owner)
{
    struct oribi__acme *acme = owner;
    struct oribi__acme_child *child = &acme->child;
    if (!child->ended)
        oribi__acme_child_stop(acme, child->orders ? "the ACME client did not end in time" : "the disk did not answer",
                               true);
    else if (child->pid)
        kill_group(child);
}

static void forget_challenges(struct oribi__acme *acme)
{
    acme->token_count = 0;
    acme->ready_owed = 0;
    oribi_dispatcher_arm(&acme->context->dispatcher, &acme->late, INT64_MAX);
    if (acme->told_tokens)
        tell_frontends(acme);
}

bool oribi__acme_ended(struct oribi__context *context, pid_t pid, int status)
{
    struct oribi__acme *acme = context->acme;
    if (!acme || !acme->child.pid || acme->child.pid != pid)
        return false;
    hear(acme);
    shut(acme);
    acme->child.pid = 0;
    oribi_dispatcher_arm(&context->dispatcher, &acme->child.until, INT64_MAX);
    forget_challenges(acme);
    if (acme->child.orders)
        oribi__acme_ordered(acme);
    else
        oribi__acme_looked(acme);
    oribi__acme_plan(acme);
    return true;
}

void oribi__acme_child_kill(struct oribi__acme *acme)
{
    shut(acme);
    oribi_dispatcher_arm(&acme->context->dispatcher, &acme->child.until, INT64_MAX);
    oribi_dispatcher_arm(&acme->context->dispatcher, &acme->late, INT64_MAX);
    if (!acme->child.pid)
        return;
    /* One that was told to end sets the state back: a stop is no failure of the authority's. */
    if (!acme->child.ended || !oribi_process_reap_within(acme->child.pid, ORIBI__ACME_LAST_MS)) {
        kill_group(&acme->child);
        (void)oribi_process_reap_within(acme->child.pid, ORIBI__ACME_END_MS);
    }
    acme->child.pid = 0;
}

void oribi__acme_child_init(struct oribi__acme *acme)
{
    acme->child.fd = -1;
    acme->child.watcher = (struct oribi_watcher){.ready = says, .owner = acme};
    acme->child.until = (struct oribi_timer){.expired = time_is_over, .owner = acme};
    acme->late = (struct oribi_timer){.expired = is_late, .owner = acme};
}
