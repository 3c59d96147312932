/* Requests that the layer above answers without a call. */
#include "event/reactor.c"

#include "reactor_lab.h"

#define OWN   "GET /own HTTP/1.1\r\nHost: a\r\n\r\n"
#define OTHER "GET /other HTTP/1.1\r\nHost: a\r\n\r\n"

static int answers;
static bool closes;
static bool aborts;
static bool declines;

static bool claims(void *self, struct oribi_conn *c)
{
    return c->exchange->head.target.n == 4; /* /own */
}

static bool answer(void *self, struct oribi_conn *c)
{
    struct iovec vec = {(void *)"own\n", 4};
    if (declines)
        return false;
    answers++;
    ok_eq(c->state, ORIBI_CONN_CALL);
    (void)oribi_conn_send(&r, c, &vec, 1, false);
    if (aborts)
        oribi_conn_abort(&r, c, false);
    else
        oribi_conn_finish(&r, c, closes);
    return true;
}

static void begin_claiming(void)
{
    begin();
    r.hooks.claims = claims;
    r.hooks.answer = answer;
    answers = 0;
    closes = aborts = declines = false;
}

static void is_read(int fd, const char *want)
{
    char got[256] = "";
    ssize_t n = read(fd, got, sizeof(got) - 1);
    got[n > 0 ? n : 0] = '\0';
    is_str(got, want);
}

static void test_a_claimed_request_is_answered_in_its_turn(void)
{
    int far;
    begin_claiming();
    struct oribi_conn *c = open_conn(&far);
    send_text(far, OWN);
    turn();
    is_read(far, "own\n");
    ok_eq(answers, 1);
    ok_eq(r.queue_len, 0);
    ok_eq(c->state, ORIBI_CONN_IDLE);
    ok(!oribi_reactor_goes_on(&r));
    close(far);
    end();
}

/* However many requests lie in the buffer, the stack does not grow with them, and others have their turn. */
static void test_pipelined_requests_are_answered_one_a_turn(void)
{
    int far;
    begin_claiming();
    (void)open_conn(&far);
    send_text(far, OWN OWN OWN);
    turn();
    ok_eq(answers, 1);
    ok(oribi_reactor_goes_on(&r)); /* nobody sleeps now */
    oribi_reactor_wait(&r, -1);    /* and so this returns */
    turn();
    ok_eq(answers, 2);
    turn();
    ok_eq(answers, 3);
    ok(!oribi_reactor_goes_on(&r));
    is_read(far, "own\nown\nown\n");
    close(far);
    end();
}

static void test_answers_keep_the_order_of_a_connection(void)
{
    int far;
    begin_claiming();
    struct oribi_conn *c = open_conn(&far);
    send_text(far, OTHER OWN);
    turn();
    ok_eq(answers, 0); /* behind a request that waits for its call */
    ok_eq(r.queue_len, 1);
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
    struct iovec vec = {(void *)"other\n", 6};
    ok(exchange->conn == c);
    ok_eq(oribi_conn_send(&r, c, &vec, 1, false), 0);
    oribi_conn_finish(&r, c, false);
    ok_eq(answers, 0);
    turn();
    ok_eq(answers, 1);
    is_read(far, "other\nown\n");
    close(far);
    end();
}

static void test_what_is_declined_is_queued_for_its_call(void)
{
    int far;
    begin_claiming();
    declines = true;
    struct oribi_conn *c = open_conn(&far);
    send_text(far, OWN);
    turn();
    ok_eq(answers, 0);
    ok_eq(r.queue_len, 1);
    ok_eq(r.claimed_count, 0);
    ok(oribi_reactor_pop(&r)->conn == c);
    oribi_conn_finish(&r, c, true);
    close(far);
    end();
}

static void test_an_answer_may_close_or_abort(void)
{
    int far;
    begin_claiming();
    closes = true;
    (void)open_conn(&far);
    send_text(far, OWN);
    turn();
    is_read(far, "own\n");
    close(far);
    turn();
    ok_eq(r.conn_count, 0);
    aborts = true;
    (void)open_conn(&far);
    send_text(far, OWN);
    turn();
    ok_eq(r.conn_count, 0);
    close(far);
    end();
}

/* Those that are claimed but not answered yet go like others when the reactor ends or their descriptor is lost. */
static void test_claimed_requests_are_forgotten(void)
{
    int far[3];
    begin_claiming();
    struct oribi_conn *conns[3];
    for (int i = 0; i < 3; i++) {
        conns[i] = open_conn(&far[i]);
        send_text(far[i], OWN OWN);
    }
    turn();
    ok_eq(r.claimed_count, 3);
    oribi_conn_abort(&r, conns[1], false);
    ok_eq(r.claimed_count, 2);
    oribi_conn_abort(&r, conns[2], false);
    ok_eq(r.claimed_count, 1);
    turn();
    ok_eq(answers, 4);
    ok_eq(r.claimed_count, 0);
    send_text(far[0], OWN OWN);
    turn();
    end();
    for (int i = 0; i < 3; i++)
        close(far[i]);
}

static void run_all(void)
{
    test_a_claimed_request_is_answered_in_its_turn();
    test_pipelined_requests_are_answered_one_a_turn();
    test_answers_keep_the_order_of_a_connection();
    test_what_is_declined_is_queued_for_its_call();
    test_an_answer_may_close_or_abort();
    test_claimed_requests_are_forgotten();
}

int main(void)
{
    return run_with_both_sources(run_all);
}
