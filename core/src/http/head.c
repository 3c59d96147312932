/* Gives collected fields their meaning. Grammar is settled when this runs: names are tokens, values hold no
 * controls. Here: repeats are folded or refused, then Host, framing, persistence and Expect are decided, in that
 * order, so that one input has one verdict. */
#include "oribi/http/head.h"
#include "http/head_private.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/event_stream.h"
#include "oribi/http/syntax.h"
#include "oribi/http/scan.h"

#include <stddef.h>
#include <string.h>

/* ---- head_names ---- */

/* Names of fields: which are kept, and what becomes of names that come twice. Functions stand in reading order. */

/* Any second line of these is refused, equal or not: they decide where the message ends and whom it is for. */
static const uint64_t singletons = BIT(HOST) | BIT(CONTENT_LENGTH) | BIT(TRANSFER_ENCODING) | BIT(CONTENT_TYPE);

/* A second line of these must equal the first, and then counts as one. */
static const uint64_t equals = BIT(AUTHORIZATION) | BIT(EXPECT);

static bool find_owners(const struct oribi_head *head, uint16_t *owner);
static int check_singletons(const struct oribi_head *head, const uint16_t *owner, struct oribi_fault *fault);
static void join(struct oribi_head *head, const uint16_t *owner, uint32_t i, char **out);

static char fold(char c)
{
    return (uint8_t)(c - 'A') < 26 ? (char)(c | 0x20) : c;
}

/* As the environment key does it, but to lower case. */
static char dash_fold(char c)
{
    return c == '_' ? '-' : fold(c);
}

/* Of the first and last eight bytes and the length: enough to tell names apart that are not made to be alike. */
static uint32_t name_hash(const struct oribi_field *field)
{
    size_t n = field->name_len;
    uint64_t first = 0;
    uint64_t last = 0;
    if (n >= 8) {
        first = folded_word(field->name);
        last = folded_word(field->name + n - 8);
    } else {
        for (size_t i = 0; i < n; i++)
            first = first << 8 | ((uint8_t)field->name[i] | 0x20U);
    }
    uint64_t hash = (first ^ n) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ hash >> 32 ^ last) * 0xff51afd7ed558ccdU;
    return (uint32_t)(hash >> 32);
}

/* Whether the name with `_` read as `-`, and stripped of them at both ends, is one that decides framing or routing:
 * the pattern of an attack that counts on another program folding the name. */
static bool is_shadow(const char *p, size_t n)
{
    static const struct oribi_slice shadowed[] = {{"content-length", 14}, {"transfer-encoding", 17}, {"host", 4}};
    while (n && (*p == '_' || *p == '-')) {
        p++;
        n--;
    }
    while (n && (p[n - 1] == '_' || p[n - 1] == '-'))
        n--;
    for (size_t k = 0; k < sizeof(shadowed) / sizeof(shadowed[0]); k++) {
        size_t i = 0;
        while (n == shadowed[k].n && i < n && dash_fold(p[i]) == shadowed[k].p[i])
            i++;
        if (n == shadowed[k].n && i == n)
            return true;
    }
    return false;
}

/* Names in which a proxy tells the application how files are sent. Plack::Middleware::XSendfile and older versions of
 * Rack::Sendfile believe whoever sends them, and then name files of their choice. `_` reads as `-`, as in the
 * environment. */
static bool is_sendfile_setting(const struct oribi_field *field)
{
    static const char *const names[] = {"x-sendfile-type", "x-accel-mapping"};
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        size_t i = 0;
        while (i < field->name_len && dash_fold(field->name[i]) == names[k][i])
            i++;
        if (i == field->name_len)
            return true;
    }
    return false;
}

bool oribi__head_keeps_other(struct oribi_head *head, const struct oribi_field *field,
                             const struct oribi_limits *limits, struct head_facts *facts)
{
    if (memchr(field->name, '_', field->name_len)) {
        if (is_shadow(field->name, field->name_len))
            facts->shadow = oribi_slice(field->name, field->name_len);
        if (!limits->underscores_allow) {
            head->dropped_count++;
            return false;
        }
        facts->underscores = true;
    }
    /* RFC 3875 would make it HTTP_PROXY, which HTTP clients of the application take for their own setting. */
    if (field->name_len == 5 && oribi_slice_equal_fold(oribi_slice(field->name, 5), ORIBI_SLICE("proxy"))) {
        head->dropped_count++;
        return false;
    }
    if (field->name_len == sizeof("x-sendfile-type") - 1 && is_sendfile_setting(field)) {
        head->dropped_count++;
        return false;
    }
    uint32_t hash = name_hash(field);
    uint64_t *word = &facts->others[hash >> 6 & 3];
    uint64_t bit = (uint64_t)1 << (hash & 63);
    facts->others_repeated |= (*word & bit) != 0;
    *word |= bit;
    return true;
}

/* Makes names unique. Values are joined into one allocation no longer than the head itself: a repeat spends at least
 * a name, a colon and CRLF on the two bytes between values. */
int oribi__head_fold_repeats(struct oribi_head *head, struct oribi_fault *fault)
{
    uint16_t owner[ORIBI_FIELDS_CAP];
    if (!find_owners(head, owner))
        return 0; /* two names with one hash */
    int error = check_singletons(head, owner, fault);
    if (error)
        return error;

    bool repeats[ORIBI_FIELDS_CAP] = {false};
    for (uint32_t i = 0; i < head->field_count; i++)
        if (owner[i] != i && !(head->fields[i].id && FIELD_BIT(head->fields[i].id) & equals))
            repeats[owner[i]] = true;
    size_t total = 0;
    for (uint32_t i = 0; i < head->field_count; i++)
        if (repeats[owner[i]])
            total += head->fields[i].value_len + 2;
    if (total) {
        head->joined = oribi_mem_try_alloc(total, 1);
        if (!head->joined) {
            fault->reason = "out of memory";
            fault->refusal = ORIBI_REFUSAL_OTHER;
            return ORIBI_ENOMEM;
        }
    }
    char *out = head->joined;
    uint32_t count = 0;
    for (uint32_t i = 0; i < head->field_count; i++)
        if (repeats[i])
            join(head, owner, i, &out);
    for (uint32_t i = 0; i < head->field_count; i++)
        if (owner[i] == i)
            head->fields[count++] = head->fields[i];
    head->field_count = count;
    return 0;
}

/* Equal but for case. Names are tokens: two of them that only differ in the bit 0x20 are nearly always equal, and
 * words of eight find the rest unequal early, which bounds what a head of many alike names can cost. */
static bool names_equal(const struct oribi_field *a, const struct oribi_field *b)
{
    size_t n = a->name_len;
    if (a->id != b->id || n != b->name_len)
        return false;
    if (a->id != ORIBI_FIELD_OTHER)
        return true;
    for (size_t i = 0; i + 8 <= n; i += 8)
        if (folded_word(a->name + i) != folded_word(b->name + i))
            return false;
    for (size_t i = 0; i < n; i++)
        if (fold(a->name[i]) != fold(b->name[i]))
            return false;
    return true;
}

/* Where each field goes: owner[i] is the index of the first field with the same name. Returns whether any field is
 * not its own owner. */
static bool find_owners(const struct oribi_head *head, uint16_t *owner)
{
    uint32_t hash[ORIBI_FIELDS_CAP];
    bool found = false;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        hash[i] = field->id != ORIBI_FIELD_OTHER ? field->id : name_hash(field);
        uint32_t k = 0;
        while (k < i && (hash[k] != hash[i] || !names_equal(&head->fields[k], field)))
            k++;
        owner[i] = (uint16_t)k;
        found |= k != i;
    }
    return found;
}

static enum oribi_refusal refusal_of_repeat(enum oribi_field_id id)
{
    if (FIELD_BIT(id) & (BIT(CONTENT_LENGTH) | BIT(TRANSFER_ENCODING)))
        return ORIBI_REFUSAL_FRAMING;
    return id == ORIBI_FIELD_HOST ? ORIBI_REFUSAL_HOST : ORIBI_REFUSAL_FIELD;
}

static int check_singletons(const struct oribi_head *head, const uint16_t *owner, struct oribi_fault *fault)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        const struct oribi_field *first = &head->fields[owner[i]];
        if (first == field)
            continue;
        bool refused = FIELD_BIT(field->id) & singletons;
        if (FIELD_BIT(field->id) & equals)
            refused = !oribi_slice_equal(field_value(field), field_value(first));
        if (field->id != ORIBI_FIELD_OTHER && refused) {
            fault->reason = "field may not be repeated";
            fault->field = oribi_slice(field->name, field->name_len);
            fault->refusal = refusal_of_repeat(field->id);
            return ORIBI_EBAD;
        }
    }
    return 0;
}

/* Appends the values of all fields owned by `i` at *out and makes the result field i's value. */
static void join(struct oribi_head *head, const uint16_t *owner, uint32_t i, char **out)
{
    struct oribi_field *field = &head->fields[i];
    struct oribi_slice between = field->id == ORIBI_FIELD_COOKIE ? ORIBI_SLICE("; ") : ORIBI_SLICE(", ");
    char *start = *out;
    for (uint32_t k = i; k < head->field_count; k++) {
        if (owner[k] != i)
            continue;
        if (k != i) {
            memcpy(*out, between.p, between.n);
            *out += between.n;
        }
        memcpy(*out, head->fields[k].value, head->fields[k].value_len);
        *out += head->fields[k].value_len;
    }
    field->value = start;
    field->value_len = (uint32_t)(*out - start);
}

void oribi__head_drop_ambiguous(struct oribi_head *head)
{
    uint32_t count = 0;
    bool drop[ORIBI_FIELDS_CAP] = {false};
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *a = &head->fields[i];
        if (!memchr(a->name, '_', a->name_len))
            continue;
        for (uint32_t k = 0; k < head->field_count && !drop[i]; k++) {
            const struct oribi_field *b = &head->fields[k];
            if (k == i || a->name_len != b->name_len || (k > i && memchr(b->name, '_', b->name_len)))
                continue;
            size_t same = 0;
            while (same < a->name_len && dash_fold(a->name[same]) == dash_fold(b->name[same]))
                same++;
            drop[i] = same == a->name_len;
        }
    }
    for (uint32_t i = 0; i < head->field_count; i++)
        if (!drop[i])
            head->fields[count++] = head->fields[i];
    head->dropped_count += head->field_count - count;
    head->field_count = count;
}

/* ---- head ---- */

struct oribi_slice oribi_head_value(const struct oribi_head *head, struct oribi_slice lower)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        if (oribi_slice_equal_fold(oribi_slice(field->name, field->name_len), lower))
            return oribi_slice(field->value, field->value_len);
    }
    return oribi_slice(NULL, 0);
}

void oribi_head_release(struct oribi_head *head)
{
    oribi_mem_free(head->joined);
    head->joined = NULL;
}

/* Takes the next comma-separated element off `list`, OWS stripped; it may be empty. Quoted strings are not looked
 * into: no list read here has them. */
static bool next_element(struct oribi_slice *list, struct oribi_slice *element)
{
    if (!list->p)
        return false;
    const char *comma = list->n ? memchr(list->p, ',', list->n) : NULL;
    size_t n = comma ? (size_t)(comma - list->p) : list->n;
    const char *p = list->p;
    *list = comma ? oribi_slice(comma + 1, list->n - n - 1) : oribi_slice(NULL, 0);
    *element = strip_ows(p, p + n);
    return true;
}

/* A field whose value frames or routes: all of its line may be shown. */
static int refuse_value(struct oribi_fault *fault, const struct oribi_field *field, int error)
{
    fault->field = oribi_slice(field->name, (size_t)(field->value + field->value_len - field->name));
    return error;
}

static int decide_host(struct oribi_head *head, struct head_facts *facts, struct oribi_fault *fault)
{
    if (!(facts->seen & BIT(HOST))) {
        fault->reason = "no Host field";
        if (head->minor)
            return ORIBI_EBAD;
    } else {
        struct oribi_field *field = &head->fields[facts->index_of[ORIBI_FIELD_HOST]];
        fault->reason = "invalid Host field";
        if (oribi_authority_parse(field_value(field), (size_t)(facts->end - field->value), &head->host, &head->port) !=
            0)
            return refuse_value(fault, field, ORIBI_EBAD);
        if (facts->has_authority) { /* RFC 9112 3.2.2: the target's authority replaces the field */
            field->value = facts->authority.p;
            field->value_len = (uint32_t)facts->authority.n;
        } else if (head->host.n == 0 && head->minor) {
            fault->reason = "empty Host field";
            return refuse_value(fault, field, ORIBI_EBAD);
        }
    }
    if (facts->has_authority)
        return oribi_authority_parse(facts->authority, facts->authority.n, &head->host, &head->port);
    return 0;
}

static bool is_param(struct oribi_slice text)
{
    size_t name = oribi_scan_active->token(text.p, text.n);
    size_t at = name;
    while (at < text.n && is_ows(text.p[at]))
        at++;
    if (name == 0 || at == text.n || text.p[at] != '=')
        return false;
    at++;
    while (at < text.n && is_ows(text.p[at]))
        at++;
    if (at < text.n && text.p[at] == '"')
        return text.n - at >= 2 && text.p[text.n - 1] == '"';
    return oribi_scan_is_token(text.p + at, text.n - at);
}

/* transfer-coding = token *( OWS ";" OWS transfer-parameter ); *name gets the token. */
static bool is_coding(struct oribi_slice text, struct oribi_slice *name)
{
    *name = oribi_slice(text.p, text.n ? oribi_scan_active->token(text.p, text.n) : 0);
    struct oribi_slice rest = oribi_slice(text.p + name->n, text.n - name->n);
    while (rest.n && is_ows(*rest.p))
        rest = oribi_slice(rest.p + 1, rest.n - 1);
    while (rest.n && *rest.p == ';') {
        const char *start = rest.p + 1;
        const char *next = rest.n > 1 ? memchr(start, ';', rest.n - 1) : NULL;
        size_t n = next ? (size_t)(next - start) : rest.n - 1;
        struct oribi_slice param = strip_ows(start, start + n);
        rest = oribi_slice(start + n, rest.n - 1 - n);
        if (param.n == 0 || !is_param(param))
            return false;
    }
    return name->n && rest.n == 0;
}

static bool holds_chunked(struct oribi_slice name)
{
    for (size_t i = 0; i + 7 <= name.n; i++)
        if (oribi_slice_equal_fold(oribi_slice(name.p + i, 7), ORIBI_SLICE("chunked")))
            return true;
    return false;
}

/* Only `chunked` alone is decoded. A list of well-formed codings we do not know is 501; what is malformed, names
 * chunked anywhere but at the end, or merely resembles it ("xchunked", "identity") is an attempt at confusion and
 * 400. */
static int decide_coding(struct oribi_slice value, struct oribi_fault *fault)
{
    if (oribi_slice_equal_fold(value, ORIBI_SLICE("chunked")))
        return 0;
    struct oribi_slice list = value;
    struct oribi_slice element;
    struct oribi_slice name;
    bool last = false;
    fault->reason = "malformed Transfer-Encoding";
    while (next_element(&list, &element)) {
        if (last || !is_coding(element, &name) || oribi_slice_equal_fold(name, ORIBI_SLICE("identity")))
            return ORIBI_EBAD;
        last = oribi_slice_equal_fold(element, ORIBI_SLICE("chunked"));
        if (!last && holds_chunked(name))
            return ORIBI_EBAD;
    }
    fault->reason = "unknown transfer coding";
    return ORIBI_ECODING;
}

static int decide_length(struct oribi_slice value, const struct oribi_limits *limits, int64_t *length,
                         struct oribi_fault *fault)
{
    uint64_t sum = 0;
    bool over = false;
    fault->reason = "invalid Content-Length";
    for (size_t i = 0; i < value.n; i++) {
        uint8_t digit = (uint8_t)(value.p[i] - '0');
        if (digit > 9)
            return ORIBI_EBAD;
        if (sum > ((uint64_t)INT64_MAX - digit) / 10)
            over = true; /* keep looking: what is no number is 400, however long it is */
        else
            sum = sum * 10 + digit;
    }
    if (value.n == 0)
        return ORIBI_EBAD;
    if (over || sum > (uint64_t)limits->body_bytes_max) {
        fault->reason = "Content-Length over body_bytes_max";
        return ORIBI_EBODY;
    }
    *length = (int64_t)sum;
    return 0;
}

static int decide_framing(struct oribi_head *head, const struct oribi_limits *limits, const struct head_facts *facts,
                          struct oribi_fault *fault)
{
    uint64_t both = facts->seen & (BIT(CONTENT_LENGTH) | BIT(TRANSFER_ENCODING));
    if (!both)
        return 0;
    head->has_body = true;
    if (both == BIT(CONTENT_LENGTH)) {
        const struct oribi_field *field = &head->fields[facts->index_of[ORIBI_FIELD_CONTENT_LENGTH]];
        int error = decide_length(field_value(field), limits, &head->content_length, fault);
        return error ? refuse_value(fault, field, error) : 0;
    }
    fault->reason = "Transfer-Encoding with Content-Length";
    const struct oribi_field *coding = &head->fields[facts->index_of[ORIBI_FIELD_TRANSFER_ENCODING]];
    if (both != BIT(TRANSFER_ENCODING))
        return refuse_value(fault, coding, ORIBI_EBAD);
    fault->reason = "Transfer-Encoding in HTTP/1.0"; /* RFC 9112 6.1: framing is faulty */
    if (!head->minor)
        return refuse_value(fault, coding, ORIBI_EBAD);
    head->chunked = true;
    head->content_length = -1;
    int error = decide_coding(field_value(coding), fault);
    return error ? refuse_value(fault, coding, error) : 0;
}

/* Is it "keep-alive", which nearly every client sends? Without a loop. A value holds no controls, so the bit 0x20 only
 * folds letters here. */
static bool is_keep_alive(struct oribi_slice value)
{
    static const char text[] = "keep-alive";
    return value.n == 10 && folded_word(value.p) == folded_word(text) &&
           folded_word(value.p + 2) == folded_word(text + 2);
}

static void decide_connection(struct oribi_head *head, const struct head_facts *facts)
{
    head->keep_alive = head->minor > 0;
    if (!(facts->seen & BIT(CONNECTION)))
        return;
    struct oribi_slice list = field_value(&head->fields[facts->index_of[ORIBI_FIELD_CONNECTION]]);
    struct oribi_slice element;
    if (is_keep_alive(list)) {
        head->keep_alive = true;
        return;
    }
    bool closes = false;
    while (next_element(&list, &element)) {
        if (oribi_slice_equal_fold(element, ORIBI_SLICE("close")))
            closes = true;
        else if (oribi_slice_equal_fold(element, ORIBI_SLICE("keep-alive")))
            head->keep_alive = true;
        else if (oribi_slice_equal_fold(element, ORIBI_SLICE("upgrade"))) /* RFC 9110 7.8: not in 1.0 */
            head->upgrade = head->minor && (facts->seen & BIT(UPGRADE));
    }
    if (closes)
        head->keep_alive = false;
}

/* EventSource sends the type alone. */
static bool decide_events(const struct oribi_head *head, const struct head_facts *facts)
{
    if (!(facts->seen & BIT(ACCEPT)))
        return false;
    const struct oribi_field *field = &head->fields[facts->index_of[ORIBI_FIELD_ACCEPT]];
    return field->value_len >= sizeof("text/event-stream") - 1 && oribi_event_stream_is_accepted(field_value(field)) &&
           oribi_slice_equal(head->method, ORIBI_SLICE("GET"));
}

static int decide_expect(struct oribi_head *head, const struct head_facts *facts, struct oribi_fault *fault)
{
    if (!(facts->seen & BIT(EXPECT)))
        return 0;
    const struct oribi_field *field = &head->fields[facts->index_of[ORIBI_FIELD_EXPECT]];
    if (!oribi_slice_equal_fold(field_value(field), ORIBI_SLICE("100-continue"))) {
        fault->reason = "unknown expectation";
        return refuse_value(fault, field, ORIBI_EEXPECT);
    }
    head->expect_continue = head->minor && (head->chunked || head->content_length > 0);
    return 0;
}

int oribi__head_finish(struct oribi_head *head, const struct oribi_limits *limits, struct head_facts *facts,
                       struct oribi_fault *fault)
{
    if (facts->shadow.p) {
        fault->reason = "field name imitates a framing field";
        fault->field = facts->shadow;
        fault->refusal = ORIBI_REFUSAL_FRAMING;
        return ORIBI_EBAD;
    }
    if (facts->repeated || facts->others_repeated) {
        int error = oribi__head_fold_repeats(head, fault);
        if (error)
            return error;
    }
    if (facts->underscores)
        oribi__head_drop_ambiguous(head);
    if (facts->repeated || facts->others_repeated || facts->underscores)
        for (uint32_t i = 0; i < head->field_count; i++)
            facts->index_of[head->fields[i].id] = (uint8_t)i;

    enum oribi_refusal bad = ORIBI_REFUSAL_HOST;
    int error = decide_host(head, facts, fault);
    if (!error) {
        bad = ORIBI_REFUSAL_FRAMING;
        error = decide_framing(head, limits, facts, fault);
    }
    if (!error)
        error = decide_expect(head, facts, fault);
    if (error) {
        fault->refusal = oribi_refusal_of(error, bad);
        return error;
    }
    decide_connection(head, facts);
    head->wants_events = decide_events(head, facts);
    fault->reason = NULL;
    return 0;
}
