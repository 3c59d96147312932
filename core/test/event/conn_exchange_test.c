/* How an exchange ends: lingering behind the last answer. */
#include "event/conn_exchange.c"

#include "base/clock_ahead.h"
#include "event/reactor_lab.h"

/* A connection that was refused, and reads the rest of what its client sends. */
static struct oribi_conn *lingering(int *far)
{
    char answer[512];
    struct oribi_conn *c = open_conn(far);
    send_text(*far, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n");
    turn();
    ok_eq(refused_status, 400);
    is_str(refused_as, "framing");
    ok_eq(c->state, ORIBI_CONN_LINGER);
    ok(read(*far, answer, sizeof(answer)) > 0);
    ok_eq(read(*far, answer, sizeof(answer)), 0);
    return c;
}

/* Sends so many bytes, as fast as they are read; returns how many were taken. */
static int64_t pour(int far, int64_t bytes)
{
    static char block[64 * 1024];
    int64_t taken = 0;
    while (taken < bytes && r.conn_count > 0) {
        int64_t left = bytes - taken;
        ssize_t n = send(far, block, left < (int64_t)sizeof(block) ? (size_t)left : sizeof(block), MSG_NOSIGNAL);
        taken += n > 0 ? n : 0;
        turn();
    }
    for (int i = 0; i < 16; i++)
        turn();
    return taken;
}

static void test_lingering_outlives_an_upload_of_megabytes(void)
{
    begin();
    int far;
    (void)lingering(&far);
    ok_eq(pour(far, 20 << 20), 20 << 20);
    ok_eq(r.conn_count, 1);
    (void)shutdown(far, SHUT_WR);
    turn();
    ok_eq(r.conn_count, 0);
    close(far);
    end();
}

static void test_lingering_ends_with_silence(void)
{
    begin();
    int far;
    (void)lingering(&far);
    for (int i = 0; i < 3; i++) { /* each byte gives it another while */
        pass_ms(ORIBI_LINGER_SILENCE_MS_MAX - 200);
        send_text(far, "x");
        turn();
        turn();
        ok_eq(r.conn_count, 1);
    }
    pass_ms(ORIBI_LINGER_SILENCE_MS_MAX);
    turn();
    turn();
    ok_eq(r.conn_count, 0);
    close(far);
    end();
}

static void test_lingering_ends_in_time_whatever_comes(void)
{
    begin();
    int far;
    (void)lingering(&far);
    int64_t passed = 0;
    while (passed + 1000 < ORIBI_LINGER_MS_MAX - 500) {
        pass_ms(1000);
        passed += 1000;
        send_text(far, "x");
        turn();
        turn();
    }
    ok_eq(r.conn_count, 1);
    pass_ms(ORIBI_LINGER_MS_MAX - passed);
    send_text(far, "x");
    turn();
    turn();
    ok_eq(r.conn_count, 0);
    close(far);
    end();
}

static void test_lingering_takes_so_many_bytes_and_no_more(void)
{
    begin();
    int far;
    (void)lingering(&far);
    ok_eq(pour(far, ORIBI_LINGER_BYTES_MAX), ORIBI_LINGER_BYTES_MAX);
    ok_eq(r.conn_count, 1);
    send_text(far, "x");
    turn();
    turn();
    ok_eq(r.conn_count, 0);
    close(far);
    end();
}

static void run_all(void)
{
    test_lingering_outlives_an_upload_of_megabytes();
    test_lingering_ends_with_silence();
    test_lingering_ends_in_time_whatever_comes();
    test_lingering_takes_so_many_bytes_and_no_more();
}

int main(void)
{
    return run_with_both_sources(run_all);
}
