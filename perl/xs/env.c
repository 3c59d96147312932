/* The PSGI environment of a request.
 *
 * Finding a place for 40 keys in a hash would be the costliest part of a request. But clients of one kind send the
 * same fields in the same order, so a worker keeps hashes by shape (which known fields, in which order) that have
 * the keys and no values. newHVhv() copies one bucket by bucket, without looking a key up, and the values are set in
 * one pass over the copy:
 *
 *   PSGI_KEY_REQUEST_METHOD ... PSGI_KEY_UNREAD | first known field, second, ...
 *   a number each: env_keys.h                   | PSGI_KEY_COUNT + number
 *
 * Fields outside the core's table, and those of shapes that are not kept, are stored key by key, under hash values
 * computed once where there are such. Constant strings are scalars that share their text with Perl's table of hash
 * keys: copying one allocates no buffer, and an application that writes to its copy gets a text of its own. Nothing
 * is read-only.
 *
 * An application that leaves the copy as it was made, but for values, leaves it to the next request of that kind: its
 * values are freed with the request, and the next ones are set without a copy.
 *
 * Handles, arrays and closures are lent to one environment after the other: lent.c. */
#include "xs/binding.h"

static const char *const key_names[PSGI_KEY_COUNT] = {
#define PSGI_KEY_NAME(id, key, when, value) [PSGI_KEY_##id] = key,
    PSGI_KEYS(PSGI_KEY_NAME)
#undef PSGI_KEY_NAME
};

static const char *const method_names[] = {PSGI_METHODS};

static SV *shared_text(pTHX_ const char *text)
{
    return newSVpvn_share(text, (I32)strlen(text), 0);
}

/* A new scalar with the text of `shared`, which came from newSVpvn_share(). */
static inline SV *copy_shared(pTHX_ SV *shared)
{
    return newSVhek(SvSHARED_HEK_FROM_PV(SvPVX_const(shared)));
}

static inline SV *text_of(pTHX_ struct oribi_slice slice)
{
    return newSVpvn(slice.p ? slice.p : "", slice.n);
}

/* Takes value. */
static inline void store_under(pTHX_ HV *env, SV *key, SV *value)
{
    if (!hv_store_ent(env, key, value, SvSHARED_HASH(key)))
        SvREFCNT_dec(value);
}

static inline void store(pTHX_ struct psgi_worker *w, HV *env, enum psgi_key key, SV *value)
{
    store_under(aTHX_ env, w->keys[key], value);
}

SV *psgi_env_get(pTHX_ struct psgi_worker *w, HV *env, enum psgi_key key)
{
    if (UNLIKELY(SvREADONLY((SV *)env)) && !hv_exists_ent(env, w->keys[key], SvSHARED_HASH(w->keys[key])))
        return NULL; /* the application has locked the keys: to fetch another one would die */
    HE *entry = hv_fetch_ent(env, w->keys[key], 0, SvSHARED_HASH(w->keys[key]));
    return entry ? HeVAL(entry) : NULL;
}

/* --- values --- */

/* Decoded once, a decoded NUL stays a NUL. NULL: it cannot be, and the core has answered. */
static SV *path_info_of(pTHX_ struct oribi_req *req)
{
    struct oribi_slice path = req->head->path;
    SV *sv = text_of(aTHX_ path);
    if (path.n == 0 || !memchr(path.p, '%', path.n))
        return sv;
    ssize_t n = oribi_req_decode_path(req, SvPVX(sv));
    if (n < 0) {
        SvREFCNT_dec(sv);
        return NULL;
    }
    SvCUR_set(sv, (STRLEN)n);
    *SvEND(sv) = '\0';
    return sv;
}

/* The target without scheme and authority, which PSGI keeps out of REQUEST_URI. */
static SV *request_uri_of(pTHX_ const struct oribi_head *head)
{
    struct oribi_slice target = head->target;
    if (target.n > 0 && (target.p[0] == '/' || target.p[0] == '*'))
        return text_of(aTHX_ target);
    SV *sv = text_of(aTHX_ head->path);
    if (head->query.n > 0) {
        sv_catpvn(sv, "?", 1);
        sv_catpvn(sv, head->query.p, head->query.n);
    }
    return sv;
}

static SV *method_of(pTHX_ struct psgi_worker *w, struct oribi_slice method)
{
    for (int i = 0; i < PSGI_METHOD_COUNT; i++)
        if (SvCUR(w->methods[i]) == method.n && memcmp(SvPVX_const(w->methods[i]), method.p, method.n) == 0)
            return copy_shared(aTHX_ w->methods[i]);
    return text_of(aTHX_ method);
}

/* What is nearly always as in the request before is not made anew. */
static SV *follow(pTHX_ struct psgi_worker *w, enum psgi_followed followed, struct oribi_slice slice)
{
    SV *known = w->followed[followed];
    if (!known || SvCUR(known) != slice.n || memcmp(SvPVX_const(known), slice.p, slice.n) != 0) {
        SvREFCNT_dec(known);
        known = w->followed[followed] = newSVpvn_share(slice.n ? slice.p : "", (I32)slice.n, 0);
    }
    return copy_shared(aTHX_ known);
}

/* A peer on a unix socket has none. */
static bool has_address(const struct oribi_req *req)
{
    return req->remote_addr.n > 0;
}

/* `known` says whether those in the core's table are to be stored, too. */
static void store_fields(pTHX_ struct psgi_worker *w, HV *env, const struct oribi_head *head, bool known)
{
    char name[ORIBI_FIELD_NAME_BYTES_MAX + 5];
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        if (field->id != ORIBI_FIELD_OTHER) {
            if (known)
                store_under(aTHX_ env, w->field_keys[field->id], newSVpvn(field->value, field->value_len));
            continue;
        }
        SV *value = newSVpvn(field->value, field->value_len);
        size_t len = oribi_field_write_env_key(field, name);
        if (!hv_store(env, name, (I32)len, value, 0))
            SvREFCNT_dec(value);
    }
}

/* Fields behind a chunked body: in a hash of their own, so that none can pass for one of the head. */
static void store_trailers(pTHX_ struct psgi_worker *w, HV *env, const struct oribi_req *req)
{
    HV *trailers = newHV();
    for (uint32_t i = 0; i < req->trailer_count; i++) {
        const struct oribi_field *field = &req->trailers[i];
        SV *value = newSVpvn(field->value, field->value_len);
        if (!hv_store(trailers, field->name, (I32)field->name_len, value, 0))
            SvREFCNT_dec(value);
    }
    store(aTHX_ w, env, PSGI_KEY_TRAILERS, newRV_noinc((SV *)trailers));
}

static SV *lend(struct psgi_worker *w, enum psgi_lazy_kind kind)
{
    return SvREFCNT_inc_simple_NN(w->lent.lazy[kind]);
}

/* A value for each key of ours that the environment has. */
static void set_values(pTHX_ struct psgi_worker *w, SV **values, SV *path_info, const struct oribi_req *req)
{
    const struct oribi_head *head = req->head;
    bool addressed = has_address(req);
#define PSGI_SET_VALUE(id, key, when, value)                                                                           \
    if (when)                                                                                                          \
        values[PSGI_KEY_##id] = value;
    PSGI_KEYS(PSGI_SET_VALUE)
#undef PSGI_SET_VALUE
}

/* What the client has sent in advance in the protocol that it asks for: sysread on psgix.io would not give it. */
static void store_unread(pTHX_ struct psgi_worker *w, HV *env, const struct oribi_req *req)
{
    struct oribi_slice behind = oribi_req_behind(req);
    if (behind.n > 0)
        store(aTHX_ w, env, PSGI_KEY_UNREAD, newSVpvn(behind.p, behind.n));
}

/* --- shapes --- */

/* True for a key that every environment has, of clients with an address or of those without. */
static bool in_every_env(const struct psgi_worker *w, enum psgi_key key, bool addressed)
{
    switch (key) {
#define PSGI_KEY_WHEN(id, text, when, value)                                                                           \
    case PSGI_KEY_##id:                                                                                                \
        return when;
        PSGI_KEYS(PSGI_KEY_WHEN)
#undef PSGI_KEY_WHEN
    default:
        return false;
    }
}

static uint8_t number_of(const struct psgi_worker *w, const struct oribi_shape *shape, const HEK *key)
{
    for (uint8_t i = 0; i < PSGI_KEY_COUNT; i++)
        if (SvSHARED_HEK_FROM_PV(SvPVX_const(w->keys[i])) == key)
            return i;
    for (uint32_t i = 0; shape && i < shape->field_count; i++)
        if (SvSHARED_HEK_FROM_PV(SvPVX_const(w->field_keys[shape->ids[i]])) == key)
            return (uint8_t)(PSGI_KEY_COUNT + i);
    return 0; /* there are no other keys */
}

/* Perl promises no order; that a copy has its template's is tried once. Gives a copy's flags. */
static bool copies_keep_order(pTHX_ HV *env, U32 *flags)
{
    HV *copy = newHVhv(env);
    bool same = HvMAX(copy) == HvMAX(env);
    for (STRLEN i = 0; same && i <= HvMAX(env); i++) {
        HE *b = HvARRAY(copy)[i];
        for (HE *a = HvARRAY(env)[i]; a && same; a = HeNEXT(a), b = HeNEXT(b))
            same = b && HeKEY_hek(a) == HeKEY_hek(b);
        same = same && !b;
    }
    *flags = SvFLAGS(copy);
    SvREFCNT_dec((SV *)copy);
    return same;
}

/* `shape` NULL: no fields. A table that must grow costs more than one that is too large. */
static void make_template(pTHX_ const struct psgi_worker *w, const struct oribi_shape *shape, bool addressed, IV room,
                          struct psgi_template *template)
{
    HV *env = template->env = newHV();
    hv_ksplit(env, room);
    for (int i = 0; i < PSGI_KEY_COUNT; i++)
        if (in_every_env(w, (enum psgi_key)i, addressed))
            store_under(aTHX_ env, w->keys[i], &PL_sv_undef);
    for (uint32_t i = 0; shape && i < shape->field_count; i++)
        store_under(aTHX_ env, w->field_keys[shape->ids[i]], &PL_sv_undef);
    uint8_t *next = template->order;
    for (STRLEN i = 0; i <= HvMAX(env); i++)
        for (HE *entry = HvARRAY(env)[i]; entry; entry = HeNEXT(entry))
            *next++ = number_of(w, shape, HeKEY_hek(entry));
    template->ordered = copies_keep_order(aTHX_ env, &template->flags);
}

/* Rooms of the tables for requests with few fields, and with a browser's. */
enum { SMALL_ROOM = 32, LARGE_ROOM = 64 };

static bool is_small(const struct psgi_worker *w, const struct oribi_head *head)
{
    return head->field_count <= w->small_fields;
}

static void drop_template(pTHX_ struct psgi_template *template)
{
    SvREFCNT_dec((SV *)template->env);
    SvREFCNT_dec((SV *)template->kept);
    template->env = template->kept = NULL;
}

/* The template for these fields, or NULL. */
static struct psgi_template *find_template(pTHX_ struct psgi_worker *w, const struct oribi_req *req)
{
    bool met;
    int slot = oribi_shapes_find(&w->shapes, req->head, has_address(req), &met);
    if (slot < 0)
        return NULL;
    struct psgi_template *template = &w->shape_templates[slot];
    if (!met) {
        drop_template(aTHX_ template);
        return NULL;
    }
    if (!template->env)
        make_template(aTHX_ w, &w->shapes.slots[slot], has_address(req),
                      is_small(w, req->head) ? SMALL_ROOM : LARGE_ROOM, template);
    return template->ordered ? template : NULL;
}

/* A copy with its values, which it takes. */
static HV *fill_template(pTHX_ struct psgi_worker *w, struct psgi_template *template, SV **values)
{
    HV *env = template->kept ? template->kept : newHVhv(template->env);
    template->kept = NULL;
    w->used = template;
    const uint8_t *next = template->order;
    for (STRLEN i = 0; i <= HvMAX(env); i++) {
        for (HE *entry = HvARRAY(env)[i]; entry; entry = HeNEXT(entry)) {
            if (HeVAL(entry) != &PL_sv_undef)
                SvREFCNT_dec(HeVAL(entry)); /* a Perl that copies it */
            HeVAL(entry) = values[*next++];
        }
    }
    return env;
}

/* The values by number where Perl allows it, else by key. */
static HV *fill_plain(pTHX_ struct psgi_worker *w, const struct oribi_req *req, SV **values)
{
    bool addressed = has_address(req);
    struct psgi_template *template = &w->templates[addressed][is_small(w, req->head)];
    if (template->ordered)
        return fill_template(aTHX_ w, template, values);
    HV *env = newHV();
    for (int i = 0; i < PSGI_KEY_COUNT; i++)
        if (in_every_env(w, (enum psgi_key)i, addressed))
            store(aTHX_ w, env, (enum psgi_key)i, values[i]);
    return env;
}

HV *psgi_env_build(pTHX_ struct psgi_worker *w, struct oribi_req *req)
{
    SV *values[PSGI_KEY_COUNT + ORIBI_SHAPE_FIELDS_MAX];
    const struct oribi_head *head = req->head;
    SV *path_info = path_info_of(aTHX_ req);
    if (!path_info)
        return NULL;
    set_values(aTHX_ w, values, path_info, req);
    w->used = NULL;
    struct psgi_template *template = find_template(aTHX_ w, req);
    HV *env;
    if (template) {
        uint32_t count = PSGI_KEY_COUNT;
        for (uint32_t i = 0; i < head->field_count; i++)
            if (head->fields[i].id != ORIBI_FIELD_OTHER)
                values[count++] = newSVpvn(head->fields[i].value, head->fields[i].value_len);
        env = fill_template(aTHX_ w, template, values);
    } else {
        env = fill_plain(aTHX_ w, req, values);
    }
    store_fields(aTHX_ w, env, head, !template);
    if (req->trailer_count > 0)
        store_trailers(aTHX_ w, env, req);
    if (head->upgrade)
        store_unread(aTHX_ w, env, req);
    return env;
}

/* --- after the request --- */

/* Is this a copy as it was made, but for its values, and is ours the only reference to it? Iterators and weak
 * references show in the flags; keys are compared, since one can be deleted and another stored. */
static bool is_as_made(const struct psgi_template *template, HV *env)
{
    if (SvREFCNT((SV *)env) != 1 || SvFLAGS(env) != template->flags || SvMAGIC((SV *)env) ||
        HvTOTALKEYS(env) != HvTOTALKEYS(template->env) || HvMAX(env) != HvMAX(template->env))
        return false;
    for (STRLEN i = 0; i <= HvMAX(env); i++) {
        HE *b = HvARRAY(template->env)[i];
        for (HE *a = HvARRAY(env)[i]; a; a = HeNEXT(a), b = HeNEXT(b))
            if (!b || HeKEY_hek(a) != HeKEY_hek(b))
                return false;
    }
    return true; /* as many keys in all, so no chain of the template is longer */
}

void psgi_env_end(pTHX_ struct psgi_template *template, HV *env)
{
    if (!template || !template->env || template->kept || !is_as_made(template, env))
        return;
    for (STRLEN i = 0; i <= HvMAX(env); i++) {
        for (HE *entry = HvARRAY(env)[i]; entry; entry = HeNEXT(entry)) {
            SV *value = HeVAL(entry);
            HeVAL(entry) = &PL_sv_undef;
            SvREFCNT_dec(value);
        }
    }
    template->kept = (HV *)SvREFCNT_inc_simple_NN((SV *)env);
}

/* --- once per worker --- */

void psgi_env_init(pTHX_ struct psgi_worker *w, bool multiprocess)
{
    for (int i = 0; i < PSGI_KEY_COUNT; i++)
        w->keys[i] = shared_text(aTHX_ key_names[i]);
    for (int i = 1; i < ORIBI_FIELD_COUNT; i++)
        w->field_keys[i] = shared_text(aTHX_ oribi_field_env_key((enum oribi_field_id)i));
    for (int i = 0; i < PSGI_METHOD_COUNT; i++)
        w->methods[i] = shared_text(aTHX_ method_names[i]);
    w->protocols[0] = shared_text(aTHX_ "HTTP/1.0");
    w->protocols[1] = shared_text(aTHX_ "HTTP/1.1");
    w->empty = shared_text(aTHX_ "");
    w->multiprocess = multiprocess;
    for (int i = 0; i < 2; i++) {
        make_template(aTHX_ w, NULL, i, LARGE_ROOM, &w->templates[i][false]);
        make_template(aTHX_ w, NULL, i, SMALL_ROOM, &w->templates[i][true]);
    }
    IV own = (IV)HvUSEDKEYS(w->templates[true][true].env);
    w->small_fields = own < SMALL_ROOM ? (uint32_t)(SMALL_ROOM - own) : 0;
    psgi_lent_init(aTHX_ w);
}

void psgi_env_deinit(pTHX_ struct psgi_worker *w)
{
    for (int i = 0; i < PSGI_KEY_COUNT; i++)
        SvREFCNT_dec(w->keys[i]);
    for (int i = 1; i < ORIBI_FIELD_COUNT; i++)
        SvREFCNT_dec(w->field_keys[i]);
    for (int i = 0; i < PSGI_METHOD_COUNT; i++)
        SvREFCNT_dec(w->methods[i]);
    SvREFCNT_dec(w->protocols[0]);
    SvREFCNT_dec(w->protocols[1]);
    SvREFCNT_dec(w->empty);
    for (int i = 0; i < PSGI_FOLLOWED_COUNT; i++)
        SvREFCNT_dec(w->followed[i]);
    psgi_lent_deinit(aTHX_ w);
    for (int i = 0; i < 2; i++) {
        drop_template(aTHX_ & w->templates[i][false]);
        drop_template(aTHX_ & w->templates[i][true]);
    }
    for (int i = 0; i < ORIBI_SHAPES; i++)
        drop_template(aTHX_ & w->shape_templates[i]);
}
