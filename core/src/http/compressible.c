/* Which answers are compressed. One pass over the headers collects what counts (struct seen), the rest decides.
 * Reading order: oribi_compress_decide, look, oribi_compress_headers; then what the operator writes. */
#include "oribi/http/compress.h"

#include "oribi/base/error.h"
#include "oribi/http/fields.h"
#include "http/etag.h"
#include "oribi/http/syntax.h"

#include <assert.h>
#include <stdio.h>

const char *const oribi_compress_types_default =
    "text/* application/json application/*+json application/javascript application/x-javascript application/xml "
    "application/*+xml application/wasm application/x-ndjson application/yaml application/x-www-form-urlencoded "
    "application/vnd.ms-fontobject font/ttf font/otf font/collection image/svg+xml image/bmp image/x-icon "
    "image/vnd.microsoft.icon model/*+json";

/* ---- what an answer's headers say ---- */

struct seen {
    struct oribi_slice type; /* without parameters; n is 0: none */
    int64_t content_length;  /* -1: none */
    uint32_t etag;           /* header_count: none */
    uint32_t vary;           /* the last one */
    bool varies;             /* by Accept-Encoding, or by everything */
    bool excluded;
    bool is_private;
};

static bool is_name(const struct oribi_header *header, struct oribi_slice lower)
{
    return oribi_slice_equal_fold(oribi_slice(header->name, header->name_len), lower);
}

static struct oribi_slice value_of(const struct oribi_header *header)
{
    return strip_ows(header->value, header->value + header->value_len);
}

static bool begins_with(struct oribi_slice text, struct oribi_slice lower)
{
    return text.n >= lower.n && oribi_slice_equal_fold(oribi_slice(text.p, lower.n), lower);
}

static void look_at_cache_control(struct oribi_slice list, struct seen *seen)
{
    struct oribi_slice element;
    while (list_next(&list, &element)) {
        seen->excluded |= oribi_slice_equal_fold(element, ORIBI_SLICE("no-transform"));
        seen->is_private |= oribi_slice_equal_fold(element, ORIBI_SLICE("no-store")) ||
                            oribi_slice_equal_fold(element, ORIBI_SLICE("private")) ||
                            begins_with(element, ORIBI_SLICE("private="));
    }
}

static void look_at_vary(struct oribi_slice list, struct seen *seen)
{
    struct oribi_slice element;
    while (list_next(&list, &element))
        seen->varies |= oribi_slice_equal(element, ORIBI_SLICE("*")) ||
                        oribi_slice_equal_fold(element, ORIBI_SLICE("accept-encoding"));
}

static void look_at_length(struct oribi_slice text, struct seen *seen)
{
    int64_t length = 0;
    for (size_t i = 0; i < text.n; i++) {
        uint8_t digit = (uint8_t)(text.p[i] - '0');
        if (digit > 9 || length > (INT64_MAX - 9) / 10) {
            seen->excluded = true; /* the writer of heads has its say */
            return;
        }
        length = length * 10 + digit;
    }
    seen->excluded |= seen->content_length >= 0 && seen->content_length != length;
    if (text.n > 0)
        seen->content_length = length;
}

/* The length of a name tells most of them apart. */
static void look_at(const struct oribi_header *header, uint32_t index, struct seen *seen)
{
    switch (header->name_len) {
    case 4:
        if (is_name(header, ORIBI_SLICE("etag"))) {
            seen->etag = index;
            seen->excluded |= header->value_len > ORIBI_COMPRESS_ETAG_BYTES_MAX;
        } else if (is_name(header, ORIBI_SLICE("vary"))) {
            seen->vary = index;
            look_at_vary(value_of(header), seen);
        }
        break;
    case 6:
        seen->excluded |= is_name(header, ORIBI_SLICE("digest"));
        break;
    case 10:
        seen->is_private |= is_name(header, ORIBI_SLICE("set-cookie"));
        break;
    case 11:
        seen->excluded |= is_name(header, ORIBI_SLICE("content-md5")) || is_name(header, ORIBI_SLICE("repr-digest"));
        break;
    case 12:
        if (is_name(header, ORIBI_SLICE("content-type"))) {
            const char *end = memchr(header->value, ';', header->value_len);
            seen->type = strip_ows(header->value, end ? end : header->value + header->value_len);
        }
        break;
    case 13:
        seen->excluded |= is_name(header, ORIBI_SLICE("content-range"));
        if (is_name(header, ORIBI_SLICE("cache-control")))
            look_at_cache_control(value_of(header), seen);
        break;
    case 14:
        seen->excluded |= is_name(header, ORIBI_SLICE("content-digest"));
        if (is_name(header, ORIBI_SLICE("content-length")))
            look_at_length(value_of(header), seen);
        break;
    case 16:
        seen->excluded |= is_name(header, ORIBI_SLICE("content-encoding"));
        break;
    case 17:
        seen->excluded |= is_name(header, ORIBI_SLICE("transfer-encoding"));
        break;
    default:
        break;
    }
}

static void look(const struct oribi_compress_question *question, struct seen *seen)
{
    *seen = (struct seen){.content_length = -1, .etag = question->header_count, .vary = question->header_count};
    for (uint32_t i = 0; i < question->header_count; i++)
        if (question->headers[i].value) /* an undefined one is left out later */
            look_at(&question->headers[i], i, seen);
}

/* ---- the decision ---- */

/* type/subtype, type/ *, type/ *+suffix */
static bool type_matches(struct oribi_slice type, struct oribi_slice pattern)
{
    const char *star = memchr(pattern.p, '*', pattern.n);
    if (!star)
        return oribi_slice_equal_fold(type, pattern);
    struct oribi_slice front = oribi_slice(pattern.p, (size_t)(star - pattern.p));
    struct oribi_slice back = oribi_slice(star + 1, pattern.n - front.n - 1);
    return type.n > front.n + back.n && begins_with(type, front) &&
           oribi_slice_equal_fold(oribi_slice(type.p + type.n - back.n, back.n), back);
}

static bool type_fits(const struct oribi_compress_rules *rules, struct oribi_slice type)
{
    if (type.n == 0 || oribi_slice_equal_fold(type, ORIBI_SLICE("text/event-stream")))
        return false;
    for (uint32_t i = 0; i < rules->type_count; i++)
        if (type_matches(type, rules->types[i]))
            return true;
    return false;
}

/* Whether the body has the length that the rules want; the body's own count stands against a Content-Length. */
static bool length_fits(const struct oribi_compress_question *question, const struct seen *seen)
{
    int64_t length = question->body_len;
    if (question->head->is_head)
        length = seen->content_length >= 0 ? seen->content_length : length > 0 ? length : -1;
    else if (length < 0)
        length = seen->content_length;
    else if (seen->content_length >= 0 && seen->content_length != length)
        return false;
    return length < 0 || (length > 0 && length >= question->rules->min);
}

static bool may_be(const struct oribi_compress_question *question, const struct seen *seen)
{
    int status = question->status;
    return status >= 200 && status != 204 && status != 205 && status != 206 && status != 304 && !seen->excluded &&
           (!seen->is_private || question->rules->private_too) && type_fits(question->rules, seen->type) &&
           length_fits(question, seen) && !oribi_slice_equal(question->head->method, ORIBI_SLICE("CONNECT"));
}

static enum oribi_coding choose(const struct oribi_compress_question *question)
{
    struct oribi_slice accepted = {NULL, 0};
    const struct oribi_head *head = question->head;
    for (uint32_t i = 0; i < head->field_count; i++)
        if (head->fields[i].id == ORIBI_FIELD_ACCEPT_ENCODING)
            accepted = oribi_slice(head->fields[i].value, head->fields[i].value_len);
    enum oribi_coding coding =
        oribi_accept_encoding_choose(accepted, question->rules->offered, question->rules->offered_count);
    return coding == ORIBI_CODING_NONE ? ORIBI_CODING_IDENTITY : coding;
}

/* The answer's entity-tag, if it has one that can be made weak. */
static bool read_own_etag(const struct oribi_compress_question *question, uint32_t index, struct etag *tag)
{
    if (index == question->header_count)
        return false;
    struct oribi_slice text = value_of(&question->headers[index]);
    return text.n <= ORIBI_COMPRESS_ETAG_BYTES_MAX && read_etag(text, tag);
}

/* Which forms of the tag the client has. */
static void find_forms(struct oribi_slice list, struct oribi_slice opaque, bool *weak, bool *strong)
{
    struct etag tag;
    *weak = *strong = false;
    while (next_etag(&list, &tag) == ETAG_ONE)
        if (oribi_slice_equal(tag.opaque, opaque))
            *(tag.weak ? weak : strong) = true;
}

/* A request whose If-None-Match was expanded: 304 also where the application has compared text and found none. */
static void decide_not_modified(const struct oribi_compress_question *question, const struct etag *own,
                                struct oribi_compress_decision *decision)
{
    bool weak;
    bool strong;
    const struct oribi_head *head = question->head;
    find_forms(question->none_match, own->opaque, &weak, &strong);
    bool reads = head->is_head || oribi_slice_equal(head->method, ORIBI_SLICE("GET"));
    decision->not_modified = question->status == 200 && reads && (weak || strong);
    if (decision->not_modified || question->status == 304)
        decision->weakens = decision->varies = weak && !strong && !own->weak;
}

void oribi_compress_decide(const struct oribi_compress_question *question, struct oribi_compress_decision *decision)
{
    struct seen seen;
    struct etag own = {.weak = false};
    look(question, &seen);
    *decision = (struct oribi_compress_decision){.coding = ORIBI_CODING_IDENTITY,
                                                 .is_private = seen.is_private,
                                                 .content_length = seen.content_length,
                                                 .etag = seen.etag,
                                                 .vary = seen.vary};
    bool has_own = read_own_etag(question, seen.etag, &own);
    if (question->none_match.p && has_own)
        decide_not_modified(question, &own, decision);
    if (!decision->not_modified && may_be(question, &seen)) {
        decision->varies = true;
        decision->coding = choose(question);
        decision->weakens = decision->coding != ORIBI_CODING_IDENTITY && has_own && !own.weak;
    }
    decision->varies = decision->varies && !seen.varies;
    decision->changes =
        decision->varies || decision->weakens || decision->not_modified || decision->coding != ORIBI_CODING_IDENTITY;
}

/* ---- the headers ---- */

static bool is_dropped(const struct oribi_header *header, const struct oribi_compress_decision *decision)
{
    bool codes = decision->coding != ORIBI_CODING_IDENTITY;
    if (header->name_len == 14 && (codes || decision->not_modified || decision->weakens))
        return is_name(header, ORIBI_SLICE("content-length"));
    if (header->name_len == 13 && codes) /* ranges are of the bytes that the application has */
        return is_name(header, ORIBI_SLICE("accept-ranges"));
    if (header->name_len == 12 && decision->not_modified)
        return is_name(header, ORIBI_SLICE("content-type"));
    return header->name_len == 16 && decision->not_modified && is_name(header, ORIBI_SLICE("content-encoding"));
}

static void weaken(struct oribi_header *header, struct oribi_compress_texts *texts)
{
    struct oribi_slice tag = value_of(header);
    memcpy(texts->etag, "W/", 2);
    memcpy(texts->etag + 2, tag.p, tag.n);
    header->value = texts->etag;
    header->value_len = (uint32_t)tag.n + 2;
}

/* False where the value is too long, or has nothing in it. */
static bool add_to_vary(struct oribi_header *header, struct oribi_compress_texts *texts)
{
    struct oribi_slice list = value_of(header);
    const struct oribi_slice more = ORIBI_SLICE(", Accept-Encoding");
    if (list.n == 0 || list.n > sizeof(texts->vary) - more.n)
        return false;
    memcpy(texts->vary, list.p, list.n);
    memcpy(texts->vary + list.n, more.p, more.n);
    header->value = texts->vary;
    header->value_len = (uint32_t)(list.n + more.n);
    return true;
}

uint32_t oribi_compress_headers(const struct oribi_compress_question *question,
                                const struct oribi_compress_decision *decision, struct oribi_compress_texts *texts,
                                struct oribi_header *dst)
{
    uint32_t count = 0;
    bool adds_vary = decision->varies;
    for (uint32_t i = 0; i < question->header_count; i++) {
        struct oribi_header *header = &dst[count];
        *header = question->headers[i];
        if (is_dropped(header, decision))
            continue;
        if (i == decision->etag && decision->weakens)
            weaken(header, texts);
        if (i == decision->vary && decision->varies)
            adds_vary = !add_to_vary(header, texts);
        count++;
    }
    if (decision->coding != ORIBI_CODING_IDENTITY) {
        struct oribi_slice name = oribi_coding_name(decision->coding);
        dst[count++] = (struct oribi_header){"Content-Encoding", name.p, 16, (uint32_t)name.n};
    }
    if (adds_vary)
        dst[count++] = (struct oribi_header){"Vary", "Accept-Encoding", 4, 15};
    return count;
}

static void put(char *dst, size_t *len, struct oribi_slice text)
{
    memcpy(dst + *len, text.p, text.n);
    *len += text.n;
}

size_t oribi_compress_expand_tags(struct oribi_slice value, char *dst, size_t cap)
{
    struct oribi_slice list = value;
    struct etag tag;
    enum etag_next next;
    bool expanded = false;
    size_t len = 0;
    while ((next = next_etag(&list, &tag)) == ETAG_ONE) {
        if (cap - len < 2 * tag.opaque.n + 6)
            return 0;
        if (len > 0)
            put(dst, &len, ORIBI_SLICE(", "));
        if (tag.weak) {
            put(dst, &len, ORIBI_SLICE("W/"));
            put(dst, &len, tag.opaque);
            put(dst, &len, ORIBI_SLICE(", "));
            expanded = true;
        }
        put(dst, &len, tag.opaque);
    }
    return next == ETAG_END && expanded ? len : 0;
}

/* ---- what the operator writes ---- */

/* Takes the next word, which blanks or commas separate, off the text. */
static bool next_word(const char **text, struct oribi_slice *word)
{
    const char *p = *text + strspn(*text, " \t,");
    *word = oribi_slice(p, strcspn(p, " \t,"));
    *text = p + word->n;
    return word->n > 0;
}

static int refuse(char *error, const char *option, struct oribi_slice word, const char *what)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s %.*s: %s", option, word.n < 64 ? (int)word.n : 64, word.p, what);
    return ORIBI_EINVAL;
}

static enum oribi_coding coding_named(struct oribi_slice word)
{
    for (int i = ORIBI_CODING_IDENTITY + 1; i < ORIBI_CODING_COUNT; i++)
        if (oribi_slice_equal(word, oribi_coding_name((enum oribi_coding)i)))
            return (enum oribi_coding)i;
    return ORIBI_CODING_NONE;
}

int oribi_compress_rules_codings(struct oribi_compress_rules *rules, const char *text, char *error)
{
    struct oribi_slice word;
    rules->offered_count = 0;
    if (strcmp(text, "off") == 0)
        return 0;
    while (next_word(&text, &word)) {
        enum oribi_coding coding = coding_named(word);
        if (coding == ORIBI_CODING_NONE)
            return refuse(error, "compress", word, "takes gzip, zstd and br");
        if (!oribi_compress_has(coding))
            return refuse(error, "compress", word, "this build has no library for it (see --version)");
        for (size_t i = 0; i < rules->offered_count; i++)
            if (rules->offered[i] == coding)
                return refuse(error, "compress", word, "is given twice");
        rules->offered[rules->offered_count++] = coding;
    }
    if (rules->offered_count > 0)
        rules->offered[rules->offered_count++] = ORIBI_CODING_IDENTITY;
    return 0;
}

/* type "/" ( subtype / "*" / "*+" suffix ), without upper case. */
static bool is_type_pattern(struct oribi_slice word)
{
    const char *slash = memchr(word.p, '/', word.n);
    size_t stars = 0;
    if (!slash || slash == word.p || slash == word.p + word.n - 1)
        return false;
    for (size_t i = 0; i < word.n; i++) {
        char c = word.p[i];
        stars += c == '*';
        if (c <= ' ' || c >= 0x7f || (c >= 'A' && c <= 'Z') || strchr("\"(),;<>@[]?={}\\:", c) ||
            (c == '/' && word.p + i != slash))
            return false;
    }
    return stars == 0 || (stars == 1 && slash[1] == '*' && (slash + 2 == word.p + word.n || slash[2] == '+'));
}

int oribi_compress_rules_types(struct oribi_compress_rules *rules, const char *text, char *error)
{
    struct oribi_slice word;
    while (next_word(&text, &word)) {
        if (word.n > ORIBI_COMPRESS_TYPE_BYTES_MAX || !is_type_pattern(word))
            return refuse(error, "compress_types", word, "takes types such as text/*, application/json, image/*+xml");
        if (rules->type_count == ORIBI_COMPRESS_TYPES_MAX)
            return refuse(error, "compress_types", word, "is one type too many (128 is the most)");
        rules->types[rules->type_count++] = word;
    }
    return 0;
}
