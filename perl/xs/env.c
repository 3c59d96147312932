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
 * An application that leaves the copy as it was made, but for values, leaves it to the next request of that kind, which
 * sets its values without a copy, and into the same scalars where they were left alone: values.h.
 *
 * Handles, arrays and closures are lent to one environment after the other: lent.c. */
#include "xs/values.h"

#include "oribi/worker/events.h"

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

/* hv_fetch_ent() for a table without magic: our keys lie in Perl's table of keys, so that nearly always the addresses
 * are equal. The text is compared for keys that were stored as characters. */
static SV *find_plain(pTHX_ HV *env, SV *key)
{
    const HEK *wanted = SvSHARED_HEK_FROM_PV(SvPVX_const(key));
    HE *entry = HvARRAY(env) ? HvARRAY(env)[HEK_HASH(wanted) & HvMAX(env)] : NULL;
    for (; entry; entry = HeNEXT(entry)) {
        const HEK *found = HeKEY_hek(entry);
        if (found != wanted && (HEK_HASH(found) != HEK_HASH(wanted) || HEK_LEN(found) != HEK_LEN(wanted) ||
                                HEK_UTF8(found) || memcmp(HEK_KEY(found), HEK_KEY(wanted), HEK_LEN(wanted)) != 0))
            continue;
        return HeVAL(entry) == &PL_sv_placeholder ? NULL : HeVAL(entry);
    }
    return NULL;
}

SV *psgi_env_get(pTHX_ struct psgi_worker *w, HV *env, enum psgi_key key)
{
    if (LIKELY(!SvMAGICAL((SV *)env)))
        return find_plain(aTHX_ env, w->keys[key]);
    if (UNLIKELY(SvREADONLY((SV *)env)) && !hv_exists_ent(env, w->keys[key], SvSHARED_HASH(w->keys[key])))
        return NULL; /* the application has locked the keys: to fetch another one would die */
    HE *entry = hv_fetch_ent(env, w->keys[key], 0, SvSHARED_HASH(w->keys[key]));
    return entry ? HeVAL(entry) : NULL;
}

/* --- values --- */

/* The decoded path where it differs from the one that was sent: decoded once, a decoded NUL stays a NUL. False: it
 * cannot be, and the core has answered. */
static bool decode_path(pTHX_ struct oribi_req *req, SV **decoded)
{
    struct oribi_slice path = req->head->path;
    *decoded = NULL;
    if (path.n == 0 || !memchr(path.p, '%', path.n))
        return true;
    SV *sv = text_of(aTHX_ path);
    ssize_t n = oribi_req_decode_path(req, SvPVX(sv));
    if (n < 0) {
        SvREFCNT_dec(sv);
        return false;
    }
    SvCUR_set(sv, (STRLEN)n);
    *SvEND(sv) = '\0';
    *decoded = sv;
    return true;
}

/* --- values: each takes `old` --- */

static SV *path_info_of(pTHX_ const struct psgi_worker *w, SV *old, const struct oribi_head *head, SV *decoded)
{
    return decoded ? psgi_put(aTHX_ old, decoded) : psgi_put_text(aTHX_ w, old, head->path);
}

/* The target without scheme and authority, which PSGI keeps out of REQUEST_URI. */
static SV *request_uri_of(pTHX_ const struct psgi_worker *w, SV *old, const struct oribi_head *head)
{
    struct oribi_slice target = head->target;
    if (target.n > 0 && (target.p[0] == '/' || target.p[0] == '*'))
        return psgi_put_text(aTHX_ w, old, target);
    SV *sv = text_of(aTHX_ head->path);
    if (head->query.n > 0) {
        sv_catpvn(sv, "?", 1);
        sv_catpvn(sv, head->query.p, head->query.n);
    }
    return psgi_put(aTHX_ old, sv);
}

static SV *query_of(pTHX_ const struct psgi_worker *w, SV *old, const struct oribi_head *head)
{
    return head->query.n ? psgi_put_text(aTHX_ w, old, head->query) : psgi_put_shared(aTHX_ w, old, w->empty);
}

static SV *method_of(pTHX_ const struct psgi_worker *w, SV *old, struct oribi_slice method)
{
    if (psgi_has_shared(w, old, method))
        return old;
    for (int i = 0; i < PSGI_METHOD_COUNT; i++)
        if (SvCUR(w->methods[i]) == method.n && memcmp(SvPVX_const(w->methods[i]), method.p, method.n) == 0)
            return psgi_put_shared(aTHX_ w, old, w->methods[i]);
    return psgi_put_text(aTHX_ w, old, method);
}

/* A value that is nearly always as in the request before is not made anew. */
static SV *follow(pTHX_ struct psgi_worker *w, SV *old, enum psgi_followed followed, struct oribi_slice slice)
{
    if (psgi_has_shared(w, old, slice))
        return old;
    SV *known = w->followed[followed];
    if (!known || SvCUR(known) != slice.n || memcmp(SvPVX_const(known), slice.p, slice.n) != 0) {
        SvREFCNT_dec(known);
        known = w->followed[followed] = newSVpvn_share(slice.n ? slice.p : "", (I32)slice.n, 0);
    }
    return psgi_put_shared(aTHX_ w, old, known);
}

static SV *input_of(pTHX_ struct psgi_worker *w, SV *old, const struct oribi_req *req)
{
    if (req->body_fd < 0 && req->body.n == 0 && !req->parted)
        return psgi_put_reference(aTHX_ w, old, psgi_lent_input(w));
    return psgi_put(aTHX_ old, psgi_input_new(aTHX_ w, req));
}

static SV *lend(pTHX_ struct psgi_worker *w, SV *old, enum psgi_lazy_kind kind)
{
    return psgi_put(aTHX_ old, SvREFCNT_inc_simple_NN(w->lent.lazy[kind]));
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

/* Variables about a client's certificate. */
static void store_client(pTHX_ HV *env, const struct oribi_req *req)
{
    struct oribi_variable variables[ORIBI_CLIENT_VARIABLES_MAX];
    uint32_t count = oribi_req_client_variables(req, variables);
    for (uint32_t i = 0; i < count; i++) {
        SV *value = newSVpvn(variables[i].value.p, variables[i].value.n);
        if (!hv_store(env, variables[i].name, (I32)strlen(variables[i].name), value, 0))
            SvREFCNT_dec(value);
    }
}

/* The value in an entry of ours, left by a request before; NULL: nothing yet. */
static inline SV *left_in(pTHX_ const HE *entry)
{
    return HeVAL(entry) == &PL_sv_undef ? NULL : HeVAL(entry);
}

#define TEXT(slice)         psgi_put_text(aTHX_ w, old, slice)
#define CONSTANT(text)      psgi_put_text(aTHX_ w, old, oribi_slice(text, strlen(text)))
#define SHARED(sv)          psgi_put_shared(aTHX_ w, old, sv)
#define NUMBER(number)      psgi_put_number(aTHX_ w, old, number)
#define REFERENCE(referred) psgi_put_reference(aTHX_ w, old, (SV *)(referred))

/* The names of env_keys.h for a client. */
#define CLIENT_BITS(client)                                                                                            \
    bool addressed = ((client)&ORIBI_SHAPE_ADDRESSED) != 0;                                                            \
    bool https = ((client)&ORIBI_SHAPE_HTTPS) != 0;                                                                    \
    bool tls = ((client)&ORIBI_SHAPE_TLS) != 0;                                                                        \
    bool named = ((client)&ORIBI_SHAPE_SNI) != 0;

/* Sets each key of ours that the environment has. Takes `path_info`. */
static void set_values(pTHX_ struct psgi_worker *w, HE *const *entries, SV *path_info, const struct oribi_req *req)
{
    const struct oribi_head *head = req->head;
    CLIENT_BITS(oribi_req_client(req))
#define PSGI_SET_VALUE(id, key, when, value)                                                                           \
    if (when) {                                                                                                        \
        SV *old = left_in(aTHX_ entries[PSGI_KEY_##id]);                                                               \
        PERL_UNUSED_VAR(old);                                                                                          \
        HeVAL(entries[PSGI_KEY_##id]) = value;                                                                         \
    }
    PSGI_KEYS(PSGI_SET_VALUE)
#undef PSGI_SET_VALUE
}

/* Stores the bytes that the client has sent in advance in the protocol that it asks for: sysread on psgix.io would not
 * give them. */
static void store_unread(pTHX_ struct psgi_worker *w, HV *env, const struct oribi_req *req)
{
    struct oribi_slice behind = oribi_req_behind(req);
    if (behind.n > 0)
        store(aTHX_ w, env, PSGI_KEY_UNREAD, newSVpvn(behind.p, behind.n));
}

/* --- shapes --- */

/* True for a key that every environment of such clients has. */
static bool in_every_env(const struct psgi_worker *w, enum psgi_key key, uint32_t client)
{
    CLIENT_BITS(client)
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

static uint32_t number_of(const struct psgi_worker *w, const struct oribi_shape *shape, const HEK *key)
{
    for (uint32_t i = 0; i < PSGI_KEY_COUNT; i++)
        if (SvSHARED_HEK_FROM_PV(SvPVX_const(w->keys[i])) == key)
            return i;
    for (uint32_t i = 0; shape && i < shape->field_count; i++)
        if (SvSHARED_HEK_FROM_PV(SvPVX_const(w->field_keys[shape->ids[i]])) == key)
            return PSGI_KEY_COUNT + i;
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
static void make_template(pTHX_ const struct psgi_worker *w, const struct oribi_shape *shape, uint32_t client, IV room,
                          struct psgi_template *template)
{
    HV *env = template->env = newHV();
    hv_ksplit(env, room);
    for (int i = 0; i < PSGI_KEY_COUNT; i++)
        if (in_every_env(w, (enum psgi_key)i, client))
            store_under(aTHX_ env, w->keys[i], &PL_sv_undef);
    for (uint32_t i = 0; shape && i < shape->field_count; i++)
        store_under(aTHX_ env, w->field_keys[shape->ids[i]], &PL_sv_undef);
    Newxz(template->entries, PSGI_KEY_COUNT + (shape ? shape->field_count : 0), HE *);
    Newx(template->places, HvTOTALKEYS(env), struct psgi_place);
    struct psgi_place *next = template->places;
    for (STRLEN i = 0; i <= HvMAX(env); i++)
        for (HE *entry = HvARRAY(env)[i]; entry; entry = HeNEXT(entry))
            *next++ = (struct psgi_place){HeKEY_hek(entry), number_of(w, shape, HeKEY_hek(entry))};
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
    Safefree(template->places);
    Safefree(template->entries);
    template->places = NULL;
    template->entries = NULL;
}

/* The template for these fields, or NULL. */
static struct psgi_template *find_template(pTHX_ struct psgi_worker *w, const struct oribi_req *req)
{
    bool met;
    uint32_t client = oribi_req_client(req);
    int slot = oribi_shapes_find(&w->shapes, req->head, client, &met);
    if (slot < 0)
        return NULL;
    struct psgi_template *template = &w->shape_templates[slot];
    if (!met) {
        drop_template(aTHX_ template);
        return NULL;
    }
    if (!template->env)
        make_template(aTHX_ w, &w->shapes.slots[slot], client, is_small(w, req->head) ? SMALL_ROOM : LARGE_ROOM,
                      template);
    return template->ordered ? template : NULL;
}

/* A copy of the template, or the one that was kept: template->entries are its. */
static HV *take_copy(pTHX_ struct psgi_worker *w, struct psgi_template *template)
{
    HV *env = template->kept;
    w->used = template;
    template->kept = NULL;
    if (env)
        return env;
    env = newHVhv(template->env);
    const struct psgi_place *next = template->places;
    for (STRLEN i = 0; i <= HvMAX(env); i++)
        for (HE *entry = HvARRAY(env)[i]; entry; entry = HeNEXT(entry))
            template->entries[next++->number] = entry;
    return env;
}

static HV *build_unordered(pTHX_ struct psgi_worker *w, SV *path_info, const struct oribi_req *req)
{
    HE *entries[PSGI_KEY_COUNT] = {NULL};
    HV *env = newHV();
    uint32_t client = oribi_req_client(req);
    for (int i = 0; i < PSGI_KEY_COUNT; i++)
        if (in_every_env(w, (enum psgi_key)i, client))
            entries[i] = hv_store_ent(env, w->keys[i], &PL_sv_undef, SvSHARED_HASH(w->keys[i]));
    set_values(aTHX_ w, entries, path_info, req);
    return env;
}

/* The values by number where Perl allows it, else by key. */
static HV *build_plain(pTHX_ struct psgi_worker *w, SV *path_info, const struct oribi_req *req)
{
    uint32_t client = oribi_req_client(req);
    bool small = is_small(w, req->head);
    struct psgi_template *template = &w->templates[client][small];
    if (UNLIKELY(!template->env))
        make_template(aTHX_ w, NULL, client, small ? SMALL_ROOM : LARGE_ROOM, template);
    if (!template->ordered)
        return build_unordered(aTHX_ w, path_info, req);
    HV *env = take_copy(aTHX_ w, template);
    set_values(aTHX_ w, template->entries, path_info, req);
    return env;
}

/* With the known fields. */
static HV *build_shaped(pTHX_ struct psgi_worker *w, struct psgi_template *template, SV *path_info,
                        const struct oribi_req *req)
{
    const struct oribi_head *head = req->head;
    HV *env = take_copy(aTHX_ w, template);
    set_values(aTHX_ w, template->entries, path_info, req);
    HE **next = template->entries + PSGI_KEY_COUNT;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        if (field->id == ORIBI_FIELD_OTHER)
            continue;
        HE *entry = *next++;
        HeVAL(entry) = psgi_put_text(aTHX_ w, left_in(aTHX_ entry), oribi_slice(field->value, field->value_len));
    }
    return env;
}

HV *psgi_env_build(pTHX_ struct psgi_worker *w, struct oribi_req *req)
{
    const struct oribi_head *head = req->head;
    SV *path_info;
    if (!decode_path(aTHX_ req, &path_info))
        return NULL;
    w->used = NULL;
    struct psgi_template *template = find_template(aTHX_ w, req);
    HV *env = template ? build_shaped(aTHX_ w, template, path_info, req) : build_plain(aTHX_ w, path_info, req);
    store_fields(aTHX_ w, env, head, !template);
    if (UNLIKELY(oribi_req_certificate_asked(req)))
        store_client(aTHX_ env, req);
    if (req->trailer_count > 0)
        store_trailers(aTHX_ w, env, req);
    if (head->upgrade) {
        store_unread(aTHX_ w, env, req);
        psgi_websocket_offer(aTHX_ w, env, req);
    }
    if (oribi_events_asked(req))
        psgi_events_offer(aTHX_ w, env, req);
    return env;
}

/* --- after the request --- */

/* Can this be a copy as it was made, but for its values, and is ours the only reference to it? Iterators and weak
 * references show in the flags. */
static bool looks_as_made(const struct psgi_template *template, HV *env)
{
    return SvREFCNT((SV *)env) == 1 && SvFLAGS(env) == template->flags && !SvMAGIC((SV *)env) &&
           HvTOTALKEYS(env) == HvTOTALKEYS(template->env) && HvMAX(env) == HvMAX(template->env);
}

/* Keys are compared, since one can be deleted and another stored: there are as many as the template has, and where one
 * differs, the environment ends with its request after all. */
void psgi_env_end(pTHX_ struct psgi_worker *w, struct psgi_template *template, HV *env)
{
    if (!template || !template->env || template->kept || !looks_as_made(template, env))
        return;
    const struct psgi_made made = w->made;
    const struct psgi_place *place = template->places;
    for (STRLEN i = 0; i <= HvMAX(env); i++) {
        for (HE *entry = HvARRAY(env)[i]; entry; entry = HeNEXT(entry), place++) {
            if (UNLIKELY(HeKEY_hek(entry) != place->key))
                return;
            template->entries[place->number] = entry;
            SV *value = HeVAL(entry);
            if (LIKELY(psgi_value_stays(&made, value)))
                continue;
            HeVAL(entry) = &PL_sv_undef;
            if (psgi_value_leave(aTHX_ & made, value))
                HeVAL(entry) = value;
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
    w->protocols[2] = shared_text(aTHX_ "HTTP/2");
    w->on = shared_text(aTHX_ "on");
    w->empty = shared_text(aTHX_ "");
    psgi_values_init(aTHX_ w);
    w->multiprocess = multiprocess;
    make_template(aTHX_ w, NULL, ORIBI_SHAPE_ADDRESSED, SMALL_ROOM, &w->templates[ORIBI_SHAPE_ADDRESSED][true]);
    IV own = (IV)HvUSEDKEYS(w->templates[ORIBI_SHAPE_ADDRESSED][true].env);
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
    SvREFCNT_dec(w->protocols[2]);
    SvREFCNT_dec(w->on);
    SvREFCNT_dec(w->empty);
    for (int i = 0; i < PSGI_FOLLOWED_COUNT; i++)
        SvREFCNT_dec(w->followed[i]);
    psgi_lent_deinit(aTHX_ w);
    for (int i = 0; i < ORIBI_SHAPE_CLIENTS; i++) {
        drop_template(aTHX_ & w->templates[i][false]);
        drop_template(aTHX_ & w->templates[i][true]);
    }
    for (int i = 0; i < ORIBI_SHAPES; i++)
        drop_template(aTHX_ & w->shape_templates[i]);
}
