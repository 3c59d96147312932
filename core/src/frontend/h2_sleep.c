/* Sleep: a session without a stream gives up all but itself. What cannot be made again is the decoder's table, which
 * the client goes on using: it is remembered as the field block that would make it. */
#include "frontend/h2_private.h"
#include "oribi/base/mem.h"

enum { STATIC_ENTRIES = 61 }; /* RFC 7541, Appendix A */

/* RFC 7541 5.1. */
static void put_int(struct oribi_buf *out, uint8_t first, int bits, size_t value)
{
    size_t max = ((size_t)1 << bits) - 1;
    char bytes[12];
    size_t n = 0;
    bytes[n++] = (char)(first | (value < max ? value : max));
    if (value >= max) {
        for (value -= max; value >= 128; value >>= 7)
            bytes[n++] = (char)(value | 128);
        bytes[n++] = (char)value;
    }
    oribi_buf_append(out, bytes, n);
}

static void put_string(struct oribi_buf *out, nghttp2_vec text)
{
    put_int(out, 0, 7, text.len);
    oribi_buf_append(out, text.base, text.len);
}

/* The table's size where the client has chosen it, and the entries, oldest first, as literal fields that are indexed
 * (RFC 7541 6.2.1). */
static void remember(struct oribi_h2 *h2)
{
    struct oribi_buf *out = &h2->remembered;
    size_t count = nghttp2_hd_inflate_get_num_table_entries(h2->inflater);
    out->len = 0;
    size_t table = nghttp2_hd_inflate_get_max_dynamic_table_size(h2->inflater);
    if (!h2->table_due && table != ORIBI_H2_TABLE_BYTES_MAX)
        put_int(out, 0x20, 5, table);
    for (size_t i = count; i > STATIC_ENTRIES; i--) {
        const nghttp2_nv *nv = nghttp2_hd_inflate_get_table_entry(h2->inflater, i);
        put_int(out, 0x40, 6, 0);
        put_string(out, (nghttp2_vec){nv->name, nv->namelen});
        put_string(out, (nghttp2_vec){nv->value, nv->valuelen});
    }
    char *trimmed = out->len ? oribi_mem_try_resize(out->p, 1, out->len) : NULL;
    if (trimmed) {
        out->p = trimmed;
        out->cap = out->len;
    }
}

int oribi__h2_recall(struct oribi_h2 *h2)
{
    const uint8_t *in = (const uint8_t *)h2->remembered.p;
    size_t n = h2->remembered.len;
    nghttp2_nv nv;
    int flags = 0;
    if (n == 0)
        return 0;
    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        flags = 0;
        ssize_t len = nghttp2_hd_inflate_hd2(h2->inflater, &nv, &flags, in, n, 1);
        if (len < 0)
            return ORIBI_ENOMEM; /* it has decoded these entries before */
        in += len;
        n -= (size_t)len;
    }
    oribi_buf_deinit(&h2->remembered);
    return nghttp2_hd_inflate_end_headers(h2->inflater) == 0 ? 0 : ORIBI_ENOMEM;
}

bool oribi_h2_sleep(struct oribi_h2 *h2)
{
    if (!h2->limits->sleeps || h2->stream_count || h2->phase != H2_AT_HEAD || h2->got || h2->block.open ||
        h2_unsent(h2) || h2->goaway_ms || h2->over)
        return false;
    if (h2->inflater)
        remember(h2);
    oribi__h2_let_go(h2);
    return true;
}
