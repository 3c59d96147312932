/* Heads of answers, each whole and cut at every byte. */
#include "http/answer.c"

#include "guard.h"
#include "tap.h"

#include <stdio.h>

enum { ROOM = 8 };

static struct guard arena;
static struct oribi_header headers[ROOM];
static struct oribi_answer answer;

/* The verdict must not depend on how much is there first, nor on what follows. */
static ssize_t read_head(const char *text, bool is_head)
{
    size_t n = strlen(text);
    bool agreed = true;
    answer = (struct oribi_answer){.headers = headers, .room = ROOM};
    ssize_t want = oribi_answer_head(guard_place(&arena, text, n), n, is_head, &answer);
    for (size_t cut = 0; cut < n; cut++) {
        ssize_t got = oribi_answer_head(guard_place(&arena, text, cut), cut, is_head, &answer);
        agreed &= want > 0 && cut >= (size_t)want ? got == want : got == ORIBI_AGAIN || (want < 0 && got == want);
    }
    ok_named(agreed, "every cut agrees");
    (void)oribi_answer_head(guard_place(&arena, text, n), n, is_head, &answer);
    return want;
}

static void test_what_workers_write(void)
{
    ok_eq(read_head("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nContent-Length: 13\r\n\r\nHello", false), 65);
    ok_eq(answer.status, 200);
    ok_eq(answer.count, 2);
    ok_eq(answer.framing, ORIBI_FRAMING_LENGTH);
    ok_eq(answer.content_length, 13);
    ok(!answer.closes && !answer.switches);
    is_bytes(answer.headers[0].name, answer.headers[0].name_len, "content-type", 12);
    is_bytes(answer.headers[0].value, answer.headers[0].value_len, "text/plain", 10);
    ok(read_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false) > 0);
    ok_eq(answer.framing, ORIBI_FRAMING_CHUNKED);
    ok(read_head("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", false) > 0);
    ok_eq(answer.framing, ORIBI_FRAMING_NONE);
    ok(read_head("HTTP/1.1 101\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n", false) > 0);
    ok(answer.switches && !answer.closes);
}

/* RFC 9112 6.3 */
static void test_where_a_body_ends(void)
{
    ok(read_head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true) > 0);
    ok_eq(answer.framing, ORIBI_FRAMING_NONE);
    ok_eq(answer.content_length, 5);
    ok(read_head("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false) > 0);
    ok_eq(answer.framing, ORIBI_FRAMING_NONE);
    ok(read_head("HTTP/1.1 204 No Content\r\n\r\n", false) > 0);
    ok_eq(answer.framing, ORIBI_FRAMING_NONE);
    ok(read_head("HTTP/1.1 200 OK\r\n\r\n", false) > 0);
    ok_eq(answer.framing, ORIBI_FRAMING_CLOSE);
    ok(answer.closes);
    ok(read_head("HTTP/1.1 200 OK\r\nConnection: a, close ,b\r\nContent-Length: 0\r\n\r\n", false) > 0);
    ok(answer.closes);
    ok(read_head("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false) > 0);
    ok(answer.closes);
    ok(read_head("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", false) > 0);
    ok(!answer.closes);
    ok(read_head("HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 7\r\n\r\n", false) > 0);
    ok_eq(answer.content_length, 7);
}

static void test_what_is_no_answer(void)
{
    static const char *const texts[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 2000\r\n\r\n",
        "HTTP/1.1 200 O\x01K\r\n\r\n",
        "hello\r\n\r\n",
        "HTTP/1.1 200 OK\nA: b\n\n",
        "HTTP/1.1 200 OK\r\nA b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: \x7f\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ok_eq(read_head(texts[i], false), ORIBI_EBAD);
        ok(answer.reason != NULL);
    }
}

static void test_maxima(void)
{
    char text[512];
    for (int fields = ROOM; fields <= ROOM + 1; fields++) {
        int n = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n");
        for (int i = 0; i < fields; i++)
            n += snprintf(text + n, sizeof(text) - (size_t)n, "a: b\r\n");
        (void)snprintf(text + n, sizeof(text) - (size_t)n, "\r\n");
        if (fields == ROOM)
            ok_eq(read_head(text, false), n + 2);
        else
            ok_eq(read_head(text, false), ORIBI_ELIMIT);
    }

    static char long_text[ORIBI_RESPONSE_HEAD_BYTES_MAX + 2];
    for (int more = 0; more < 2; more++) {
        size_t n = (size_t)ORIBI_RESPONSE_HEAD_BYTES_MAX + (size_t)more;
        memset(long_text, 'a', n);
        memcpy(long_text, "HTTP/1.1 200 OK\r\nA: ", 20);
        memcpy(long_text + n - 4, "\r\n\r\n", 4);
        answer = (struct oribi_answer){.headers = headers, .room = ROOM};
        ok_eq(oribi_answer_head(long_text, n, false, &answer), more ? ORIBI_ELIMIT : (ssize_t)n);
    }
}

int main(void)
{
    arena = guard_alloc(16384);
    test_what_workers_write();
    test_where_a_body_ends();
    test_what_is_no_answer();
    test_maxima();
    return done_testing();
}
