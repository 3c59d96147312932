/* Connection: output, and a socket that leaves the reactor. Functions stand in reading order. */
#include "oribi/event/conn.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/event/reactor.h"

#include "event/conn_private.h"

#include <limits.h>
#include <string.h>

enum { LONG_BYTES = 1024 * 1024 }; /* of text that is kept at a time */

/* The file that pieces are sent from. */
struct file {
    int fd;
    const struct oribi_source *source; /* NULL: a file that may change, whose descriptor is copied */
    bool looked;                       /* at the source, a moment ago */
};

static int keep_rest(struct oribi_reactor *r, struct oribi_conn *c, const struct iovec *vec, size_t count, size_t skip);
static int send_pieces(struct oribi_reactor *r, struct oribi_conn *c, struct file *file,
                       const struct oribi_piece *pieces, size_t count);
static int keep_text(struct oribi_reactor *r, struct oribi_conn *c, const struct iovec *vec, size_t count, size_t skip);
static bool divert_out(struct oribi_reactor *r, struct oribi_conn *c);
static int keep_long(struct oribi_reactor *r, struct oribi_conn *c, const struct iovec *vec, size_t count, size_t skip);
static int keep_slice(struct oribi_reactor *r, struct oribi_conn *c, const char *p, size_t n);
static int flush_kept(struct oribi_reactor *r, struct oribi_conn *c);
static int send_piece(struct oribi_reactor *r, struct oribi_conn *c, struct file *file, struct oribi_piece *rest,
                      bool more, int64_t *turn);
static int keep_pieces(struct oribi_reactor *r, struct oribi_conn *c, struct file *file, const struct oribi_piece *rest,
                       const struct oribi_piece *pieces, size_t count);
static int keep_piece(struct oribi_reactor *r, struct oribi_conn *c, struct file *file, int *copy,
                      const struct oribi_piece *piece);
static void charge_out(struct oribi_reactor *r, struct oribi_conn *c);
static bool have_out(struct oribi_conn *c);
static int break_off(struct oribi_conn *c, int error);
static int break_unkept(struct oribi_reactor *r, struct oribi_conn *c, int error);
static void count_sent(struct oribi_reactor *r, struct oribi_conn *c, int64_t bytes);

int oribi_conn_send(struct oribi_reactor *r, struct oribi_conn *c, const struct iovec *vec, size_t count, bool more)
{
    if (c->broken)
        return ORIBI_ECLOSED;
    if (c->out)
        return keep_rest(r, c, vec, count, 0);
    while (count > 0) {
        size_t batch = count < IOV_MAX ? count : IOV_MAX;
        ssize_t sent = oribi_transport_send(c->transport, c->watch.fd, vec, batch, more);
        if (sent == ORIBI_AGAIN)
            sent = 0;
        if (sent < 0) {
            c->lost = sent == ORIBI_ELOST;
            return break_off(c, (int)sent);
        }
        count_sent(r, c, sent);
        if (sent < oribi_vec_len(vec, batch))
            return keep_rest(r, c, vec, count, (size_t)sent);
        vec += batch;
        count -= batch;
    }
    return 0;
}

/* Keeps what the socket did not take, then tries once more: only a write that fails with EAGAIN makes the kernel
 * report room later. */
static int keep_rest(struct oribi_reactor *r, struct oribi_conn *c, const struct iovec *vec, size_t count, size_t skip)
{
    bool is_long = oribi_vec_len(vec, count) - (int64_t)skip > LONG_BYTES && r->hooks.await;
    int result = is_long ? keep_long(r, c, vec, count, skip) : keep_text(r, c, vec, count, skip);
    return result < 0 ? result : flush_kept(r, c);
}

/* In slices, so that the copies that wait for the writer are bounded. Where pieces lie in the scratch buffer it is
 * copied first: others have it when the reactor is given away. */
static int keep_long(struct oribi_reactor *r, struct oribi_conn *c, const struct iovec *vec, size_t count, size_t skip)
{
    int64_t more = oribi_vec_len(vec, count) - (int64_t)skip;
    if (more > oribi_budget_memory(&r->budget, 0, r->config.response_memory_max) &&
        !oribi_budget_file(&r->budget, more))
        return break_unkept(r, c, ORIBI_ELIMIT);
    char *scratch = oribi_mem_try_alloc(1, ORIBI_SCRATCH_BYTES);
    int result = scratch ? 0 : break_unkept(r, c, ORIBI_ENOMEM);
    if (scratch)
        memcpy(scratch, r->scratch, ORIBI_SCRATCH_BYTES);
    for (size_t i = 0; i < count && result == 0; i++) {
        const char *p = vec[i].iov_base;
        size_t len = vec[i].iov_len;
        if (p >= r->scratch && p < r->scratch + ORIBI_SCRATCH_BYTES)
            p = scratch + (p - r->scratch);
        for (size_t at = skip < len ? skip : len; at < len && result == 0; at += LONG_BYTES)
            result = keep_slice(r, c, p + at, len - at < LONG_BYTES ? len - at : LONG_BYTES);
        skip -= skip < len ? skip : len;
    }
    oribi_mem_free(scratch);
    return result;
}

static int keep_slice(struct oribi_reactor *r, struct oribi_conn *c, const char *p, size_t n)
{
    int result = keep_text(r, c, &(struct iovec){(char *)p, n}, 1, 0);
    if (result == 0 && r->unstored > oribi_reactor_unstored_max(r) && c->state == ORIBI_CONN_CALL)
        r->hooks.await(r->hooks.self, c);
    return c->broken ? ORIBI_ECLOSED : result;
}

static int keep_text(struct oribi_reactor *r, struct oribi_conn *c, const struct iovec *vec, size_t count, size_t skip)
{
    if (!have_out(c))
        return break_unkept(r, c, ORIBI_ENOMEM);
    int64_t more = oribi_vec_len(vec, count) - (int64_t)skip;
    int64_t memory_max = oribi_budget_memory(&r->budget, oribi_out_memory(c->out), r->config.response_memory_max);
    bool to_file = more > oribi_out_room(c->out, memory_max);
    if (to_file && !oribi_budget_file(&r->budget, more))
        return break_unkept(r, c, ORIBI_ELIMIT);
    if (to_file && !oribi_out_temp_file(c->out) && !divert_out(r, c))
        return break_unkept(r, c, ORIBI_ENOMEM);
    int result = oribi_out_keep(c->out, vec, count, skip, memory_max);
    if (result < 0)
        return break_unkept(r, c, result);
    charge_out(r, c);
    return 0;
}

static bool divert_out(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_temp_file *temp_file = oribi__conn_temp_file(r, c);
    if (temp_file)
        oribi_out_divert(c->out, temp_file);
    return temp_file != NULL;
}

static int flush_kept(struct oribi_reactor *r, struct oribi_conn *c)
{
    int result = oribi_conn_flush(r, c);
    return result == ORIBI_AGAIN ? 0 : result;
}

int oribi_conn_send_file(struct oribi_reactor *r, struct oribi_conn *c, int fd, int64_t offset, int64_t len)
{
    return oribi_conn_send_pieces(r, c, fd, &(struct oribi_piece){{NULL, 0}, offset, len}, 1);
}

bool oribi_conn_give_file(struct oribi_reactor *r, struct oribi_conn *c, int fd, int64_t offset, int64_t len)
{
    struct oribi_transport *transport = c->transport;
    if (c->broken || c->out || !transport || !transport->give_file || !transport->give_file(transport, fd, offset, len))
        return false;
    count_sent(r, c, len);
    return true;
}

int oribi_conn_send_pieces(struct oribi_reactor *r, struct oribi_conn *c, int fd, const struct oribi_piece *pieces,
                           size_t count)
{
    return send_pieces(r, c, &(struct file){.fd = fd}, pieces, count);
}

int oribi_conn_send_source(struct oribi_reactor *r, struct oribi_conn *c, const struct oribi_source *source,
                           const struct oribi_piece *pieces, size_t count)
{
    return send_pieces(r, c, &(struct file){.fd = source->fd, .source = source, .looked = source->looked}, pieces,
                       count);
}

static int send_pieces(struct oribi_reactor *r, struct oribi_conn *c, struct file *file,
                       const struct oribi_piece *pieces, size_t count)
{
    if (c->broken)
        return ORIBI_ECLOSED;
    int64_t turn = ORIBI_OUT_TURN_BYTES;
    for (; count > 0; pieces++, count--) {
        struct oribi_piece rest = *pieces;
        int result = c->out ? ORIBI_AGAIN : send_piece(r, c, file, &rest, count > 1, &turn);
        if (result == ORIBI_AGAIN)
            return keep_pieces(r, c, file, &rest, pieces + 1, count - 1);
        if (result < 0)
            return result;
    }
    return 0;
}

/* Takes from `rest` what the socket takes. 0: that was all; ORIBI_AGAIN: the socket is full, or *turn is used up;
 * another error breaks the connection. */
static int send_piece(struct oribi_reactor *r, struct oribi_conn *c, struct file *file, struct oribi_piece *rest,
                      bool more, int64_t *turn)
{
    int socket_fd = c->watch.fd;
    while (rest->text.iov_len > 0) {
        ssize_t sent = oribi_transport_send(c->transport, socket_fd, &rest->text, 1, more || rest->len > 0);
        if (sent == ORIBI_AGAIN)
            return ORIBI_AGAIN;
        if (sent < 0) {
            c->lost = sent == ORIBI_ELOST;
            return break_off(c, (int)sent);
        }
        count_sent(r, c, sent);
        rest->text = (struct iovec){(char *)rest->text.iov_base + sent, rest->text.iov_len - (size_t)sent};
    }
    while (rest->len > 0) {
        if (*turn == 0)
            return ORIBI_AGAIN;
        if (file->source && !file->looked && !oribi_os_file_has(file->fd, &file->source->state))
            return break_off(c, ORIBI_ESYS);
        file->looked = false;
        ssize_t sent = oribi_transport_send_file(c->transport, socket_fd, file->fd, &rest->offset,
                                                 rest->len < *turn ? rest->len : *turn);
        if (sent == ORIBI_AGAIN)
            return ORIBI_AGAIN;
        if (sent <= 0) /* 0: the file is shorter than it was, and the promised length cannot be kept */
            return break_off(c, sent < 0 ? (int)sent : ORIBI_ESYS);
        count_sent(r, c, sent);
        rest->len -= sent;
        *turn -= sent;
    }
    return 0;
}

/* Keeps what is left of one piece and those behind it, then tries once more like keep_rest(). One copy of the
 * descriptor does for all of them. */
static int keep_pieces(struct oribi_reactor *r, struct oribi_conn *c, struct file *file, const struct oribi_piece *rest,
                       const struct oribi_piece *pieces, size_t count)
{
    int copy = -1;
    int result = keep_piece(r, c, file, &copy, rest);
    for (size_t i = 0; i < count && result == 0; i++)
        result = keep_piece(r, c, file, &copy, &pieces[i]);
    return result < 0 ? result : flush_kept(r, c);
}

static int keep_piece(struct oribi_reactor *r, struct oribi_conn *c, struct file *file, int *copy,
                      const struct oribi_piece *piece)
{
    if (!have_out(c))
        return break_off(c, ORIBI_ENOMEM);
    int result = piece->text.iov_len > 0 ? keep_text(r, c, &piece->text, 1, 0) : 0;
    if (result < 0 || piece->len == 0)
        return result;
    if (file->source) {
        result = oribi_out_keep_source(c->out, file->source, piece->offset, piece->len);
        return result < 0 ? break_off(c, result) : 0;
    }
    if (*copy < 0 && (*copy = oribi_os_dup(file->fd)) < 0)
        return break_off(c, ORIBI_ESYS);
    result = oribi_out_keep_file(c->out, *copy, piece->offset, piece->len);
    return result < 0 ? break_off(c, result) : 0;
}

static bool have_out(struct oribi_conn *c)
{
    if (!c->out && (c->out = oribi_out_try_create()))
        oribi_out_over(c->out, c->transport);
    return c->out != NULL;
}

int oribi_conn_flush(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->broken)
        return ORIBI_ECLOSED;
    if (!c->out)
        return 0;
    int64_t sent = 0;
    int result = oribi_out_flush(c->out, c->watch.fd, &sent);
    count_sent(r, c, sent);
    charge_out(r, c);
    if (result == ORIBI_AGAIN || result > 0) {
        if (result > 0)
            oribi__reactor_post(r, c); /* the socket has room and will not tell */
        else if (!oribi_out_waits(c->out))
            c->watch.ready &= (uint8_t)~ORIBI_WRITE;
        if (sent > 0 && c->timer.timeout_class == ORIBI_TIMEOUT_WRITE)
            oribi__conn_arm_write(r, c);
        return ORIBI_AGAIN;
    }
    if (result < 0)
        return break_off(c, result);
    oribi__conn_drop_out(r, c);
    return 0;
}

static void charge_out(struct oribi_reactor *r, struct oribi_conn *c)
{
    int64_t unstored = oribi_out_unstored(c->out);
    r->unstored += unstored - c->unstored_bytes;
    c->unstored_bytes = unstored;
    c->unstored = unstored > 0;
    oribi_budget_set(&r->budget, oribi_out_charge(c->out), oribi_out_memory(c->out), oribi_out_in_temp_file(c->out));
}

void oribi__conn_out_stored(struct oribi_reactor *r, struct oribi_conn *c)
{
    int error = c->broken ? 0 : oribi_out_stored(c->out);
    charge_out(r, c);
    if (error < 0)
        (void)break_unkept(r, c, error);
    if (c->state == ORIBI_CONN_FLUSH)
        oribi__conn_flush_on(r, c);
    else if (c->state == ORIBI_CONN_BODY || c->state == ORIBI_CONN_STORE) {
        int result = oribi_conn_flush(r, c);
        if (result < 0 && result != ORIBI_AGAIN)
            oribi__conn_close(r, c);
    } /* else its call looks at the output, which is not ours meanwhile */
}

static void count_sent(struct oribi_reactor *r, struct oribi_conn *c, int64_t bytes)
{
    c->sent_bytes += bytes;
    if (bytes > 0 && r->hooks.sent)
        r->hooks.sent(r->hooks.self, bytes);
}

static int break_off(struct oribi_conn *c, int error)
{
    c->broken = true;
    return error;
}

static int break_unkept(struct oribi_reactor *r, struct oribi_conn *c, int error)
{
    if (r->hooks.unkept && (c->state == ORIBI_CONN_CALL || (c->state == ORIBI_CONN_FLUSH && c->exchange)))
        r->hooks.unkept(r->hooks.self, c, error);
    return break_off(c, error);
}

void oribi__conn_arm_write(struct oribi_reactor *r, struct oribi_conn *c)
{
    (void)oribi_out_taken(c->out, c->watch.fd); /* from here on counts */
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_WRITE, r->now_ms);
}

void oribi_conn_await_room(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (!c->out || c->state != ORIBI_CONN_CALL)
        return;
    oribi_loop_interest(r->loop, &c->watch, oribi_out_waits(c->out) ? 0 : ORIBI_WRITE);
    if (c->timer.timeout_class != ORIBI_TIMEOUT_WRITE)
        oribi__conn_arm_write(r, c);
    (void)oribi__conn_register(r, c); /* closes the connection itself when it fails */
}

bool oribi__conn_reads(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (!c->out || !(oribi_out_taken(c->out, c->watch.fd) || oribi_out_waits(c->out)))
        return false;
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_WRITE, r->now_ms);
    return true;
}

void oribi__conn_drop_out(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (!c->out)
        return;
    oribi_budget_set(&r->budget, oribi_out_charge(c->out), 0, 0);
    r->unstored -= c->unstored_bytes;
    c->unstored_bytes = 0;
    c->unstored = false;
    oribi_out_destroy(c->out);
    c->out = NULL;
}

int64_t oribi_conn_pending(const struct oribi_conn *c)
{
    return c->out ? oribi_out_pending(c->out) : 0;
}

int64_t oribi_conn_in_temp_file(const struct oribi_conn *c)
{
    return c->out ? oribi_out_in_temp_file(c->out) : 0;
}

int oribi_conn_withdraw(struct oribi_reactor *r, struct oribi_conn *c, struct oribi_slice *rest)
{
    if (c->broken)
        return ORIBI_ECLOSED;
    oribi_loop_remove(r->loop, &c->watch);
    *rest = oribi_conn_behind(c);
    return c->watch.fd;
}

void oribi_conn_release(struct oribi_reactor *r, struct oribi_conn *c)
{
    oribi__reactor_disclaim(r, c);
    c->watch.fd = -1; /* the descriptor has a new owner */
    oribi__conn_close(r, c);
}
