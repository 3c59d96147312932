/* Records of publications and snapshots from a hostile worker: one that is taken lies within its bytes and its maxima,
 * is judged without a look beyond and as the topics judge it, and written again it is the same. The first byte says
 * which. */
#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/http/publication.h"
#include "oribi/http/socket_call.h"

#include "ours.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 64 * 1024 };

static bool is_within(struct oribi_slice part, const char *p, size_t n)
{
    return part.n == 0 || (part.p >= p && part.p + part.n <= p + n);
}

/* By another way than the module's. */
static bool is_text(struct oribi_slice text)
{
    size_t len;
    for (size_t i = 0; i < text.n; i += len) {
        len = (uint8_t)text.p[i] < 0x80 ? 1 : oribi_utf8_len(text.p + i, text.n - i);
        if (len == 0)
            return false;
    }
    return true;
}

static void check_publication(const char *p, size_t n)
{
    struct oribi_publication got;
    char head[ORIBI_PUBLICATION_HEAD_CAP];
    if (oribi_publication_read(oribi_slice(p, n), &got) < 0)
        return;
    bool apart = oribi_publication_goes_apart(&got);
    expect(got.channel.n > 0 && got.channel.n <= ORIBI_PUBLICATION_CHANNEL_BYTES_MAX);
    expect(got.event.n <= ORIBI_PUBLICATION_EVENT_BYTES_MAX && got.data.n <= ORIBI_PUBLICATION_DATA_BYTES_MAX);
    expect(is_within(got.channel, p, n) && is_within(got.event, p, n) && (apart || is_within(got.data, p, n)));
    expect(!apart || !got.data.p);
    size_t len = oribi_publication_head(&got, head);
    expect(len + (apart ? ORIBI_PUBLICATION_INLINE_BYTES_MAX : got.data.n) == n && memcmp(head, p, len) == 0);
    if (apart)
        return;
    int code = oribi_publication_check(&got);
    expect(code == 0 || code == ORIBI_EINVAL || (code == ORIBI_EBAD && !got.binary && !is_text(got.data)));
    expect(code != 0 || got.binary || is_text(got.data));
    /* The topics take the names that a publisher may hand over, and no others. */
    expect((code == ORIBI_EINVAL) ==
           !(oribi_channel_name_is_valid(got.channel) && oribi_channel_event_is_valid(got.event)));
}

static void check_snapshot(const char *p, size_t n)
{
    struct oribi_snapshot got;
    char record[ORIBI_SNAPSHOT_BYTES];
    if (oribi_snapshot_read(oribi_slice(p, n), &got) < 0)
        return;
    oribi_snapshot_write(&got, record);
    expect(n == sizeof(record) && memcmp(record, p, n) == 0 && got.text_bytes <= ORIBI_SNAPSHOT_TEXT_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > BYTES_MAX)
        return 0;
    size_t n = size - 1;
    char *copy = malloc(n ? n : 1); /* so that one byte too many is seen */
    memcpy(copy, data + 1, n);
    if (data[0] & 1)
        check_snapshot(copy, n);
    else
        check_publication(copy, n);
    free(copy);
    return 0;
}
