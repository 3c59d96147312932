/* Field blocks, RFC 9113 4.3: decoded as their pieces come, whatever becomes of them, since each changes the decoder's
 * table. What of it is kept is bounded by head_bytes_max. */
#include "frontend/h2_private.h"
#include "oribi/base/mem.h"

/* ---- nghttp2's memory ---- */

static void *mem_alloc(size_t n, void *self)
{
    return oribi_mem_try_alloc(1, n);
}

static void mem_free(void *p, void *self)
{
    oribi_mem_free(p);
}

static void *mem_zeroed(size_t count, size_t size, void *self)
{
    return oribi_mem_try_alloc(count, size);
}

static void *mem_resize(void *p, size_t n, void *self)
{
    return oribi_mem_try_resize(p, 1, n);
}

nghttp2_mem *oribi__h2_mem(void)
{
    /* nghttp2 takes a pointer that is not const, and writes nothing there. */
    static const nghttp2_mem mem = {NULL, mem_alloc, mem_free, mem_zeroed, mem_resize};
    return (nghttp2_mem *)(uintptr_t)&mem;
}

/* ---- the decoder ---- */

/* Below RFC 7541's 4096 bytes the client has to confirm the size in its next block (RFC 9113 4.3.1). */
static int set_table(struct oribi_h2 *h2)
{
    if (h2->settings_due || h2->limits->table_bytes == ORIBI_H2_TABLE_BYTES_MAX)
        return 0;
    h2->table_due = nghttp2_hd_inflate_get_max_dynamic_table_size(h2->inflater) > h2->limits->table_bytes;
    return nghttp2_hd_inflate_change_table_size(h2->inflater, h2->limits->table_bytes) == 0 ? 0 : ORIBI_ENOMEM;
}

static int make_decoder(struct oribi_h2 *h2)
{
    if (h2->inflater)
        return 0;
    if (nghttp2_hd_inflate_new2(&h2->inflater, oribi__h2_mem()) != 0)
        return ORIBI_ENOMEM;
    int error = oribi__h2_recall(h2);
    return error ? error : set_table(h2);
}

void oribi__h2_block_settled(struct oribi_h2 *h2)
{
    if (h2->inflater && set_table(h2) != 0)
        oribi__h2_fail(h2, ORIBI_H2_INTERNAL_ERROR, "out of memory");
}

/* ---- a block ---- */

static void shrink(struct oribi_buf *buf)
{
    buf->len = 0;
    if (buf->cap > H2_BUFFER_KEPT)
        oribi_buf_deinit(buf);
}

static void clear(struct h2_block *block)
{
    struct oribi_buf bufs[] = {block->text, block->lines, block->cookie, block->length, block->head};
    for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++)
        shrink(&bufs[i]);
    *block = (struct h2_block){
        .text = bufs[0], .lines = bufs[1], .cookie = bufs[2], .length = bufs[3], .head = bufs[4], .urgency = 3};
}

void oribi__h2_block_deinit(struct oribi_h2 *h2)
{
    struct h2_block *block = h2->block;
    if (!block)
        return;
    oribi_buf_deinit(&block->text);
    oribi_buf_deinit(&block->lines);
    oribi_buf_deinit(&block->cookie);
    oribi_buf_deinit(&block->length);
    oribi_buf_deinit(&block->head);
    oribi_mem_free(block);
    h2->block = NULL;
}

void oribi__h2_block_begin(struct oribi_h2 *h2, enum h2_use use, uint32_t refuse)
{
    if (!h2->block)
        h2->block = oribi_mem_try_alloc(1, sizeof(*h2->block));
    if (!h2->block || make_decoder(h2) != 0) {
        oribi__h2_fail(h2, ORIBI_H2_INTERNAL_ERROR, "out of memory");
        return;
    }
    struct h2_block *block = h2->block;
    clear(block);
    block->use = use;
    block->id = h2->id;
    block->refuse = refuse;
    block->offers_sockets = h2->limits->connects_sockets;
    block->ends = h2->flags & H2_END_STREAM;
    block->open = true;
    block->since_ms = h2->now_ms ? h2->now_ms : 1;
}

/* A trusted client passes on what one of its clients has sent: the others keep their connection, until head_timeout. */
static uint64_t block_bytes_max(const struct oribi_h2 *h2)
{
    return h2->limits->trusted ? UINT64_MAX : (uint64_t)ORIBI_H2_BLOCK_TIMES * h2->limits->http.head_bytes_max;
}

static void take_field(struct oribi_h2 *h2, const nghttp2_nv *nv)
{
    struct h2_block *block = h2->block;
    uint64_t max = block->use == H2_USE_TRAILERS ? ORIBI_TRAILER_BYTES_MAX : h2->limits->http.head_bytes_max;
    block->bytes += nv->namelen + nv->valuelen + 32;
    block->fields++;
    if (block->bytes > block_bytes_max(h2)) {
        oribi__h2_fail(h2, ORIBI_H2_ENHANCE_YOUR_CALM, "field block far over head_bytes_max");
        return;
    }
    if (block->bytes > max)
        block->too_large = true;
    if (block->use != H2_USE_DISCARD && !block->malformed)
        oribi__h2_request_field(block, oribi_slice((const char *)nv->name, nv->namelen),
                                oribi_slice((const char *)nv->value, nv->valuelen));
}

/* Decodes what there is; `last` says that it is the block's end. */
static void decode(struct oribi_h2 *h2, const char *p, size_t n, bool last)
{
    const uint8_t *in = (const uint8_t *)p;
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t len = nghttp2_hd_inflate_hd2(h2->inflater, &nv, &flags, in, n, last);
        if (len < 0) {
            bool memory = len == NGHTTP2_ERR_NOMEM;
            oribi__h2_fail(h2, memory ? ORIBI_H2_INTERNAL_ERROR : ORIBI_H2_COMPRESSION_ERROR,
                           memory ? "out of memory" : "field block that cannot be decoded");
            return;
        }
        in += len;
        n -= (size_t)len;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            take_field(h2, &nv);
        if (h2->over)
            return;
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            break;
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && n == 0)
            return;
    }
    (void)nghttp2_hd_inflate_end_headers(h2->inflater);
}

void oribi__h2_block_piece(struct oribi_h2 *h2, const char *p, size_t n)
{
    uint64_t room = block_bytes_max(h2) - h2->block->encoded;
    size_t len = n < room ? n : (size_t)room; /* which error comes first must not depend on the cuts */
    h2->block->encoded += len;
    decode(h2, p, len, false);
    if (len < n && !h2->over)
        oribi__h2_fail(h2, ORIBI_H2_ENHANCE_YOUR_CALM, "field block far over head_bytes_max");
}

static void complete_trailers(struct oribi_h2 *h2)
{
    struct h2_block *block = h2->block;
    struct h2_stream *stream = oribi__h2_find(h2, block->id);
    if (!stream)
        return; /* reset since */
    if (block->malformed || stream->body_left > 0) {
        oribi__h2_stream_error(h2, block->id, ORIBI_H2_PROTOCOL_ERROR);
        return;
    }
    stream->request_ended = true;
    if (!stream->refused && (block->too_large || block->fields > h2->limits->http.fields_max)) {
        stream->refused = true;
        h2->events->refused(h2->self, &stream->to, ORIBI_EHEAD, NULL, stream->is_head);
    } else if (!stream->refused) {
        if (block->lines.len)
            h2->events->trailers(h2->self, &stream->to, oribi_slice(block->lines.p, block->lines.len));
        if (!stream->closed)
            h2->events->end(h2->self, &stream->to);
    }
    oribi__h2_close_if_ended(stream);
}

void oribi__h2_block_end(struct oribi_h2 *h2)
{
    struct h2_block *block = h2->block;
    decode(h2, "", 0, true);
    if (h2->over)
        return;
    block->open = false;
    block->since_ms = 0;
    h2->table_due = false; /* else the decoder had refused it */
    switch (block->use) {
    case H2_USE_REQUEST:
        oribi__h2_request_complete(h2);
        break;
    case H2_USE_TRAILERS:
        complete_trailers(h2);
        break;
    default:
        /* a stream that was open, and is over since, has had its end */
        if (block->refuse == ORIBI_H2_REFUSED_STREAM || (block->refuse && oribi__h2_find(h2, block->id)))
            oribi__h2_stream_error(h2, block->id, block->refuse);
        break;
    }
    clear(block);
}
