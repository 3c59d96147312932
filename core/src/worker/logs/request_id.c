/* Request ids; see the header. The generator is xoshiro256** (Blackman, Vigna): ids must not meet, they are no
 * secrets. */
#include "worker/logs/exchange_log.h"

#include "oribi/base/clock.h"
#include "oribi/base/os/os.h"
#include "oribi/config/trust.h"
#include "oribi/http/fields.h"
#include "oribi/worker/logs/request_log.h"

#include <string.h>
#include <unistd.h>

enum { OFFSET_INTERVAL_MS = 1000, TRACEPARENT_NAME_LEN = 11, TRACEPARENT_LEN = 55 };

void oribi__ids_seed(struct oribi__id_source *ids)
{
    *ids = (struct oribi__id_source){.offset_ms = INT64_MIN / 2};
    if (oribi_os_random(ids->state, sizeof(ids->state)) == 0)
        return;
    ids->state[0] = (uint64_t)oribi_clock_us(); /* a kernel or a filter without getrandom(2): time and process differ */
    ids->state[1] = (uint64_t)getpid();
    ids->state[2] = (uint64_t)oribi_clock_wall_ms();
    ids->state[3] = 1; /* a state of zeros gives zeros for ever */
}

static uint64_t turned(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static uint64_t next(uint64_t s[4])
{
    uint64_t result = turned(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = turned(s[3], 45);
    return result;
}

/* Eight hex digits, the most significant first: each gets a byte of a word, all at a time. */
static inline void put_hex(char dst[8], uint32_t value)
{
    uint64_t digits = value;
    digits = (digits << 16 | digits) & 0x0000ffff0000ffffu;
    digits = (digits << 8 | digits) & 0x00ff00ff00ff00ffu;
    digits = (digits << 4 | digits) & 0x0f0f0f0f0f0f0f0fu;
    uint64_t letters = (digits + 0x0606060606060606u) >> 4 & 0x0101010101010101u; /* 1 for those from ten on */
    digits += 0x3030303030303030u + letters * ('a' - '0' - 10);
    dst[0] = (char)(digits >> 56); /* all eight are one store; a loop would be eight */
    dst[1] = (char)(digits >> 48);
    dst[2] = (char)(digits >> 40);
    dst[3] = (char)(digits >> 32);
    dst[4] = (char)(digits >> 24);
    dst[5] = (char)(digits >> 16);
    dst[6] = (char)(digits >> 8);
    dst[7] = (char)digits;
}

static int64_t wall_ms(struct oribi__id_source *ids, int64_t now_us)
{
    int64_t now_ms = now_us / 1000;
    if (now_ms - ids->offset_ms >= OFFSET_INTERVAL_MS) {
        ids->offset_ms = now_ms;
        ids->wall_offset_ms = oribi_clock_wall_ms() - oribi_clock_us() / 1000;
    }
    return now_ms + ids->wall_offset_ms;
}

/* 48 bits of time, version 7, 12 bits at random, variant 10, 62 bits at random. */
void oribi__id_make(struct oribi__id_source *ids, int64_t now_us, char dst[ORIBI__ID_LEN])
{
    uint64_t ms = (uint64_t)wall_ms(ids, now_us);
    uint64_t first = next(ids->state);
    uint64_t second = (next(ids->state) & 0x3fffffffffffffffu) | 0x8000000000000000u;
    char middle[8];
    put_hex(dst, (uint32_t)(ms >> 16));
    put_hex(middle, (uint32_t)(ms << 16 | 0x7000 | (first & 0xfff)));
    put_hex(dst + 19, (uint32_t)(second >> 32)); /* its second half is moved on by the dash before it */
    put_hex(dst + 28, (uint32_t)second);
    memcpy(dst + 9, middle, 4);
    memcpy(dst + 14, middle + 4, 4);
    memmove(dst + 24, dst + 23, 4);
    dst[8] = dst[13] = dst[18] = dst[23] = '-';
}

bool oribi__id_is_good(struct oribi_slice text)
{
    if (text.n == 0 || text.n > ORIBI_REQUEST_ID_MAX)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        if (!alnum && (!c || !strchr("-._~+/=:@", c)))
            return false;
    }
    return true;
}

/* --- traceparent --- */

static bool is_hex(struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!((text.p[i] >= '0' && text.p[i] <= '9') || (text.p[i] >= 'a' && text.p[i] <= 'f')))
            return false;
    return true;
}

static bool is_zero(struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != '0')
            return false;
    return true;
}

/* Of a name outside the core's table; NULL where there is none, or more than one, which may not be believed. */
static const struct oribi_field *only_traceparent(const struct oribi_head *head)
{
    const struct oribi_field *found = NULL;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        if (field->id != ORIBI_FIELD_OTHER || field->name_len != TRACEPARENT_NAME_LEN ||
            !oribi_slice_equal_fold(oribi_slice(field->name, field->name_len), ORIBI_SLICE("traceparent")))
            continue;
        if (found)
            return NULL;
        found = field;
    }
    return found;
}

/* version "-" trace id "-" parent id "-" flags, in lower case; neither id is zero, and ff is no version. What stands
 * behind a dash after the flags belongs to versions that are still to come (3.2, 4.3). */
struct oribi_slice oribi__trace_id(const struct oribi_head *head)
{
    const struct oribi_field *field = only_traceparent(head);
    const char *p = field ? field->value : "";
    size_t n = field ? field->value_len : 0;
    if (n < TRACEPARENT_LEN || p[2] != '-' || p[35] != '-' || p[52] != '-')
        return oribi_slice("", 0);
    struct oribi_slice version = oribi_slice(p, 2);
    struct oribi_slice trace = oribi_slice(p + 3, ORIBI_TRACE_ID_LEN);
    struct oribi_slice parent = oribi_slice(p + 36, 16);
    bool whole = n == TRACEPARENT_LEN || (!is_zero(version) && p[TRACEPARENT_LEN] == '-');
    bool good = whole && is_hex(version) && memcmp(p, "ff", 2) != 0 && is_hex(trace) && !is_zero(trace) &&
                is_hex(parent) && !is_zero(parent) && is_hex(oribi_slice(p + 53, 2));
    return good ? trace : oribi_slice("", 0);
}

/* --- the id --- */

struct oribi_slice oribi__id_trusted(const struct oribi_trust *trust, const struct oribi_head *head,
                                     struct oribi_slice peer)
{
    const struct oribi_field *field = oribi_head_field(head, ORIBI_FIELD_X_REQUEST_ID);
    struct oribi_slice given = field ? oribi_slice(field->value, field->value_len) : oribi_slice(NULL, 0);
    bool kept =
        field && oribi__id_is_good(given) && (trust->count || trust->unix_peers) && oribi_trust_has(trust, peer);
    return kept ? given : oribi_slice(NULL, 0);
}

struct oribi_slice oribi__id_given(const struct oribi_worker *w, const struct oribi_conn *c)
{
    if (c->channel && c->channel->head.request_id.n)
        return c->channel->head.request_id; /* the frontend has logged it, or may yet */
    return c->exchange ? oribi__id_trusted(&w->trust, &c->exchange->head, oribi_slice(c->addr, c->addr_len))
                       : oribi_slice(NULL, 0);
}

struct oribi_slice oribi__request_id(struct oribi__exchange *exchange)
{
    if (exchange->id.n)
        return exchange->id;
    exchange->id = oribi__id_given(exchange->worker, exchange->base.conn);
    if (!exchange->id.n) {
        oribi__id_make(&exchange->worker->ids, exchange->base.complete_us, exchange->id_text);
        exchange->id = oribi_slice(exchange->id_text, ORIBI__ID_LEN);
    }
    return exchange->id;
}

void oribi__log_about(struct oribi__exchange *exchange)
{
    bool named = exchange && oribi__logs_ids(exchange->worker);
    oribi_log_about(named ? oribi__request_id(exchange) : oribi_slice(NULL, 0),
                    named ? oribi__trace_id(&exchange->base.head) : oribi_slice(NULL, 0));
}

struct oribi_header oribi__id_header(struct oribi__exchange *exchange)
{
    const char *name = exchange->worker->options->request_id_header;
    struct oribi_slice id = oribi__request_id(exchange);
    return (struct oribi_header){name, id.p, (uint32_t)strlen(name), (uint32_t)id.n};
}

static void put_into_head(struct oribi__exchange *exchange)
{
    struct oribi_head *head = &exchange->base.head;
    struct oribi_slice id = exchange->id;
    uint32_t i = 0;
    while (i < head->field_count && head->fields[i].id != ORIBI_FIELD_X_REQUEST_ID)
        i++;
    if (i == ORIBI_FIELDS_CAP)
        return;
    if (i == head->field_count)
        head->fields[head->field_count++] =
            (struct oribi_field){.name = "X-Request-Id", .name_len = 12, .id = ORIBI_FIELD_X_REQUEST_ID};
    head->fields[i].value = id.p;
    head->fields[i].value_len = (uint32_t)id.n;
}

void oribi__id_begin(struct oribi__exchange *exchange)
{
    struct oribi_thread *thread = exchange->thread;
    struct oribi_slice id = oribi__request_id(exchange);
    memcpy(thread->id, id.p, id.n);
    thread->id[id.n] = '\0';
    thread->id_len = (uint8_t)id.n;
    struct oribi_slice trace = oribi__trace_id(&exchange->base.head);
    memcpy(thread->trace, trace.p, trace.n);
    thread->trace_len = (uint8_t)trace.n;
    if (!exchange->worker->options->request_id)
        return;
    exchange->req.request_id = id;
    put_into_head(exchange);
}

void oribi_thread_log_about(const struct oribi_thread *thread)
{
    oribi_log_about(thread ? oribi_slice(thread->id, thread->id_len) : oribi_slice(NULL, 0),
                    thread ? oribi_slice(thread->trace, thread->trace_len) : oribi_slice(NULL, 0));
}
