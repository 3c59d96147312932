/* `oribi-frontend --acme`: one look at all certificates, or one order; see acme.h. Reading order: oribi_frontend_acme,
 * take_text, look, order. */
#include "frontend/acme.h"
#include "frontend/pairs.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/frontend_protocol.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUPERVISOR_FD = STDIN_FILENO, DIRECTORY_MAX = 1024, COMMAND_MAX = 1024, USER_MAX = 64 };

struct order {
    struct oribi__acme_store store;
    char directory[DIRECTORY_MAX + 1];
    char command[COMMAND_MAX + 1];
    char user[USER_MAX + 1];
    int64_t clock_s;
    uint32_t index; /* of the certificate that is asked for */
    uint32_t count;
    struct oribi_acme_line *lines; /* ORIBI_ACME_CERTIFICATES_MAX of them */
};

/* --- messages --- */

/* A supervisor that has gone wants to know nothing. */
static void say(char kind, const char *text)
{
    char message[ORIBI_ACME_MESSAGE_MAX];
    int n = snprintf(message, sizeof(message), "%c%s", kind, text);
    size_t len = (size_t)n < sizeof(message) ? (size_t)n : sizeof(message) - 1;
    (void)send(SUPERVISOR_FD, message, len, MSG_NOSIGNAL);
}

static int receive(char *kind, int *passed)
{
    (void)poll(&(struct pollfd){.fd = SUPERVISOR_FD, .events = POLLIN}, 1, ORIBI_ACME_LOOK_MS);
    ssize_t n = oribi__frontend_message_receive(SUPERVISOR_FD, kind, 1, passed);
    return n == 1 && *passed >= 0 ? 0 : -1;
}

/* --- the text --- */

static bool copy(struct oribi_slice value, char *dst, size_t max)
{
    if (value.n > max || (value.n && memchr(value.p, '\0', value.n)))
        return false;
    if (value.n)
        memcpy(dst, value.p, value.n);
    dst[value.n] = '\0';
    return true;
}

static bool number(struct oribi_slice text, int64_t *value)
{
    char digits[24];
    char *end;
    if (text.n == 0 || !copy(text, digits, sizeof(digits) - 1))
        return false;
    *value = strtoll(digits, &end, 10);
    return *end == '\0';
}

static bool add_line(struct order *order, struct oribi_slice value)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (order->count == ORIBI_ACME_CERTIFICATES_MAX)
        return false;
    char *line = oribi_mem_alloc(value.n + 1, 1);
    bool good = copy(value, line, value.n) && oribi_acme_read(line, &order->lines[order->count], error) == 0;
    oribi_mem_free(line);
    order->count += good;
    return good;
}

static bool take_record(struct order *order, const struct oribi__record *record)
{
    struct oribi_slice rest;
    int64_t index;
    if (oribi__record_is(record, "dir"))
        return copy(record->value, order->store.dir, sizeof(order->store.dir) - 1) && order->store.dir[0] == '/';
    if (oribi__record_is(record, "directory"))
        return copy(record->value, order->directory, DIRECTORY_MAX);
    if (oribi__record_is(record, "command"))
        return copy(record->value, order->command, COMMAND_MAX);
    if (oribi__record_is(record, "user"))
        return copy(record->value, order->user, USER_MAX);
    if (oribi__record_is(record, "clock"))
        return number(record->value, &order->clock_s);
    if (oribi__record_begins(record, "order", &rest)) {
        bool good = number(rest, &index) && index >= 0 && index < ORIBI_ACME_CERTIFICATES_MAX;
        order->index = good ? (uint32_t)index : 0;
        return good;
    }
    return oribi__record_is(record, "certificate") && add_line(order, record->value);
}

static bool take_text(struct order *order, struct oribi_slice text)
{
    struct oribi__record record;
    const char *at = text.p;
    const char *end = text.p + text.n;
    while (oribi__record_next(&at, end, &record))
        if (!take_record(order, &record))
            return false;
    return at == end && order->count > 0 && order->index < order->count && order->store.dir[0];
}

static bool take_user(struct order *order, char *error)
{
    order->store.switches = order->user[0] != '\0';
    if (!order->store.switches)
        return true;
    return oribi_process_find_user(order->user, NULL, &order->store.uid, &order->store.gid, error) == 0;
}

/* --- a look --- */

static const char *judge(const struct oribi_acme_line *line, struct oribi_slice text, struct oribi__acme_found *found,
                         char *reason)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (oribi__acme_look(text, text, line, found, error) < 0) {
        (void)snprintf(reason, ORIBI_ACME_REASON_MAX + 1, "%s", error);
        return "bad";
    }
    if (found->has_names)
        return "good";
    (void)snprintf(reason, ORIBI_ACME_REASON_MAX + 1, "the certificate lacks a name that acme has now");
    return "names";
}

/* A kill behind the installation has left the state of a failure. */
static bool is_newer(const char *path, int64_t tried_s)
{
    struct stat found;
    return stat(path, &found) == 0 && (int64_t)found.st_mtime >= tried_s;
}

static void tell_facts(const struct order *order, uint32_t index)
{
    const struct oribi_acme_line *line = &order->lines[index];
    struct oribi__acme_found found = {.serial = "-"};
    struct oribi_acme_facts facts = {0};
    struct oribi_buf text = {0};
    char message[ORIBI_ACME_MESSAGE_MAX];
    char path[PATH_MAX];
    char error[ORIBI_ERROR_TEXT_CAP];
    char why[ORIBI_ACME_REASON_MAX + 1] = "";
    char reason[ORIBI_ACME_REASON_MAX + 1];
    const char *state = "none";
    oribi__acme_state_read(&order->store, line->names[0], &facts, reason);
    if (oribi_acme_file(order->store.dir, line, path, sizeof(path))) {
        int code = oribi__acme_store_read(path, &text, error);
        if (code == 0)
            state = judge(line, oribi_slice(text.p, text.len), &found, why);
        else if (code < 0) {
            state = "bad";
            (void)snprintf(why, sizeof(why), "%s", error);
        }
    }
    if (strcmp(state, "good") == 0 && facts.failures && is_newer(path, facts.tried_s - order->clock_s)) {
        facts.failures = 0;
        facts.tried_s = 0;
        reason[0] = '\0';
    }
    (void)snprintf(message, sizeof(message), "%u %lld %lld %u %lld %s %s %s", index, (long long)found.begins_s,
                   (long long)found.expires_s, facts.failures, (long long)facts.tried_s, found.serial, state,
                   why[0] && !facts.failures ? why : reason);
    say(ORIBI_ACME_SAYS_FACTS, message);
    if (text.p)
        explicit_bzero(text.p, text.len);
    oribi_buf_deinit(&text);
}

/* --- an order --- */

static int refuse(char *reason, const char *format, const char *word)
{
    char text[ORIBI_ACME_REASON_MAX + 1];
    (void)snprintf(text, sizeof(text), format, word); /* cut when longer */
    memcpy(reason, text, sizeof(text));
    return ORIBI_EINVAL;
}

/* An account is one of an authority: its folder has the name of its host and port. */
static void account_folder(const struct order *order, char dst[PATH_MAX])
{
    const char *host = strstr(order->directory, "://");
    host = host ? host + 3 : order->directory;
    size_t n = (size_t)snprintf(dst, PATH_MAX, "%s/account/", order->store.dir);
    for (const char *p = host; *p && *p != '/' && n + 1 < PATH_MAX; p++)
        dst[n++] = isalnum((unsigned char)*p) || *p == '-' || *p == '.' ? *p : '_';
    dst[n < PATH_MAX ? n : PATH_MAX - 1] = '\0';
}

/* Checks the certificate that has come: pair, names, dates by this machine's clock, chain. */
static int check(const struct order *order, const struct oribi_acme_line *line, struct oribi_slice chain,
                 struct oribi_slice key, char *reason)
{
    struct oribi__acme_found found;
    char error[ORIBI_ERROR_TEXT_CAP];
    int64_t now_s = oribi_clock_wall_s() + order->clock_s;
    if (oribi__acme_look(chain, key, line, &found, error) < 0)
        return refuse(reason, "the authority's certificate cannot be used: %s", error);
    if (!found.has_names)
        return refuse(reason, "the authority's certificate lacks a name that was asked for%s", "");
    if (found.begins_s > now_s || found.expires_s <= now_s)
        return refuse(reason, "the authority's certificate is not valid now: is this machine's clock right?%s", "");
    return 0;
}

static int install(const struct order *order, const struct oribi_acme_line *line, const char *came,
                   const struct oribi_buf *key, char *reason)
{
    struct oribi_buf text = {0};
    char path[PATH_MAX];
    char error[ORIBI_ERROR_TEXT_CAP];
    int code = oribi__acme_store_take(came, &text, error);
    if (code != 0)
        code = refuse(reason, code > 0 ? "the ACME client left no certificate: %.300s" : "%s", code > 0 ? came : error);
    else if (text.len == 0 || text.p[text.len - 1] != '\n')
        oribi_buf_append(&text, "\n", 1);
    if (code == 0)
        code = check(order, line, oribi_slice(text.p, text.len), oribi_slice(key->p, key->len), reason);
    if (code == 0) {
        oribi_buf_reserve(&text, key->len); /* no copy of the key stays where the buffer was */
        oribi_buf_append(&text, key->p, key->len);
        (void)oribi_acme_file(order->store.dir, line, path, sizeof(path)); /* the state's name was as long */
        code = oribi__acme_store_install(path, oribi_slice(text.p, text.len), error);
        if (code < 0)
            (void)refuse(reason, "%s", error);
        explicit_bzero(text.p, text.len);
    }
    oribi_buf_deinit(&text);
    return code;
}

static int ask(const struct order *order, const struct oribi_acme_line *line, const char *request, char *reason)
{
    struct oribi__acme_client client = {.store = &order->store,
                                        .command = order->command,
                                        .directory = order->directory,
                                        .user = order->user,
                                        .supervisor_fd = SUPERVISOR_FD,
                                        .until_ms = oribi_clock_ms() + ORIBI_ACME_ORDER_MS};
    account_folder(order, client.account);
    int code = oribi__acme_client_account(&client, line->email, false, reason);
    if (code == 0)
        code = oribi__acme_client_issue(&client, request, reason);
    if (code == 1) { /* the authority has lost the account */
        code = oribi__acme_client_account(&client, line->email, true, reason);
        code = code < 0 ? code : oribi__acme_client_issue(&client, request, reason);
    }
    return code == 1 ? refuse(reason, "the authority does not know the account in %.300s", client.account) : code;
}

static int get(const struct order *order, const struct oribi_acme_line *line, char *reason)
{
    struct oribi_buf key = {0};
    struct oribi_buf text = {0};
    char request[PATH_MAX];
    char came[PATH_MAX];
    char error[ORIBI_ERROR_TEXT_CAP];
    const char *dir = order->store.dir;
    int n = snprintf(came, sizeof(came), "%s/request/%s-cert.pem", dir, line->names[0]);
    (void)snprintf(request, sizeof(request), "%s/request/%s.csr", dir, line->names[0]);
    if (n < 0 || (size_t)n >= sizeof(came))
        return refuse(reason, "%.300s: the path is too long", dir);
    int code = oribi__acme_request_make(line, &key, &text);
    if (code < 0)
        code = refuse(reason, "no key could be made: out of memory%s", "");
    else if (oribi__acme_store_put(&order->store, request, oribi_slice(text.p, text.len), true, error) < 0)
        code = refuse(reason, "%s", error);
    (void)unlink(came); /* of an order that was broken off; there may be none */
    code = code < 0 ? code : ask(order, line, request, reason);
    code = code < 0 ? code : install(order, line, came, &key, reason);
    (void)unlink(request); /* as above */
    (void)unlink(came);
    if (key.p)
        explicit_bzero(key.p, key.len);
    oribi_buf_deinit(&key);
    oribi_buf_deinit(&text);
    return code;
}

/* Another server that shares the folder may have got it since the supervisor looked. What was asked for in vain, by
 * --renew or in the last third of its life, is due. */
static bool is_not_due(const struct order *order, const struct oribi_acme_line *line)
{
    struct oribi__acme_found found = {0};
    struct oribi_buf text = {0};
    char path[PATH_MAX];
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_slice whole;
    bool good =
        oribi_acme_file(order->store.dir, line, path, sizeof(path)) && oribi__acme_store_read(path, &text, error) == 0;
    whole = oribi_slice(text.p, text.len);
    good = good && text.len > 0 && oribi__acme_look(whole, whole, line, &found, error) == 0 && found.has_names;
    if (text.p)
        explicit_bzero(text.p, text.len);
    oribi_buf_deinit(&text);
    const struct oribi_acme_facts facts = {.begins_s = found.begins_s, .expires_s = found.expires_s};
    return good && oribi_acme_due_s(&facts, oribi_acme_seed(line)) > oribi_clock_wall_s() + order->clock_s;
}

static void order_one(struct order *order)
{
    const struct oribi_acme_line *line = &order->lines[order->index];
    struct oribi_acme_facts facts = {0};
    char path[PATH_MAX];
    char error[ORIBI_ERROR_TEXT_CAP];
    char reason[ORIBI_ACME_REASON_MAX + 1];
    char before[ORIBI_ACME_REASON_MAX + 1];
    int code = oribi__acme_store_lock(&order->store, error);
    if (code == ORIBI_AGAIN) {
        say(ORIBI_ACME_SAYS_BUSY, "");
        return;
    }
    if (code == 0 && is_not_due(order, line)) {
        tell_facts(order, order->index);
        say(ORIBI_ACME_SAYS_FOUND, "");
        return;
    }
    if (code == 0) {
        oribi__acme_state_read(&order->store, line->names[0], &facts, before);
        facts.failures += facts.failures < UINT32_MAX;
        facts.tried_s = oribi_clock_wall_s() + order->clock_s;
        code = oribi__acme_state_write(&order->store, line->names[0], &facts, "the order was broken off", error);
    }
    if (code == 0 && oribi_acme_file(order->store.dir, line, path, sizeof(path)))
        code = oribi__acme_store_check(path, error);
    if (code < 0) {
        say(ORIBI_ACME_SAYS_REFUSED, error);
        return;
    }
    code = get(order, line, reason);
    if (code == ORIBI_ECLOSED) { /* a server that ends is no failure of the authority's: the next one asks soon */
        facts.failures--;
        (void)oribi__acme_state_write(&order->store, line->names[0], &facts, before, error); /* then it counts as one */
        return;
    }
    facts.failures = code < 0 ? facts.failures : 0;
    facts.tried_s = code < 0 ? facts.tried_s : 0;
    (void)oribi__acme_state_write(&order->store, line->names[0], &facts, code < 0 ? reason : "",
                                  error); /* the supervisor keeps it as well */
    tell_facts(order, order->index);
    say(code < 0 ? ORIBI_ACME_SAYS_REFUSED : ORIBI_ACME_SAYS_DONE, code < 0 ? reason : "");
}

/* --- the program --- */

static void run(struct order *order, char kind)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (!take_user(order, error) ||
        (kind == ORIBI_ACME_TOLD_ORDER && oribi__acme_store_open(&order->store, error) < 0)) {
        say(ORIBI_ACME_SAYS_REFUSED, error);
        return;
    }
    if (kind == ORIBI_ACME_TOLD_ORDER) {
        order_one(order);
        return;
    }
    for (uint32_t i = 0; i < order->count; i++)
        tell_facts(order, i);
    say(oribi__acme_store_is_locked(&order->store) ? ORIBI_ACME_SAYS_BUSY : ORIBI_ACME_SAYS_DONE, "");
}

int oribi_frontend_acme(void)
{
    struct oribi_buf text = {0};
    char kind = 0;
    int fd = -1;
    if (receive(&kind, &fd) < 0) {
        (void)fprintf(stderr, "oribi-frontend: --acme is asked by a server's supervisor alone\n");
        return 1;
    }
    struct order *order = oribi_mem_alloc(1, sizeof(*order));
    order->lines = oribi_mem_alloc(ORIBI_ACME_CERTIFICATES_MAX, sizeof(*order->lines));
    order->store.lock_fd = -1;
    bool good = oribi__frontend_text_read(fd, &text) == 0;
    oribi_os_close(fd);
    good = good && take_text(order, oribi_slice(text.p, oribi__records_len(text.p, text.len)));
    if (good)
        run(order, kind);
    else
        say(ORIBI_ACME_SAYS_REFUSED, "what the supervisor has written cannot be read");
    oribi_os_close(order->store.lock_fd);
    oribi_mem_free(order->lines);
    oribi_mem_free(order);
    oribi_buf_deinit(&text);
    return good ? 0 : 1;
}
