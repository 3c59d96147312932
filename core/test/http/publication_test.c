/* Records of publications: what is written is read again, at every maximum; what is cut, changed or beyond is
 * refused. */
#include "http/publication.c"

#include "guard.h"
#include "tap.h"

static struct guard arena;
static char filler[ORIBI_PUBLICATION_DATA_BYTES_MAX + 1];

static struct oribi_slice many(size_t n)
{
    return oribi_slice(filler, n);
}

/* Gives the whole record, laid against a guard page. */
static struct oribi_slice written(const struct oribi_publication *publication)
{
    static char record[ORIBI_PUBLICATION_RECORD_CAP];
    size_t n = oribi_publication_head(publication, record);
    struct oribi_slice body = oribi_publication_body(publication);
    if (body.n)
        memcpy(record + n, body.p, body.n);
    n += body.n;
    return oribi_slice(guard_place(&arena, record, n), n);
}

static bool comes_back(const struct oribi_publication *made)
{
    struct oribi_publication got;
    return oribi_publication_read(written(made), &got) == 0 && oribi_slice_equal(got.channel, made->channel) &&
           oribi_slice_equal(got.event, made->event) && got.data.n == made->data.n && got.binary == made->binary &&
           got.epoch == made->epoch && got.offset == made->offset &&
           (oribi_publication_goes_apart(made) ? !got.data.p : oribi_slice_equal(got.data, made->data));
}

static void test_what_is_written_is_read_again(void)
{
    ok(comes_back(&(struct oribi_publication){.channel = ORIBI_SLICE("a")}));
    ok(comes_back(&(struct oribi_publication){
        .channel = ORIBI_SLICE("room:7"), .event = ORIBI_SLICE("note"), .data = ORIBI_SLICE("hello")}));
    ok(comes_back(&(struct oribi_publication){
        .channel = ORIBI_SLICE("b"), .data = oribi_slice("\xff\0", 2), .binary = true, .epoch = 1, .offset = 1}));
    ok(comes_back(&(struct oribi_publication){.channel = many(ORIBI_PUBLICATION_CHANNEL_BYTES_MAX),
                                              .event = many(ORIBI_PUBLICATION_EVENT_BYTES_MAX),
                                              .data = many(ORIBI_PUBLICATION_INLINE_BYTES_MAX),
                                              .epoch = UINT64_MAX,
                                              .offset = UINT64_MAX}));
}

static void test_long_data_goes_apart(void)
{
    struct oribi_publication longer = {.channel = ORIBI_SLICE("c"),
                                       .data = many(ORIBI_PUBLICATION_INLINE_BYTES_MAX + 1)};
    ok(oribi_publication_goes_apart(&longer) && comes_back(&longer));
    longer.data.n = ORIBI_PUBLICATION_DATA_BYTES_MAX;
    ok(comes_back(&longer));
    ok_eq(oribi_publication_check(&longer), 0);
    longer.data.n++;
    ok_eq(oribi_publication_check(&longer), ORIBI_ELIMIT);
}

static void test_every_cut_and_every_byte_more_is_refused(void)
{
    struct oribi_publication got;
    struct oribi_slice whole = written(&(struct oribi_publication){.channel = ORIBI_SLICE("room"),
                                                                   .event = ORIBI_SLICE("e"),
                                                                   .data = ORIBI_SLICE("data"),
                                                                   .epoch = 7,
                                                                   .offset = 9});
    char copy[64];
    size_t n = whole.n;
    bool refused = true;
    memcpy(copy, whole.p, n);
    for (size_t cut = 0; cut < n; cut++)
        refused &= oribi_publication_read(oribi_slice(guard_place(&arena, copy, cut), cut), &got) == ORIBI_EBAD;
    ok_named(refused, "no cut is a record");
    copy[n] = 'x';
    ok_eq(oribi_publication_read(oribi_slice(copy, n + 1), &got), ORIBI_EBAD);
}

static bool refuses(size_t at, char byte)
{
    static char copy[64];
    struct oribi_publication got;
    struct oribi_slice whole =
        written(&(struct oribi_publication){.channel = ORIBI_SLICE("room"), .data = ORIBI_SLICE("data")});
    memcpy(copy, whole.p, whole.n);
    copy[at] = byte;
    return oribi_publication_read(oribi_slice(copy, whole.n), &got) == ORIBI_EBAD;
}

static void test_fields_that_no_publisher_writes_are_refused(void)
{
    ok_named(refuses(0, 'p'), "another type");
    ok_named(refuses(1, 4), "an unknown flag");
    ok_named(refuses(1, APART), "short data that is apart");
    ok_named(refuses(AT_CHANNEL + 1, 0), "a channel without a name");
    ok_named(refuses(AT_CHANNEL, 2), "a longer channel than there may be");
    ok_named(refuses(AT_EVENT, 65), "a longer event");
    ok_named(refuses(AT_DATA, 1), "longer data");
    ok_named(refuses(AT_EPOCH + 7, 1), "an epoch without an offset");
    ok_named(refuses(AT_OFFSET + 7, 1), "an offset without an epoch");
}

static int judged(struct oribi_slice channel, struct oribi_slice event, struct oribi_slice data, bool binary)
{
    return oribi_publication_check(
        &(struct oribi_publication){.channel = channel, .event = event, .data = data, .binary = binary});
}

static void test_what_may_be_published(void)
{
    struct oribi_slice name = ORIBI_SLICE("news");
    struct oribi_slice none = {0};
    ok_eq(judged(name, none, none, false), 0);
    ok_eq(judged(name, ORIBI_SLICE("note"), ORIBI_SLICE("\xc3\xa4\n"), false), 0);
    ok_eq(judged(none, none, none, false), ORIBI_EINVAL);
    ok_eq(judged(many(257), none, none, false), ORIBI_EINVAL);
    ok_eq(judged(many(256), none, none, false), 0);
    ok_eq(judged(ORIBI_SLICE("a\tb"), none, none, false), ORIBI_EINVAL);
    ok_eq(judged(ORIBI_SLICE("\xff"), none, none, false), ORIBI_EINVAL);
    ok_eq(judged(ORIBI_SLICE("\xc3\xa4"), none, none, false), 0);
    ok_eq(judged(name, many(65), none, false), ORIBI_EINVAL);
    ok_eq(judged(name, ORIBI_SLICE("a\nb"), none, false), ORIBI_EINVAL);
    ok_eq(judged(name, ORIBI_SLICE("a\rb"), none, false), ORIBI_EINVAL);
    ok_eq(judged(name, ORIBI_SLICE("a\0b"), none, false), ORIBI_EINVAL);
    ok_eq(judged(name, ORIBI_SLICE("\xff"), none, false), ORIBI_EINVAL);
    ok_eq(judged(name, none, ORIBI_SLICE("\xff"), false), ORIBI_EBAD);
    ok_eq(judged(name, none, ORIBI_SLICE("\xff"), true), 0);
}

static void test_snapshots(void)
{
    char out[ORIBI_SNAPSHOT_BYTES + 1] = {0};
    struct oribi_snapshot got;
    oribi_snapshot_write(&(struct oribi_snapshot){12345678901234567u, 77}, out);
    ok_eq(oribi_snapshot_read(oribi_slice(out, ORIBI_SNAPSHOT_BYTES), &got), 0);
    ok(got.epoch == 12345678901234567u && got.text_bytes == 77);
    ok_eq(oribi_snapshot_read(oribi_slice(out, ORIBI_SNAPSHOT_BYTES - 1), &got), ORIBI_EBAD);
    ok_eq(oribi_snapshot_read(oribi_slice(out, ORIBI_SNAPSHOT_BYTES + 1), &got), ORIBI_EBAD);
    oribi_snapshot_write(&(struct oribi_snapshot){0, 77}, out);
    ok_eq(oribi_snapshot_read(oribi_slice(out, ORIBI_SNAPSHOT_BYTES), &got), ORIBI_EBAD);
    oribi_snapshot_write(&(struct oribi_snapshot){1, UINT32_MAX}, out);
    ok_eq(oribi_snapshot_read(oribi_slice(out, ORIBI_SNAPSHOT_BYTES), &got), ORIBI_EBAD);
}

int main(void)
{
    arena = guard_alloc(ORIBI_PUBLICATION_RECORD_CAP);
    memset(filler, 'f', sizeof(filler));
    test_what_is_written_is_read_again();
    test_long_data_goes_apart();
    test_every_cut_and_every_byte_more_is_refused();
    test_fields_that_no_publisher_writes_are_refused();
    test_what_may_be_published();
    test_snapshots();
    guard_free(&arena);
    return done_testing();
}
