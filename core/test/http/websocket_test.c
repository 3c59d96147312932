/* Frames of WebSocket: the cases of spec/websocket on every level, cut in every way, and what no case can say. */
#include "http/websocket.c"

#include "case_folder.h"
#include "tap.h"
#include "websocket_case.h"

enum { INPUT_MAX = 17 * 1024 * 1024 };

/* Inputs up to SHORT bytes are cut everywhere in several ways, up to LONG everywhere, longer ones at some places; those
 * over VERY_LONG are not fed byte by byte, and only at this processor's level. */
enum { SHORT = 200, LONG = 2000, VERY_LONG = 400 * 1024 };

static const uint64_t message_bytes_max = 16 * 1024 * 1024;

static struct guard arena;

/* ---- cases ---- */

static void check_equal(const char *key, const struct oribi_buf *got, const struct oribi_buf *want)
{
    if (oribi_slice_equal(oribi_slice(got->p, got->len), oribi_slice(want->p, want->len)))
        return;
    complain(key);
    tap_print_bytes_("got ", got->p, got->len);
    tap_print_bytes_("want", want->p, want->len);
}

static enum oribi_websocket_role role_of_case(void)
{
    return case_is(&file, "role", "client") ? ORIBI_WEBSOCKET_CLIENT : ORIBI_WEBSOCKET_SERVER;
}

/* The maximum of the case, from `limit: message_bytes_max N`. */
static uint64_t limit_of_case(void)
{
    static const char name[] = "message_bytes_max ";
    struct oribi_slice limit = case_raw(&file, "limit");
    if (!limit.p)
        return message_bytes_max;
    if (limit.n < sizeof(name) || memcmp(limit.p, name, sizeof(name) - 1) != 0)
        websocket_bad_word(limit);
    return strtoull(limit.p + sizeof(name) - 1, NULL, 10);
}

static void check_told(const struct told *told)
{
    struct oribi_buf events = {0};
    struct oribi_buf open = {0};
    struct oribi_slice line = case_raw(&file, "open");
    struct oribi_slice word;
    if (told->broken) {
        complain("a promise");
        diag("%s", told->broken);
    }
    websocket_lines(&file, "event", &events, ORIBI_WEBSOCKET_SERVER);
    check_equal("event", &told->events, &events);
    while (line.p && websocket_next_word(&line, &word))
        if (!websocket_payload(&open, word))
            websocket_bad_word(word);
    if (!told->fault)
        check_equal("open", &told->open, &open);
    if (!told->fault && told->left != (size_t)case_number(&file, "left", 0)) {
        complain("left");
        diag("got %zu", told->left);
    }
    if (case_has(&file, "reason") && (!told->reason || !case_is(&file, "reason", told->reason))) {
        complain("reason");
        diag("got %s", told->reason ? told->reason : "none");
    }
    oribi_buf_deinit(&events);
    oribi_buf_deinit(&open);
}

/* Does the parser tell the same of these pieces as of the whole? */
static bool is_equal_cut(const struct oribi_buf *input, const struct told *want, size_t cut, size_t step)
{
    struct told got = told_all(role_of_case(), limit_of_case(), input->p, input->len, cut, step, &arena);
    bool equal = told_equal(&got, want);
    if (!equal)
        diag("cut at %zu, then %zu: %s", cut, step, got.broken ? got.broken : "something else is told");
    told_deinit(&got);
    return equal;
}

static bool is_equal_at_every_cut(const struct oribi_buf *input, const struct told *want)
{
    size_t n = input->len;
    size_t stride = n > VERY_LONG ? n / 4 + 1 : n > LONG ? n / 20 + 1 : 1;
    for (size_t cut = 1; cut <= n; cut += stride) {
        if (!is_equal_cut(input, want, cut, n))
            return false;
        for (size_t step = 1; step <= 5 && n <= SHORT; step++)
            if (!is_equal_cut(input, want, cut, step))
                return false;
    }
    return is_equal_cut(input, want, 1, n > VERY_LONG ? 997 : 1);
}

static void run_case(void)
{
    struct oribi_buf input = {0};
    websocket_lines(&file, "send", &input, role_of_case());
    for (int level = ORIBI_SCAN_LEVELS - 1, runs = 0; level >= 0 && good; level--) {
        bool enough = runs > 0 && input.len > VERY_LONG;
        if (enough || oribi_scan_level_set((enum oribi_scan_level)level) != 0)
            continue;
        runs++;
        struct told told = told_all(role_of_case(), limit_of_case(), input.p, input.len, input.len, 1, &arena);
        check_told(&told);
        good &= is_equal_at_every_cut(&input, &told);
        told_deinit(&told);
    }
    oribi_buf_deinit(&input);
}

/* ---- beside the cases ---- */

static void test_every_code(void)
{
    static const struct {
        unsigned first, last;
    } valid[] = {{1000, 1003}, {1007, 1014}, {3000, 4999}};
    bool same = true;
    for (unsigned code = 0; code <= UINT16_MAX + 1; code++) {
        bool want = false;
        for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
            want |= code >= valid[i].first && code <= valid[i].last;
        same &= oribi_websocket_code_is_valid(code) == want;
    }
    ok(same);
    ok(oribi_websocket_code_is_valid(ORIBI_WEBSOCKET_CODE_TRY_LATER));
    ok(!oribi_websocket_code_is_valid(ORIBI_WEBSOCKET_CODE_ABSENT));
    ok(!oribi_websocket_code_is_valid(ORIBI_WEBSOCKET_CODE_ABNORMAL));
}

/* Feeds a head alone; the code of the fault, or 0. */
static unsigned fault_of(struct oribi_websocket *socket, const char *head, size_t n)
{
    char bytes[ORIBI_WEBSOCKET_HEAD_CAP];
    struct oribi_websocket_event event;
    memcpy(bytes, head, n);
    (void)oribi_websocket_feed(socket, bytes, n, &event);
    return event.type == ORIBI_WEBSOCKET_EVENT_FAULT ? event.code : 0;
}

/* All 65536 pairs of a head's first bytes, against a list of what is right that knows nothing of the parser's order. */
static void test_every_first_two_bytes(void)
{
    bool same = true;
    for (unsigned pair = 0; pair <= UINT16_MAX && same; pair++) {
        const char head[2] = {(char)(pair >> 8), (char)pair};
        unsigned first = pair >> 8;
        unsigned second = pair & 0xff;
        for (int role = ORIBI_WEBSOCKET_SERVER; role <= ORIBI_WEBSOCKET_CLIENT; role++)
            for (int within = 0; within < 2; within++) {
                struct oribi_websocket socket;
                oribi_websocket_init(&socket, (enum oribi_websocket_role)role, UINT64_MAX);
                socket.message = within ? ORIBI_WEBSOCKET_BINARY : 0;
                bool data = within ? first == 0x00 || first == 0x80
                                   : first == 0x01 || first == 0x02 || first == 0x81 || first == 0x82;
                bool control = (first == 0x88 || first == 0x89 || first == 0x8a) && (second & 0x7f) <= 125 &&
                               !(first == 0x88 && (second & 0x7f) == 1);
                bool right = (data || control) && (second >> 7 == 1) == (role == ORIBI_WEBSOCKET_SERVER);
                same &= (fault_of(&socket, head, 2) == 0) == right;
            }
    }
    ok(same);
}

static void test_the_maximum_is_decided_at_the_head(void)
{
    static const char at[] = "\x82\xfe\x01\x00";
    static const char beyond[] = "\x82\xfe\x01\x01";
    struct oribi_websocket socket;
    oribi_websocket_init(&socket, ORIBI_WEBSOCKET_SERVER, 256);
    ok_eq(fault_of(&socket, at, 4), 0);
    ok_eq(fault_of(&socket, beyond, 4), 0);
    oribi_websocket_init(&socket, ORIBI_WEBSOCKET_SERVER, 256);
    ok_eq(fault_of(&socket, "\x82\xfe\x01\x00mask", 8), 0);
    ok_eq(socket.frame_left, 256);
    oribi_websocket_init(&socket, ORIBI_WEBSOCKET_SERVER, 256);
    ok_eq(fault_of(&socket, "\x82\xfe\x01\x01mask", 8), ORIBI_WEBSOCKET_CODE_TOO_BIG);
}

/* The longest length that can be written, and no maximum: the sum of two frames does not turn over. */
static void test_the_longest_length(void)
{
    struct oribi_websocket socket;
    oribi_websocket_init(&socket, ORIBI_WEBSOCKET_SERVER, UINT64_MAX);
    ok_eq(fault_of(&socket, "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask", 14), 0);
    ok_eq(socket.frame_left, INT64_MAX);
    oribi_websocket_init(&socket, ORIBI_WEBSOCKET_SERVER, UINT64_MAX);
    ok_eq(fault_of(&socket, "\x82\xff\x80\0\0\0\0\0\0\0", 10), ORIBI_WEBSOCKET_CODE_PROTOCOL);
    oribi_websocket_init(&socket, ORIBI_WEBSOCKET_SERVER, INT64_MAX);
    socket.message = ORIBI_WEBSOCKET_BINARY;
    socket.message_bytes = INT64_MAX;
    ok_eq(fault_of(&socket, "\x80\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask", 14), ORIBI_WEBSOCKET_CODE_TOO_BIG);
    oribi_websocket_init(&socket, ORIBI_WEBSOCKET_SERVER, UINT64_MAX);
    socket.message = ORIBI_WEBSOCKET_BINARY;
    socket.message_bytes = UINT64_MAX - 1;
    ok_eq(fault_of(&socket, "\x80\x82mask", 6), ORIBI_WEBSOCKET_CODE_TOO_BIG);
}

static void test_a_changed_maximum_counts_from_the_next_head(void)
{
    struct oribi_websocket socket;
    oribi_websocket_init(&socket, ORIBI_WEBSOCKET_SERVER, 10);
    ok_eq(fault_of(&socket, "\x02\x8amask", 6), 0);
    socket.message_bytes_max = 5;
    ok_eq(fault_of(&socket, "0123456789\x80\x80", 12), 0);
    ok_eq(fault_of(&socket, "\x80\x80mask", 6), ORIBI_WEBSOCKET_CODE_TOO_BIG);
}

/* A frame of text is longer than a block that is unmasked and checked at once, and characters lie over each end. */
static void test_text_over_the_ends_of_blocks(void)
{
    enum { COUNT = 3 * TEXT_BLOCK };
    static char bytes[COUNT + 4];
    static const uint8_t mask[4] = {1, 2, 3, 4};
    for (size_t shift = 0; shift < 4; shift++) {
        struct oribi_websocket socket;
        struct oribi_websocket_event event;
        memset(bytes, 'x', shift);
        for (size_t i = shift; i + 4 <= sizeof(bytes); i += 4)
            memcpy(bytes + i, "\xf0\x9f\xa6\x8c", 4);
        size_t n = shift + (sizeof(bytes) - shift) / 4 * 4;
        char head[ORIBI_WEBSOCKET_HEAD_CAP];
        size_t len = oribi_websocket_write_head(head, ORIBI_WEBSOCKET_TEXT, true, n, mask);
        oribi_websocket_mask(bytes, n, mask, 0);
        oribi_websocket_init(&socket, ORIBI_WEBSOCKET_SERVER, n);
        ok_eq(oribi_websocket_feed(&socket, head, len, &event), len);
        ok_eq(oribi_websocket_feed(&socket, bytes, n, &event), n);
        ok(event.type == ORIBI_WEBSOCKET_EVENT_PIECE && event.ends && !event.binary && event.payload.n == n);
    }
}

/* Prefixes of characters: all of one to three bytes of the turns of the table are taken when some character begins with
 * them. */
static void test_begins_of_characters(void)
{
    bool same = true;
    for (unsigned first = 0xc0; first <= 0xff; first++)
        for (unsigned second = 0x80; second <= 0xbf; second++) {
            const uint8_t p[3] = {(uint8_t)first, (uint8_t)second, 0x80};
            size_t size = character_size((uint8_t)first);
            bool one = false;
            for (unsigned other = 0x80; other <= 0xbf; other++) {
                const char text[4] = {(char)first, (char)other, '\x80', '\x80'};
                one |= oribi_utf8_len(text, size) == size;
            }
            const char text[4] = {(char)first, (char)second, '\x80', '\x80'};
            bool two = oribi_utf8_len(text, size) == size;
            same &= begins_character(p, 1) == one;
            same &= size < 3 || begins_character(p, 2) == two;
            same &= size < 4 || begins_character(p, 3) == two;
        }
    ok(same);
}

static void test_size_of_a_connection_at_rest(void)
{
    ok(sizeof(struct oribi_websocket) <= 56);
}

int main(void)
{
    arena = guard_alloc(INPUT_MAX);
    run_case_folder("websocket", run_case);
    test_every_code();
    test_every_first_two_bytes();
    test_the_maximum_is_decided_at_the_head();
    test_the_longest_length();
    test_a_changed_maximum_counts_from_the_next_head();
    test_text_over_the_ends_of_blocks();
    test_begins_of_characters();
    test_size_of_a_connection_at_rest();
    guard_free(&arena);
    return done_testing();
}
