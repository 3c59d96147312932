/* An operation: its request is written, sent, and its replies are read, on a connection that is ours and has nothing
 * left in it. What is sent again after a failure, and what never is, retry.h decides. */
#include "xs/redis.h"

#include "oribi/base/os/os.h"

#include <unistd.h>

/* --- errors --- */

static const char *const CLASSES[] = {
    [REDIS_FINE] = "Oribi::Redis::Error",
    [REDIS_CONNECTION] = "Oribi::Redis::Error::Connection",
    [REDIS_TIMEOUT] = "Oribi::Redis::Error::Timeout",
    [REDIS_PROTOCOL] = "Oribi::Redis::Error::Protocol",
    [REDIS_USAGE] = "Oribi::Redis::Error::Usage",
};

void redis_throw_usage(const char *format, ...)
{
    dTHX;
    char text[REDIS_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    croak_sv(sv_2mortal(redis_error_new(aTHX_ CLASSES[REDIS_USAGE], text, strlen(text))));
}

SV *redis_failure_new(pTHX_ const struct redis_client *c)
{
    return redis_error_new(aTHX_ CLASSES[c->failure], c->text, strlen(c->text));
}

void redis_throw(pTHX_ const struct redis_client *c)
{
    croak_sv(sv_2mortal(redis_failure_new(aTHX_ c)));
}

void redis_throw_refused(pTHX_ SV *name)
{
    redis_throw_usage("%.*s is no command with one reply; see subscribe() and noreply()", (int)SvCUR(name),
                      SvPVX(name));
}

/* In the words of Redis::Jet. */
SV *redis_jet_failure_new(pTHX_ const struct redis_client *c)
{
    static const char *const STAGES[] = {
        [REDIS_CONNECTING] = "failed to connect server",
        [REDIS_SENDING] = "failed to send message",
        [REDIS_READING] = "failed to read message",
    };
    if (c->failure == REDIS_PROTOCOL)
        return newSVpvf("failed to parse message: corrupted message found");
    return newSVpvf("%s: %s", STAGES[c->stage], c->text);
}

static int fail(struct redis_client *c, enum redis_failure failure, const char *text)
{
    c->failure = failure;
    snprintf(c->text, sizeof(c->text), "%s", text);
    return -1;
}

/* A code of the core's. */
static int fail_code(struct redis_client *c, int code)
{
    enum redis_failure failure = code == ORIBI_ETIMEOUT                       ? REDIS_TIMEOUT
                                 : code == ORIBI_EBAD || code == ORIBI_ELIMIT ? REDIS_PROTOCOL
                                                                              : REDIS_CONNECTION;
    const char *why = oribi_redis_conn_why(&c->conn);
    return fail(c, failure, *why ? why : oribi_error_text(code));
}

/* --- the life of an operation --- */

/* Replies of noreply() that nobody will read. In a child they are its parent's. */
static void note_lost(struct redis_client *c)
{
    if (c->pid == getpid())
        c->lost += c->unread;
    else
        c->quiet = c->lost = 0;
    c->unread = 0;
}

void redis_close(pTHX_ struct redis_client *c)
{
    note_lost(c);
    c->pinned = false;
    oribi_redis_conn_close(&c->conn);
}

static void ended(pTHX_ void *p)
{
    struct redis_client *c = p;
    HV *self = c->held;
    c->held = NULL;
    if (c->complete)
        c->unread = c->conn.quiet;
    else
        redis_close(aTHX_ c);
    if (c->apart_count)
        redis_forget_request(aTHX_ c);
    c->busy = false;
    SvREFCNT_dec_NN(self);
}

void redis_must_be_free(struct redis_client *c)
{
    if (c->busy)
        redis_throw_usage("the client is in the middle of a command; a signal handler needs a client of its own");
}

/* Until LEAVE: the client is ours, and is closed there unless c->complete was set. */
static void begin(pTHX_ struct redis_client *c)
{
    redis_must_be_free(c);
    c->busy = true;
    c->complete = false;
    c->failure = REDIS_FINE;
    c->conn.read_ms = c->options.read_ms;
    c->held = (HV *)SvREFCNT_inc_simple_NN((SV *)c->self);
    SAVEDESTRUCTOR_X(ended, c);
}

/* Hint for the error `text` of a server that does not know HELLO, with which the greeting [p, p+n) begins. */
static const char *hint_for(const char *p, size_t n, const char *text)
{
    static const char HELLO[] = "$5\r\nHELLO\r\n"; /* behind "*2\r\n", or what more words are counted with */
    bool hello = n > sizeof(HELLO) + 4 && memcmp(p + 4, HELLO, sizeof(HELLO) - 1) == 0;
    bool unknown = strstr(text, "unknown command") || strncmp(text, "NOPROTO", 7) == 0;
    return hello && unknown ? "; servers before Redis 6 want protocol => 2" : "";
}

/* Sends bytes that are a request of `count` commands. */
static int greet(pTHX_ struct redis_client *c, const char *p, size_t n, int64_t count)
{
    struct iovec piece = {(char *)p, n};
    int code = count ? oribi_redis_conn_send_pieces(&c->conn, &piece, 1, 0, (uint64_t)count) : 0;
    while (!code && count-- > 0) {
        SV *reply = redis_reply(aTHX_ c, &code, NULL);
        if (!reply || !redis_is_error(aTHX_ reply))
            continue;
        const char *text = SvPV_nolen(redis_error_text(aTHX_ reply));
        oribi_redis_conn_fail(&c->conn, "the server refuses the connection: %.180s%s", text, hint_for(p, n, text));
        code = ORIBI_ESYS;
    }
    return code;
}

/* Does the server know that it is the master? Sentinels may name one before it does. */
static int check_role(pTHX_ struct redis_client *c)
{
    static const char ROLE[] = "*1\r\n$4\r\nROLE\r\n";
    struct iovec piece = {(char *)ROLE, sizeof(ROLE) - 1};
    int code = oribi_redis_conn_send_pieces(&c->conn, &piece, 1, 0, 1);
    SV *reply = code ? NULL : redis_reply(aTHX_ c, &code, NULL);
    if (code)
        return code;
    AV *role = SvROK(reply) && SvTYPE(SvRV(reply)) == SVt_PVAV ? (AV *)SvRV(reply) : NULL;
    if (role && AvFILLp(role) >= 0 && strcmp(SvPV_nolen(AvARRAY(role)[0]), "master") == 0)
        return 0;
    oribi_redis_conn_fail(&c->conn, "the server that the Sentinels name is no master");
    return ORIBI_ESYS;
}

/* A new connection, and what it begins with: TLS; HELLO or AUTH, and SELECT; what command() has sent of those since. */
static int open_once(pTHX_ struct redis_client *c)
{
    int64_t read_ms = c->conn.read_ms;
    c->pid = getpid();
    int code = c->options.sentinels ? redis_ask_sentinels(aTHX_ c) : 0;
    if (!code)
        code = oribi_redis_conn_connect(&c->conn, &c->options.place);
    if (!code && c->options.place.tls)
        code = redis_start_tls(aTHX_ c);
    if (!code)
        code = oribi_redis_conn_begin(&c->conn);
    c->conn.read_ms = c->conn.connect_ms;
    if (!code && c->options.hello)
        code = greet(aTHX_ c, SvPVX(c->options.hello), SvCUR(c->options.hello), c->options.hello_count);
    for (int i = 0; i < REDIS_KEPT_COUNT && !code; i++)
        if (c->kept[i].p)
            code = greet(aTHX_ c, c->kept[i].p, c->kept[i].n, 1);
    if (!code && c->options.sentinels)
        code = check_role(aTHX_ c);
    c->conn.read_ms = read_ms;
    return code;
}

/* Takes the step after a failure, by retry.h: waits and gives 0, or -1 for the end, of which c->text tells. */
static int again(pTHX_ struct redis_client *c, struct oribi_redis_tries *tries, enum oribi_redis_stage stage, int code)
{
    struct oribi_redis_failed failed = {stage, code, c->conn.sent, false, c->pinned};
    failed.repeats = stage == ORIBI_REDIS_ASKING && failed.sent && redis_request_repeats(c);
    uint32_t random = 0; /* not perl's: forked children would all wait alike */
    (void)oribi_os_random(&random, sizeof(random));
    int64_t wait_ms = oribi_redis_tries_after(tries, &failed, random);
    note_lost(c);
    oribi_redis_conn_close(&c->conn);
    if (wait_ms == ORIBI_REDIS_TRANSACTION_LOST)
        return fail(c, REDIS_CONNECTION, oribi_redis_transaction_lost);
    if (wait_ms < 0)
        return -1;
    if (wait_ms > 0)
        redis_pause(aTHX_ wait_ms);
    return 0;
}

/* A connection in the middle of an operation: the one there is, or a new one. Nothing was sent yet. */
static int connected(pTHX_ struct redis_client *c, struct oribi_redis_tries *tries)
{
    c->stage = REDIS_CONNECTING;
    int code = oribi_redis_conn_begin(&c->conn);
    while (code == 1) { /* pushes */
        bool is_push;
        if (redis_reply(aTHX_ c, &code, &is_push))
            code = oribi_redis_conn_push(&c->conn);
    }
    if (code == 0)
        return 0;
    fail_code(c, code);
    if (again(aTHX_ c, tries, ORIBI_REDIS_BEGINNING, code) < 0)
        return -1;
    while ((code = open_once(aTHX_ c)) != 0) {
        fail_code(c, code);
        if (again(aTHX_ c, tries, ORIBI_REDIS_OPENING, code) < 0)
            return -1;
    }
    c->failure = REDIS_FINE;
    c->conn.sent = false; /* of the operation nothing was */
    return 0;
}

/* --- requests --- */

enum { FEW_PIECES = 8 };

/* Sends the request of which `quiet` replies are nobody's and `replies` are ours. */
static int send_request(pTHX_ struct redis_client *c, uint64_t quiet, uint64_t replies)
{
    struct iovec few[FEW_PIECES];
    struct iovec *pieces = few;
    size_t count = 0, at = 0;
    if (2 * c->apart_count + 1 > FEW_PIECES) {
        Newx(pieces, 2 * c->apart_count + 1, struct iovec);
        SAVEFREEPV(pieces);
    }
    for (size_t i = 0; i < c->apart_count; i++) {
        struct redis_apart *apart = &c->apart[i];
        pieces[count++] = (struct iovec){c->request.p + at, apart->at - at};
        pieces[count++] = (struct iovec){SvPVX(apart->sv), SvCUR(apart->sv)};
        at = apart->at;
    }
    pieces[count++] = (struct iovec){c->request.p + at, c->request.len - at};
    c->stage = REDIS_SENDING;
    return oribi_redis_conn_send_pieces(&c->conn, pieces, count, quiet, replies);
}

/* Sends the request and reads its replies: into *one, or `wanted` of them into `replies`; again as retry.h
 * says. */
static int attempt(pTHX_ struct redis_client *c, SV **one, AV *replies, SSize_t wanted)
{
    struct oribi_redis_tries tries = c->options.tries;
    for (;;) {
        if (connected(aTHX_ c, &tries) < 0)
            return -1;
        int code = send_request(aTHX_ c, 0, (uint64_t)wanted);
        if (!code)
            c->stage = REDIS_READING;
        for (SSize_t i = 0; i < wanted && !code; i++) {
            SV *reply = redis_reply(aTHX_ c, &code, NULL);
            if (reply && one)
                *one = reply;
            else if (reply)
                av_push(replies, SvREFCNT_inc_simple_NN(reply));
        }
        if (!code)
            return 0;
        fail_code(c, code);
        if (again(aTHX_ c, &tries, ORIBI_REDIS_ASKING, code) < 0)
            return -1;
        if (replies)
            av_clear(replies);
    }
}

static void finish(pTHX_ struct redis_client *c, int code)
{
    c->complete = code == 0;
    if (c->complete)
        oribi_redis_conn_end(&c->conn);
}

/* Notes the effect of a command that was carried out on those behind it. */
static void note_special(pTHX_ struct redis_client *c, enum redis_special special, SV *reply)
{
    if (special == REDIS_PINS || special == REDIS_UNPINS)
        c->pinned = special == REDIS_PINS;
    else if (!redis_is_error(aTHX_ reply)) {
        Safefree(c->kept[special].p);
        c->kept[special].p = savepvn(c->request.p, (I32)c->request.len);
        c->kept[special].n = c->request.len;
    }
}

SV *redis_command(pTHX_ struct redis_client *c, SV **args, SSize_t count, int64_t read_ms)
{
    ENTER;
    args = redis_looked_at(aTHX_ c, args, count);
    enum redis_special special = redis_special_of(args, count);
    if (special == REDIS_REFUSED)
        redis_throw_refused(aTHX_ args[0]);
    begin(aTHX_ c);
    redis_forget_request(aTHX_ c);
    c->complete = true; /* nothing was sent: what is wrong with an argument does not end the connection */
    redis_put_command(aTHX_ c, args, count);
    c->complete = false;
    if (read_ms >= 0)
        c->conn.read_ms = read_ms;
    SV *reply = NULL;
    int code = attempt(aTHX_ c, &reply, NULL, 1);
    finish(aTHX_ c, code);
    if (!code && special)
        note_special(aTHX_ c, special, reply);
    LEAVE;
    return code ? NULL : reply;
}

AV *redis_pipeline(pTHX_ struct redis_client *c, SV **commands, SSize_t count)
{
    AV *replies = (AV *)sv_2mortal((SV *)newAV());
    if (count == 0)
        return replies;
    ENTER;
    redis_put_commands(aTHX_ c, commands, count);
    begin(aTHX_ c);
    av_extend(replies, count - 1);
    int code = attempt(aTHX_ c, NULL, replies, count);
    finish(aTHX_ c, code);
    if (!code)
        c->pinned = c->pins;
    LEAVE;
    return replies;
}

/* Sends commands, or the `count` arguments of one, and leaves the replies to later operations, which count them. 0, or
 * -1. */
int redis_noreply(pTHX_ struct redis_client *c, SV **args, SSize_t count, bool one)
{
    ENTER;
    SV *command = one ? sv_2mortal(newRV_noinc((SV *)av_make(count, args))) : NULL;
    redis_put_commands(aTHX_ c, one ? &command : args, one ? 1 : count);
    uint64_t commands = one ? 1 : (uint64_t)count;
    begin(aTHX_ c);
    struct oribi_redis_tries tries = c->options.tries;
    int code = connected(aTHX_ c, &tries);
    if (!code) {
        code = send_request(aTHX_ c, commands, 0);
        c->quiet += commands;
        if (code) {
            c->lost += c->conn.sent ? commands : 0;
            c->quiet -= c->conn.sent ? 0 : commands;
            fail_code(c, code);
        }
    }
    finish(aTHX_ c, code);
    if (!code)
        c->pinned = c->pins;
    LEAVE;
    return code;
}

/* Reads all replies of noreply(). 0, or -1. */
int redis_settle(pTHX_ struct redis_client *c)
{
    if (c->conn.quiet == 0)
        return 0;
    ENTER;
    begin(aTHX_ c);
    c->stage = REDIS_READING;
    struct oribi_redis_event event;
    int code = oribi_redis_conn_begin(&c->conn);
    if (code == 1) /* a push among many replies; settle() tells it */
        code = 0;
    while (code == 0 && (code = oribi_redis_conn_settle(&c->conn, &event)) == 1) /* a push begins */
        redis_pass_push(aTHX_ c, &event, &code);
    if (code)
        fail_code(c, code);
    finish(aTHX_ c, code);
    LEAVE;
    return code;
}

/* Connects, unless it is. 0, or -1. */
int redis_connect(pTHX_ struct redis_client *c)
{
    ENTER;
    begin(aTHX_ c);
    struct oribi_redis_tries tries = c->options.tries;
    int code = connected(aTHX_ c, &tries);
    finish(aTHX_ c, code);
    LEAVE;
    return code;
}

/* --- subscriptions --- */

/* Sends SUBSCRIBE and the like, whose answers are pushes. 0, or -1. */
int redis_listen(pTHX_ struct redis_client *c, SV **args, SSize_t count)
{
    ENTER;
    args = redis_looked_at(aTHX_ c, args, count);
    begin(aTHX_ c);
    redis_forget_request(aTHX_ c);
    redis_put_command(aTHX_ c, args, count);
    struct oribi_redis_tries tries = c->options.tries;
    int code = c->conn.subscribed ? 0 : connected(aTHX_ c, &tries);
    if (!code) {
        c->conn.subscribed = true;
        code = send_request(aTHX_ c, 0, 0);
    }
    if (code)
        fail_code(c, code);
    finish(aTHX_ c, code);
    LEAVE;
    return code;
}

/* The next push, within limit_ms (negative: any time). NULL: none has come (c->failure is REDIS_FINE), or the link
 * is lost, and what is published meanwhile with it. */
SV *redis_next_push(pTHX_ struct redis_client *c, int64_t limit_ms)
{
    int64_t until_ms = oribi_clock_ms() + limit_ms;
    ENTER;
    begin(aTHX_ c);
    c->stage = REDIS_READING;
    int code = 0;
    if (c->conn.state == ORIBI_REDIS_CLOSED || c->pid != getpid()) {
        oribi_redis_conn_fail(&c->conn, "the subscription has ended, or is another process's");
        code = ORIBI_ECLOSED;
    }
    SV *push = NULL;
    while (!code && !push) {
        code = oribi_redis_conn_push(&c->conn);
        if (code > 0) {
            bool is_push;
            push = redis_reply(aTHX_ c, &code, &is_push);
        } else if (code == 0) {
            int64_t left_ms = limit_ms < 0 ? REDIS_SLICE_MS : until_ms - oribi_clock_ms();
            if (left_ms <= 0)
                break;
            c->complete = true; /* nothing of a push has come: a handler that dies leaves no half of one */
            redis_wait_readable(aTHX_ c, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
            c->complete = false;
        }
    }
    if (code)
        fail_code(c, code);
    c->complete = code == 0;
    LEAVE;
    return push;
}
