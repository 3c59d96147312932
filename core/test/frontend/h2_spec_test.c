/* Runs spec/http2: frames of a client, what the application sees and what is sent. Every case runs whole and cut into
 * pieces of several lengths, with equal results. */
#include "frontend/h2.c"

#include "h2_frame.h"
#include "h2_lab.h"
#include "http/case_folder.h"

static struct lab lab;
static int feed_result;

static void set_limit(struct oribi_slice raw)
{
    struct oribi_slice word = frame_next_word(&raw);
    int64_t value = (int64_t)frame_number(raw);
    if (frame_is(word, "streams_max"))
        lab.limits.streams_max = (uint32_t)value;
    else if (frame_is(word, "left_max"))
        lab.limits.left_max = (uint32_t)value;
    else if (frame_is(word, "trusted"))
        lab.limits.trusted = value != 0;
    else if (frame_is(word, "stream_window"))
        lab.limits.stream_window = (uint32_t)value;
    else if (frame_is(word, "connection_window"))
        lab.limits.connection_window = (uint32_t)value;
    else if (frame_is(word, "head_bytes_max"))
        lab.limits.http.head_bytes_max = (uint32_t)value;
    else if (frame_is(word, "fields_max"))
        lab.limits.http.fields_max = (uint32_t)value;
    else if (frame_is(word, "target_bytes_max"))
        lab.limits.http.target_bytes_max = (uint32_t)value;
    else if (frame_is(word, "body_bytes_max"))
        lab.limits.http.body_bytes_max = value;
    else if (frame_is(word, "resets_max"))
        lab.limits.resets_max = (uint32_t)value;
    else if (frame_is(word, "resets_per_s"))
        lab.limits.resets_per_s = (uint32_t)value;
    else if (frame_is(word, "frames_max"))
        lab.limits.frames_max = (uint32_t)value;
    else if (frame_is(word, "frames_per_s"))
        lab.limits.frames_per_s = (uint32_t)value;
    else if (frame_is(word, "write_timeout_ms"))
        lab.limits.write_timeout_ms = value;
    else if (frame_is(word, "head_timeout_ms"))
        lab.limits.head_timeout_ms = value;
    else if (frame_is(word, "table_bytes"))
        lab.limits.table_bytes = (uint32_t)value;
    else if (frame_is(word, "connect_allow"))
        lab.limits.http.connect_allow = value != 0;
    else if (frame_is(word, "connects_sockets"))
        lab.limits.connects_sockets = value != 0;
    else if (frame_is(word, "sleeps"))
        lab.limits.sleeps = value != 0;
    else
        complain("limit");
}

static struct oribi_buf sent;

static void feed_sent(size_t piece)
{
    for (size_t at = 0; at < sent.len; at += piece) {
        size_t n = sent.len - at < piece ? sent.len - at : piece;
        char *copy = oribi_mem_alloc(1, n); /* its end is where a sanitizer sees a read behind it */
        memcpy(copy, sent.p + at, n);
        feed_result = lab_feed(&lab, copy, n);
        oribi_mem_free(copy);
    }
    sent.len = 0;
}

/* Carries out a step of the application or of the clock. */
static void act(struct oribi_slice raw)
{
    struct oribi_slice verb = frame_next_word(&raw);
    struct oribi_slice first = frame_next_word(&raw);
    uint32_t id = (uint32_t)frame_number(first);
    if (frame_is(verb, "time")) {
        int64_t deadline = oribi_h2_deadline(lab.h2);
        lab.now_ms += (int64_t)id;
        oribi_h2_tick(lab.h2, lab.now_ms);
        if ((oribi_h2_output(lab.h2, 0, lab.now_ms).n > 0) != (deadline <= lab.now_ms))
            complain("deadline");
    } else if (frame_is(verb, "answer")) {
        struct oribi_slice status = frame_next_word(&raw);
        if (lab_answer(&lab, id, (int)frame_number(status), raw.n ? frame_number(raw) : SIZE_MAX) != 0)
            complain("answer");
    } else if (frame_is(verb, "reset"))
        oribi_h2_reset(lab_find(&lab, id)->stream, (uint32_t)frame_number(raw));
    else if (frame_is(verb, "release"))
        lab_release(&lab, id);
    else if (frame_is(verb, "stored"))
        oribi_h2_stored(lab_find(&lab, id)->stream, frame_number(raw));
    else if (frame_is(verb, "shutdown"))
        oribi_h2_shutdown(lab.h2, lab.now_ms);
    else if (frame_is(verb, "sleep")) {
        if (!oribi_h2_sleep(lab.h2))
            complain("sleep");
    } else if (frame_is(verb, "drain"))
        lab_drain(&lab, 1);
    else
        complain("do");
}

static void compare(const char *key, const struct oribi_buf *got, size_t piece)
{
    struct oribi_buf want = {0};
    if (!case_has(&file, key))
        return;
    for (size_t i = 0; i < file.count; i++) {
        struct oribi_slice raw = file.lines[i].raw;
        if (strcmp(file.lines[i].key, key) == 0 && !frame_is(raw, "none"))
            oribi_buf_print(&want, "%.*s\n", (int)raw.n, raw.p);
    }
    if (want.len != got->len || (want.len && memcmp(want.p, got->p, want.len) != 0)) {
        complain(key);
        diag("cut every %zu bytes, got", piece);
        for (size_t at = 0; at < got->len;) {
            const char *end = memchr(got->p + at, '\n', got->len - at);
            diag("  %s: %.*s", key, (int)(end - got->p - (ptrdiff_t)at), got->p + at);
            at = (size_t)(end - got->p) + 1;
        }
    }
    oribi_buf_deinit(&want);
}

static void start(void)
{
    frame_put_str(&sent, "preface");
    frame_put_str(&sent, "SETTINGS 0");
    frame_put_str(&sent, "SETTINGS 0 ACK");
    lab.skip_frames++;
}

static void run_cut(size_t piece)
{
    lab_init(&lab);
    lab.stores = !case_is(&file, "stores", "no");
    lab.manner = case_is(&file, "application", "holds") ? LAB_HOLDS : LAB_ANSWERS;
    for (size_t i = 0; i < file.count; i++)
        if (strcmp(file.lines[i].key, "limit") == 0)
            set_limit(file.lines[i].raw);
    lab_begin(&lab);
    if (lab.limits.connection_window == 65535)
        lab.skip_frames = 1;
    feed_result = 0;
    if (!case_is(&file, "start", "no"))
        start();
    for (size_t i = 0; i < file.count; i++) {
        if (strcmp(file.lines[i].key, "send") == 0)
            frame_put(&sent, file.lines[i].raw);
        if (strcmp(file.lines[i].key, "times") == 0) { /* the frame before it so often in all */
            for (uint64_t n = frame_number(file.lines[i].raw); n > 1; n--)
                frame_put(&sent, file.lines[i - 1].raw);
        }
        if (strcmp(file.lines[i].key, "do") == 0) {
            feed_sent(piece ? piece : sent.len + 1);
            lab_drain(&lab, 1 << 20);
            act(file.lines[i].raw);
        }
    }
    feed_sent(piece ? piece : sent.len + 1);
    lab_drain(&lab, 1 << 20);
    compare("frame", &lab.frames, piece);
    compare("event", &lab.events, piece);
    if (case_has(&file, "malformed") && (!lab.malformed || !case_is(&file, "malformed", lab.malformed))) {
        complain("malformed");
        diag("got %s", lab.malformed ? lab.malformed : "nothing");
    }
    if (case_has(&file, "over") && case_is(&file, "over", "yes") != oribi_h2_is_over(lab.h2))
        complain("over");
    if (oribi_h2_is_over(lab.h2) != (feed_result == ORIBI_ECLOSED) && !case_has(&file, "do"))
        complain("result of feed");
    if (case_has(&file, "streams") && case_number(&file, "streams", 0) != oribi_h2_streams(lab.h2)) {
        complain("streams");
        diag("got %u", oribi_h2_streams(lab.h2));
    }
    lab_deinit(&lab);
}

static void run_case(void)
{
    static const size_t pieces[] = {0, 1, 2, 3, 5, 9, 13, 100};
    int64_t blocks = 0;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]) && good; i++) {
        run_cut(pieces[i]);
        oribi_buf_deinit(&sent);
        if (i == 0)
            blocks = oribi_mem_blocks();
        else if (oribi_mem_blocks() != blocks)
            complain("memory");
    }
}

int main(void)
{
    run_case_folder("http2", run_case);
    return done_testing();
}
