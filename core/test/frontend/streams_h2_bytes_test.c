/* Bytes of answers between a worker and a client of HTTP/2: memory, files, and a worker that waits. */
#include "frontend/streams_h2.c"

#include "fake_stream.h"
#include "fakes.h"
#include "words.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define ENDLESS "HTTP/1.1 200 OK\r\n\r\n"

enum { WINDOW = 1000, STEP = 16 * 1024 };

/* A client whose window takes WINDOW bytes of each stream, and its request, which worker 0 has. */
static int32_t ask(int *client, int *far)
{
    *client = fake_h2();
    fake_window(*client, WINDOW);
    fake_settle();
    (void)fake_frames(*client);
    int32_t id = fake_asks(*client, (struct fake_ask){0});
    fake_settle();
    *far = fake_take(0);
    return id;
}

/* The worker sends n bytes as long as the frontend takes them; returns how many. */
static size_t floods(int far, size_t n)
{
    size_t sent = 0;
    size_t part = 1;
    while (sent < n && part) {
        part = fake_floods(far, n - sent < STEP ? n - sent : STEP);
        sent += part;
        fake_settle();
    }
    return sent;
}

static void head(int far, size_t length)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", length);
    fake_replies(far, text);
}

static int64_t all_of(const char *frames, int32_t stream)
{
    char name[16];
    int64_t n = 0;
    (void)snprintf(name, sizeof(name), "D%d+", stream);
    for (const char *at = frames; (at = strstr(at, name)) != NULL; at++)
        n += strtoll(at + strlen(name), NULL, 10);
    return n;
}

/* --- answers without a length --- */

static void test_a_worker_waits_above_the_high_mark_until_the_low_one(void)
{
    int client;
    int far;
    fake_begin((struct fake_setup){0});
    int32_t id = ask(&client, &far);
    fake_replies(far, ENDLESS);
    ok_eq(floods(far, WINDOW + FAKE_HIGH), WINDOW + FAKE_HIGH);
    ok_eq(fake_pending_of(client, id), FAKE_HIGH);
    ok_eq(fake_gauge(FAKE_BLOCKED), 0);
    ok_eq(floods(far, 1), 1);
    ok_eq(fake_pending_of(client, id), FAKE_HIGH + 1);
    ok_eq(fake_gauge(FAKE_BLOCKED), 1);
    ok_eq(floods(far, 100), 100); /* the socket takes it, and the frontend does not */
    ok_eq(fake_pending_of(client, id), FAKE_HIGH + 1);
    fake_opens(client, id, FAKE_HIGH - FAKE_LOW);
    fake_settle();
    ok_eq(fake_pending_of(client, id), FAKE_LOW + 1);
    ok_eq(fake_gauge(FAKE_BLOCKED), 1);
    fake_opens(client, id, 1);
    fake_settle();
    ok_eq(fake_gauge(FAKE_BLOCKED), 0);
    ok_eq(fake_pending_of(client, id), FAKE_LOW + 100);
    fake_opens(client, id, 1024 * 1024);
    fake_far_closes(far);
    fake_settle();
    const char *frames = fake_frames(client);
    ok_eq(all_of(frames, id), WINDOW + FAKE_HIGH + 1 + 100);
    ok(strstr(frames, "E1 ") != NULL);
    ok_eq(fake_gauge(FAKE_FILE), 0);
    fake_end();
}

static void test_a_worker_dies_while_it_waits(void)
{
    int client;
    int far;
    fake_begin((struct fake_setup){0});
    int32_t id = ask(&client, &far);
    fake_replies(far, CHUNKED "100000\r\n"); /* a chunk of 1 MiB */
    (void)floods(far, WINDOW + FAKE_HIGH + 1);
    ok_eq(fake_gauge(FAKE_BLOCKED), 1);
    fake_far_dies(far);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    fake_opens(client, id, 1024 * 1024);
    fake_settle();
    const char *frames = fake_frames(client);
    ok(strstr(frames, "R1=2 ") != NULL && !strstr(frames, "E1 "));
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_MEMORY), 0);
    fake_end();
}

static void test_a_client_goes_while_its_worker_waits(void)
{
    for (int whole = 0; whole < 2; whole++) {
        int client;
        int far;
        fake_begin((struct fake_setup){0});
        int32_t id = ask(&client, &far);
        (void)fake_asked(far);
        fake_replies(far, ENDLESS);
        (void)floods(far, WINDOW + FAKE_HIGH + 1);
        ok_eq(fake_gauge(FAKE_BLOCKED), 1);
        if (whole)
            fake_hangs_up(client);
        else
            fake_resets(client, id, 8);
        fake_settle();
        ok_eq(fake_gauge(FAKE_BLOCKED), 0);
        ok_eq(fake_gauge(FAKE_STREAMS), 0);
        ok_eq(fake_gauge(FAKE_MEMORY), 0);
        ok(fake_is_over(far));
        ok_eq(fake_gauge(FAKE_CLIENTS_H2), 1 - whole);
        fake_end();
    }
}

/* --- answers with a length --- */

static void test_a_worker_of_an_answer_with_a_length_waits_for_nobody(void)
{
    int client;
    int far;
    fake_begin((struct fake_setup){0});
    int32_t id = ask(&client, &far);
    head(far, 2 * 1024 * 1024);
    ok_eq(floods(far, 2 * 1024 * 1024), 2 * 1024 * 1024);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_BLOCKED), 0);
    ok_eq(fake_pending_of(client, id), 2 * 1024 * 1024 - WINDOW);
    ok(fake_gauge(FAKE_FILE) > 1024 * 1024);
    ok(fake_gauge(FAKE_MEMORY) < 2 * FAKE_HIGH);
    fake_opens(client, id, 4 * 1024 * 1024);
    fake_settle();
    const char *frames = fake_frames(client);
    ok_eq(all_of(frames, id), 2 * 1024 * 1024);
    ok(strstr(frames, "E1 ") != NULL);
    ok_eq(fake_gauge(FAKE_FILE), 0);
    ok_eq(fake_gauge(FAKE_MEMORY), 0);
    fake_end();
}

static void test_a_file_is_used_beyond_the_high_mark(void)
{
    for (int over = 0; over < 2; over++) {
        int client;
        int far;
        fake_begin((struct fake_setup){0});
        int32_t id = ask(&client, &far);
        head(far, (size_t)(FAKE_HIGH + over));
        ok_eq(floods(far, (size_t)(FAKE_HIGH + over)), FAKE_HIGH + over);
        ok_eq(fake_gauge(FAKE_OUT), 0);
        ok_eq(fake_gauge(FAKE_FILE) > 0, over);
        fake_opens(client, id, 4 * 1024 * 1024);
        fake_settle();
        ok_eq(all_of(fake_frames(client), id), FAKE_HIGH + over);
        fake_end();
    }
}

static void test_bytes_come_in_their_order_from_memory_and_file(void)
{
    for (int64_t memory = 0; memory < 3; memory++) {
        int client;
        int far;
        fake_begin((struct fake_setup){.memory_max = memory * 20 * 1000});
        int32_t id = ask(&client, &far);
        head(far, 300 * 1000);
        fake_hashes(client);
        uint32_t hash = 0;
        for (int i = 0; i < 300; i++) {
            char text[1001];
            for (int k = 0; k < 1000; k++)
                text[k] = (char)('a' + (i * 7 + k) % 26);
            text[1000] = '\0';
            for (int k = 0; k < 1000; k++)
                hash = hash * 31 + (uint8_t)text[k];
            (void)fake_tries_answer(far, text);
            fake_settle();
            if (i % 50 == 49)
                fake_opens(client, id, 20 * 1000);
            fake_settle();
        }
        ok_eq(fake_gauge(FAKE_OUT), 0);
        fake_opens(client, id, 1024 * 1024);
        fake_settle();
        ok_eq(all_of(fake_frames(client), id), 300 * 1000);
        ok_eq(fake_hash(client), hash);
        fake_end();
    }
}

/* --- budgets --- */

static void test_memory_of_all_answers_has_a_maximum(void)
{
    int client;
    int far;
    fake_begin((struct fake_setup){.memory_max = 50 * 1000});
    int32_t id = ask(&client, &far);
    fake_replies(far, ENDLESS);
    ok_eq(floods(far, 200 * 1000), 200 * 1000);
    ok(fake_gauge(FAKE_MEMORY) <= 50 * 1000 + 64 * 1024);
    ok(fake_gauge(FAKE_FILE) > 100 * 1000);
    ok_eq(fake_pending_of(client, id), 200 * 1000 - WINDOW);
    fake_opens(client, id, 100 * 1000);
    fake_settle();
    ok_eq(fake_pending_of(client, id), 100 * 1000 - WINDOW);
    ok_eq(fake_gauge(FAKE_MEMORY), 0); /* the rest is in the file */
    fake_opens(client, id, 100 * 1000 - WINDOW);
    fake_settle();
    ok_eq(all_of(fake_frames(client), id), 200 * 1000);
    ok_eq(fake_gauge(FAKE_FILE), 0); /* a stream without an end keeps no file */
    ok_eq(floods(far, 10), 10);
    ok_eq(fake_pending_of(client, id), 10);
    ok_eq(fake_gauge(FAKE_FILE), 0);
    fake_opens(client, id, 10);
    fake_settle();
    ok_eq(all_of(fake_frames(client), id), 10);
    fake_end();
}

/* Without room in a file the worker waits for the client, as far as there is memory. */
static void test_a_worker_waits_where_no_file_has_room(void)
{
    int client;
    int far;
    fake_begin((struct fake_setup){.file_max = 300 * 1000});
    int32_t id = ask(&client, &far);
    head(far, 2 * 1024 * 1024);
    size_t sent = 0;
    int64_t most = 0;
    for (int i = 0; i < 128 && fake_gauge(FAKE_BLOCKED) == 0; i++)
        sent += floods(far, STEP);
    ok_eq(fake_gauge(FAKE_BLOCKED), 1);
    ok(fake_gauge(FAKE_FILE) > 0);
    ok(sent > 300 * 1000 && sent < 1024 * 1024);
    for (int i = 0; i < 400 && fake_gauge(FAKE_OUT); i++) {
        fake_opens(client, id, 32 * 1024);
        fake_settle();
        sent += floods(far, sent < 2 * 1024 * 1024 ? 2 * 1024 * 1024 - sent : 0);
        most = fake_gauge(FAKE_MEMORY) > most ? fake_gauge(FAKE_MEMORY) : most;
    }
    ok(most < 4 * FAKE_HIGH); /* what the client has taken is not kept */
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_opens(client, id, 4 * 1024 * 1024);
    fake_settle();
    const char *frames = fake_frames(client);
    ok_eq(all_of(frames, id), 2 * 1024 * 1024);
    ok(strstr(frames, "E1 ") != NULL);
    ok_eq(fake_gauge(FAKE_FILE), 0);
    ok_eq(fake_gauge(FAKE_MEMORY), 0);
    fake_end();
}

static void test_an_answer_that_has_room_nowhere_is_reset(void)
{
    int client;
    int far;
    fake_begin((struct fake_setup){.memory_max = 30 * 1000, .file_max = 30 * 1000});
    int32_t id = ask(&client, &far);
    (void)fake_logged();
    head(far, 2 * 1024 * 1024);
    (void)floods(far, 1024 * 1024);
    const char *frames = fake_frames(client);
    ok(strstr(frames, "R1=2 ") != NULL);
    ok(all_of(frames, id) <= WINDOW);
    ok(strstr(fake_logged(), "no room for the rest: buffers_file_max is used up: the answer breaks off") != NULL);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_FILE), 0);
    ok_eq(fake_gauge(FAKE_MEMORY), 0);
    fake_end();
}

/* Why the disk takes no more is known when memory takes no more either, whatever the system has refused meanwhile. */
static void test_the_reason_of_a_full_disk_is_told_when_the_answer_breaks_off(void)
{
    int client;
    int far;
    struct rlimit before;
    char words[256];
    fake_begin((struct fake_setup){.memory_max = 100 * 1000});
    ask(&client, &far);
    (void)fake_logged();
    ok(getrlimit(RLIMIT_FSIZE, &before) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    struct rlimit small = {64 * 1024, before.rlim_max};
    ok(setrlimit(RLIMIT_FSIZE, &small) == 0);
    head(far, 2 * 1024 * 1024);
    for (int i = 0; i < 16; i++) {
        char byte;
        (void)floods(far, STEP);
        ok_named(oribi_os_read(-1, &byte, 1) < 0, "another call fails, with words of its own");
    }
    ok(setrlimit(RLIMIT_FSIZE, &before) == 0);
    (void)snprintf(words, sizeof(words), ": %s: the answer breaks off", words_of(EFBIG));
    const char *logged = fake_logged();
    ok(strstr(logged, "the rest cannot be stored in ") != NULL && strstr(logged, words) != NULL);
    ok(strstr(fake_frames(client), "R1=2 ") != NULL);
    fake_end();
}

/* --- the functions by themselves --- */

static void test_nothing_is_pulled_where_no_bytes_may_go(void)
{
    int client;
    int far;
    bool last = true;
    char bytes[8] = "";
    fake_begin((struct fake_setup){0});
    int32_t id = ask(&client, &far);
    struct oribi__stream *stream = fake_stream(client, id);
    fake_replies(far, ENDLESS);
    ok_eq(stream_pull(stream->client, stream->h2, bytes, 0, &last), 0);
    ok(!last);
    ok_eq(stream_keep(stream, ORIBI_SLICE("hello")), 0);
    ok_eq(oribi__stream_pending(stream), 5);
    ok_eq(stream_pull(stream->client, stream->h2, bytes, 0, &last), 5);
    ok_eq(oribi__stream_pending(stream), 5);
    ok_eq(stream_pull(stream->client, stream->h2, bytes, 2, &last), 2);
    ok(!last && memcmp(bytes, "he", 2) == 0);
    ok_eq(stream_pull(stream->client, stream->h2, bytes, 8, &last), 3);
    ok(!last && memcmp(bytes, "llo", 3) == 0);
    ok_eq(stream_keep(stream, oribi_slice("", 0)), 0);
    ok_eq(oribi__stream_pending(stream), 0);
    fake_end();
}

static void test_a_file_that_has_lost_its_bytes_resets_the_stream(void)
{
    int client;
    int far;
    fake_begin((struct fake_setup){0});
    int32_t id = ask(&client, &far);
    head(far, 1024 * 1024);
    (void)floods(far, 1024 * 1024);
    (void)fake_logged();
    ok(ftruncate(fake_stream(client, id)->file.fd, WINDOW) == 0);
    fake_opens(client, id, 4 * 1024 * 1024);
    fake_settle();
    const char *frames = fake_frames(client);
    ok(strstr(frames, "R1=2 ") != NULL && !strstr(frames, "E1 "));
    ok(strstr(fake_logged(), "cannot be read: it has become shorter") != NULL);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_FILE), 0);
    fake_end();
}

int main(void)
{
    test_a_worker_waits_above_the_high_mark_until_the_low_one();
    test_a_worker_dies_while_it_waits();
    test_a_client_goes_while_its_worker_waits();
    test_a_worker_of_an_answer_with_a_length_waits_for_nobody();
    test_a_file_is_used_beyond_the_high_mark();
    test_bytes_come_in_their_order_from_memory_and_file();
    test_memory_of_all_answers_has_a_maximum();
    test_a_worker_waits_where_no_file_has_room();
    test_an_answer_that_has_room_nowhere_is_reset();
    test_the_reason_of_a_full_disk_is_told_when_the_answer_breaks_off();
    test_nothing_is_pulled_where_no_bytes_may_go();
    test_a_file_that_has_lost_its_bytes_resets_the_stream();
    return done_testing();
}
