/* Every allocation that may fail fails once: a conversation then ends in one of the ways that it has for that, and
 * nothing is lost. Small ones of our own end the process (base/mem.h) and are left out here. */
#include "failing.h"

#include "h2_frame.h"
#include "h2_lab.h"
#include "tap.h"

static struct lab lab;
static struct oribi_buf bytes;
static uint32_t refused; /* streams, for want of memory */
static uint32_t ended;   /* connections */

static void send_lines(const char *const *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        frame_put_str(&bytes, lines[i]);
    (void)lab_feed(&lab, bytes.p, bytes.len);
    bytes.len = 0;
}

static const struct lab_stream *stream_of(uint32_t id)
{
    for (size_t i = 0; i < lab.stream_count; i++)
        if (lab.streams[i].id == id && lab.streams[i].stream)
            return &lab.streams[i];
    return NULL;
}

static void answer(uint32_t id)
{
    static const struct oribi_field fields[] = {{"x-one", "two", 3, 5, 0}, {"x-three", "four", 4, 7, 0}};
    const struct lab_stream *mine = stream_of(id);
    if (!mine)
        return;
    (void)oribi_h2_interim(mine->stream, 103, fields, 1);
    (void)oribi_h2_trailers(mine->stream, fields, 2);
    if (oribi_h2_answer(mine->stream, 200, fields, 2, false) == 0)
        oribi_h2_ready(mine->stream);
}

/* Requests with all that a session keeps, sleep in between; true when no allocation failed any more. */
static bool converse(void)
{
    static const char *const hello[] = {"preface", "SETTINGS 0 u16:1 u32:100", "SETTINGS 0 ACK"};
    static const char *const calls[] = {
        "HEADERS 1 END_HEADERS post indexed:x-table=\\{300*a} field:cookie=a=b field:cookie=c=d field:content-length=3",
        "DATA 1 END_STREAM text:abc",
        "HEADERS 3 END_HEADERS post field:x=\\{5000*b} hex:be",
        "HEADERS 3 END_STREAM END_HEADERS field:x-sum=1",
        "HEADERS 5 END_STREAM END_HEADERS get",
    };
    static const char *const again[] = {"HEADERS 7 END_STREAM END_HEADERS get hex:be"};
    asked = 0;
    lab_init(&lab);
    lab.limits.sleeps = true;
    lab.manner = LAB_HOLDS;
    lab.now_ms = 1000;
    lab.h2 = oribi_h2_create(&lab.limits, &lab_events, &lab, lab.now_ms);
    if (!lab.h2)
        return false;
    if (nghttp2_hd_inflate_new(&lab.inflater) != 0)
        exit(2);
    send_lines(hello, 3);
    send_lines(calls, 5);
    for (uint32_t id = 1; id <= 5; id += 2)
        answer(id);
    lab_drain(&lab, 1000);
    for (uint32_t id = 1; id <= 5; id += 2)
        if (stream_of(id))
            lab_release(&lab, id);
    lab_drain(&lab, 1000);
    (void)oribi_h2_sleep(lab.h2);
    send_lines(again, 1);
    answer(7);
    lab_drain(&lab, 1000);
    const char *reason;
    uint32_t code = oribi_h2_error(lab.h2, &reason);
    if (code != ORIBI_H2_NO_ERROR && code != ORIBI_H2_INTERNAL_ERROR) {
        diag("allocation %u: ended with %u, %s", fail_at, code, reason);
        exit(1);
    }
    oribi_buf_append(&lab.frames, "", 1);
    ended += code != ORIBI_H2_NO_ERROR;
    refused += strstr(lab.frames.p, "REFUSED_STREAM") != NULL;
    if (strstr(lab.frames.p, "undecodable"))
        exit(1);
    bool whole = asked < fail_at;
    lab_deinit(&lab);
    return whole;
}

int main(void)
{
    int64_t before = oribi_mem_blocks();
    do {
        fail_at++;
    } while (!converse() && fail_at < 10000);
    oribi_buf_deinit(&bytes);
    diag("%u allocations failed: %u connections ended, %u streams refused", fail_at - 1, ended, refused);
    ok(fail_at > 30 && fail_at < 10000);
    ok(ended > 5);
    ok(refused > 0);
    ok_eq(oribi_mem_blocks(), before);
    return done_testing();
}
