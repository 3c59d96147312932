/* Clients that shake hands: how many steps of handshakes come before another client's request and its answer. */
#include "frontend/arrive.c"

#include "fakes.h"
#include "tls_client.h"

enum { FLOOD = 5 * STEPS_A_TURN, TLS = 1 };

static struct oribi_tls *tls; /* the test's own reference */
static struct both flood[STEPS_WAITING];

static void begin_flood(int count)
{
    struct sockaddr_storage from = {.ss_family = AF_UNIX};
    for (int i = 0; i < count; i++) {
        begin(&flood[i], tls, "a.test", TLS1_3_VERSION, NULL, NULL);
        oribi_tls_session_destroy(flood[i].server); /* the frontend has its own */
        flood[i].server = NULL;
        ok(SSL_do_handshake(flood[i].client) < 0);
        oribi__arrive(fake_frontend(), TLS, dup(flood[i].fds[0]), &from);
        close(flood[i].fds[0]);
        flood[i].fds[0] = -1;
    }
}

static void end_flood(int count)
{
    for (int i = 0; i < count; i++)
        end(&flood[i]);
}

static void begin_frontend(void)
{
    static struct made made;
    if (!made.key_len)
        made = make("DNS:a.test", EVP_PKEY_EC, 30);
    fake_begin((struct fake_setup){0});
    struct oribi_tls_certificate certificate = pair(&made, &made);
    tls = contexts(&certificate, 1, false);
    struct oribi_frontend_listener *listener = &fake_frontend()->config->listeners[TLS];
    *listener = fake_frontend()->config->listeners[0];
    listener->tls = true;
    listener->contexts = tls;
}

static void end_frontend(void)
{
    oribi_tls_release(tls);
    fake_end();
}

/* Clients of the flood that have an answer to their first message. */
static int answered(int count)
{
    char byte;
    int n = 0;
    for (int i = 0; i < count; i++)
        n += recv(flood[i].fds[1], &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    return n;
}

static void test_a_few_steps_come_before_a_neighbours_answer(void)
{
    begin_frontend();
    int neighbour = fake_h1();
    begin_flood(FLOOD);
    fake_says(neighbour, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_turn();
    int far = fake_take(0);
    ok(far >= 0);
    ok_eq(answered(FLOOD), STEPS_A_TURN);
    fake_answers(far, FAKE_OK);
    fake_turn();
    is_str(fake_hears(neighbour), FAKE_OK);
    ok_eq(answered(FLOOD), 2 * STEPS_A_TURN);
    ok_eq(fake_wait_ms(), 0);
    for (int i = 0; i < 3; i++)
        fake_turn();
    ok_eq(answered(FLOOD), FLOOD);
    ok(fake_wait_ms() != 0);
    end_flood(FLOOD);
    end_frontend();
}

static void test_who_has_begun_is_done_first(void)
{
    begin_frontend();
    begin_flood(FLOOD);
    fake_turn();
    ok_eq(answered(FLOOD), STEPS_A_TURN);
    ok_eq(SSL_do_handshake(flood[0].client), 1);
    fake_turn();
    ok_eq(fake_gauge(FAKE_CONNS_H1), 1);
    ok_eq(answered(FLOOD), STEPS_A_TURN - 1 + STEPS_A_TURN - 1); /* but for the first, who has read its answer */
    end_flood(FLOOD);
    end_frontend();
}

/* Their third step waits behind the first of others. */
static void test_who_never_ends_comes_last(void)
{
    begin_frontend();
    begin_flood(FLOOD);
    fake_turn();
    for (int i = 0; i < STEPS_A_TURN; i++)
        ok_eq(send(flood[i].fds[1], "\x16\x03\x03", 3, 0), 3);
    fake_turn();
    ok_eq(answered(FLOOD), STEPS_A_TURN);
    for (int i = 0; i < STEPS_A_TURN; i++)
        ok_eq(send(flood[i].fds[1], "\x01", 1, 0), 1);
    fake_turn();
    ok_eq(answered(FLOOD), 2 * STEPS_A_TURN);
    end_flood(FLOOD);
    end_frontend();
}

static void test_clients_beyond_those_that_wait_stay_in_the_kernel(void)
{
    begin_frontend();
    ok(!oribi__arrive_is_full(fake_frontend(), TLS));
    begin_flood(STEPS_WAITING);
    ok(oribi__arrive_is_full(fake_frontend(), TLS));
    ok(!oribi__arrive_is_full(fake_frontend(), 0));
    fake_turn();
    ok(!oribi__arrive_is_full(fake_frontend(), TLS));
    end_flood(STEPS_WAITING);
    fake_settle(); /* they have gone, some of them before their turn */
    ok_eq(fake_frontend()->arrival_count, 0);
    ok(!fake_frontend()->arrivals->shakes_first && !fake_frontend()->arrivals->shakes_last);
    ok_eq(fake_frontend()->arrivals->shakes_count, 0);
    end_frontend();
}

static void test_one_whose_time_is_over_leaves_the_list(void)
{
    begin_frontend();
    begin_flood(FLOOD);
    fake_passes_ms(fake_options()->head_timeout_ms + 1);
    fake_turn();
    ok_eq(fake_frontend()->arrival_count, 0);
    ok_eq(fake_frontend()->arrivals->shakes_count, 0);
    ok_eq(answered(FLOOD), 0);
    end_flood(FLOOD);
    end_frontend();
}

int main(void)
{
    test_a_few_steps_come_before_a_neighbours_answer();
    test_who_has_begun_is_done_first();
    test_who_never_ends_comes_last();
    test_clients_beyond_those_that_wait_stay_in_the_kernel();
    test_one_whose_time_is_over_leaves_the_list();
    return done_testing();
}
