/* Methods that `require "oribi/rack"` puts before Rack's own: query strings and forms to hashes and pairs, one method
 * of Rack::QueryParser each. They give what the installed Rack gives, or leave the call to it (`super`): whatever Rack
 * refuses, warns of or reads in a way of its own has no rule here. Reading order: the walk over pairs, places in nested
 * hashes, the methods. for_rack_parts.c does the same for multipart bodies and cookies.
 *
 * Rack's parameters are a Hash of a class of its own since 3.1, before that an object that becomes a Hash in the end;
 * here they are hashes from the beginning. */
#include "ext.h"

#include "for_rack.h"
#include "oribi/form/nested.h"
#include "oribi/form/urlencoded.h"

struct for_rack for_rack;

static ID id_bytesize_limit;
static ID id_params_limit;
static ID id_key_space_limit;
static ID id_param_depth_limit;
static ID id_params_class;
static VALUE sym_tempfile;

bool for_rack_is_bytes(VALUE string)
{
    return RB_TYPE_P(string, T_STRING) &&
           (rb_enc_get_index(string) == rb_ascii8bit_encindex() || rb_enc_str_asciionly_p(string));
}

static VALUE text_of(struct oribi_slice slice)
{
    return rb_enc_str_new(slice.p, (long)slice.n, rb_utf8_encoding());
}

/* A frozen String, one for equal bytes: a Hash would make it of a key anyway. */
static VALUE key_of(struct oribi_slice slice)
{
    return rb_enc_interned_str(slice.p, (long)slice.n, rb_utf8_encoding());
}

static VALUE value_of(const struct oribi_form_pair *pair)
{
    return pair->bare ? Qnil : text_of(pair->value);
}

/* --- the walk over pairs --- */

struct reading {
    struct oribi_form form;
    VALUE string;
    unsigned rules;
    size_t key_space; /* bytes that keys may have together */
    bool left;        /* Rack has to do it */
};

/* A limit of Rack's: none, as older releases have it, counts as so many that none is reached. */
static bool limit_of(VALUE self, ID id, size_t *limit)
{
    VALUE value = rb_attr_get(self, id);
    *limit = SIZE_MAX / 2;
    if (FIXNUM_P(value) && FIX2LONG(value) >= 0)
        *limit = (size_t)FIX2LONG(value);
    return NIL_P(value) || (FIXNUM_P(value) && FIX2LONG(value) >= 0);
}

static size_t count_separators(struct oribi_slice in, bool semicolon)
{
    size_t count = 0;
    for (size_t i = 0; i < in.n; i++)
        count += in.p[i] == '&' || (semicolon && in.p[i] == ';');
    return count;
}

/* The separators that `separator` stands for; false: others. */
static bool rules_of(VALUE separator, unsigned *rules)
{
    *rules = ORIBI_FORM_RACK | (for_rack.is_rack2 ? ORIBI_FORM_SEMICOLON : 0);
    if (NIL_P(separator))
        return true;
    if (!RB_TYPE_P(separator, T_STRING))
        return false;
    struct oribi_slice text = ext_slice(separator);
    *rules = ORIBI_FORM_RACK | (text.n == 2 ? ORIBI_FORM_SEMICOLON : 0);
    return oribi_slice_equal(text, ORIBI_SLICE("&")) || oribi_slice_equal(text, ORIBI_SLICE("&;"));
}

/* Is it for us to read? Rack counts the separators, whatever stands between them. */
static bool may_begin(VALUE self, int argc, const VALUE *argv, struct reading *reading)
{
    size_t bytes_max;
    size_t params_max;
    VALUE string = argv[0];
    reading->string = string;
    if (!for_rack_is_bytes(string) || !rules_of(argc > 1 ? argv[1] : Qnil, &reading->rules) ||
        !limit_of(self, id_bytesize_limit, &bytes_max) || !limit_of(self, id_params_limit, &params_max) ||
        !limit_of(self, id_key_space_limit, &reading->key_space))
        return false;
    struct oribi_slice in = ext_slice(string);
    return in.n > 0 && in.n <= bytes_max && in.n <= ORIBI_FORM_BYTES_CAP &&
           (in.n < params_max || count_separators(in, reading->rules & ORIBI_FORM_SEMICOLON) < params_max);
}

/* `room` has as many bytes as the String. */
static void begin(struct reading *reading, char *room)
{
    struct oribi_form_limits limits = {
        .pairs_max = SIZE_MAX, .key_bytes_max = SIZE_MAX, .bytes_max = ORIBI_FORM_BYTES_CAP};
    reading->left = oribi_form_begin(&reading->form, ext_slice(reading->string), room, reading->rules, &limits) < 0;
}

static bool next_pair(struct reading *reading, struct oribi_form_pair *pair)
{
    int code = reading->left ? 0 : oribi_form_next(&reading->form, pair);
    reading->left |= code < 0;
    if (code > 0 && for_rack.is_rack2) {
        reading->left |= pair->key.n > reading->key_space;
        reading->key_space -= reading->left ? 0 : pair->key.n;
    }
    return code > 0 && !reading->left;
}

/* --- places in nested hashes --- */

/* Hashes of parameters; nested ones are of class `class`. Rack 2.2 and 3.0 have plain ones in the end, and an upload is
 * one too. */
struct nesting {
    VALUE class;
    uint32_t depth_max;
};

static VALUE new_params(const struct nesting *nesting)
{
    return nesting->class == rb_cHash ? rb_hash_new() : rb_obj_alloc(nesting->class);
}

static bool is_params(const struct nesting *nesting, VALUE value)
{
    if (!RB_TYPE_P(value, T_HASH))
        return false;
    if (nesting->class == rb_cHash)
        return rb_hash_lookup2(value, sym_tempfile, Qundef) == Qundef;
    return RBASIC_CLASS(value) == nesting->class || RTEST(rb_obj_is_kind_of(value, nesting->class));
}

/* The value at the key, or a new hash or array; Qundef when the value is none of that kind. */
static VALUE hash_at(const struct nesting *nesting, VALUE hash, VALUE key)
{
    VALUE found = rb_hash_lookup(hash, key);
    if (NIL_P(found)) {
        found = new_params(nesting);
        rb_hash_aset(hash, key, found);
    }
    return is_params(nesting, found) ? found : Qundef;
}

static VALUE array_at(VALUE hash, VALUE key)
{
    VALUE found = rb_hash_lookup(hash, key);
    if (NIL_P(found)) {
        found = rb_ary_new();
        rb_hash_aset(hash, key, found);
    }
    return RB_TYPE_P(found, T_ARRAY) ? found : Qundef;
}

static bool leads_somewhere(const struct nesting *nesting, VALUE hash, struct oribi_slice path)
{
    struct oribi_slice part;
    VALUE at = hash;
    while (oribi_nested_part(&path, &part)) {
        at = is_params(nesting, at) ? rb_hash_lookup2(at, key_of(part), Qundef) : Qundef;
        if (at == Qundef)
            return false;
    }
    return true;
}

static VALUE element_of(const struct nesting *nesting, VALUE array, const struct oribi_nested_step *step)
{
    VALUE last = array == Qundef ? Qundef : rb_ary_entry(array, -1);
    if (last == Qundef || (is_params(nesting, last) && (step->shared || !leads_somewhere(nesting, last, step->path))))
        return last;
    last = new_params(nesting);
    rb_ary_push(array, last);
    return last;
}

static bool append(VALUE array, VALUE value)
{
    if (array != Qundef)
        rb_ary_push(array, value);
    return array != Qundef;
}

static bool append_list(const struct nesting *nesting, VALUE array, VALUE value)
{
    if (array == Qundef || is_params(nesting, rb_ary_entry(array, -1)))
        return array != Qundef;
    return append(array, rb_ary_new_from_args(1, value));
}

/* Takes one step; *hash becomes what the next one is in. */
static bool take_step(const struct nesting *nesting, const struct oribi_nested_step *step, VALUE *hash, VALUE value)
{
    VALUE key = key_of(step->key);
    switch (step->kind) {
    case ORIBI_NESTED_SET:
        rb_hash_aset(*hash, key, value);
        return true;
    case ORIBI_NESTED_APPEND:
        return append(array_at(*hash, key), value);
    case ORIBI_NESTED_LIST:
        return append_list(nesting, array_at(*hash, key), value);
    case ORIBI_NESTED_HASH:
        *hash = hash_at(nesting, *hash, key);
        return *hash != Qundef;
    case ORIBI_NESTED_ELEMENT:
        *hash = element_of(nesting, array_at(*hash, key), step);
        return *hash != Qundef;
    }
    return false;
}

/* Is it a name that Rack takes, and reads as form/nested.h does? */
static bool is_readable(const struct nesting *nesting, struct oribi_slice name, VALUE value)
{
    struct oribi_nested nested;
    struct oribi_nested_step step = {.kind = ORIBI_NESTED_SET};
    int code;
    if (for_rack.is_rack2 && !oribi_nested_is_plain(name))
        return name.n == 0;
    oribi_nested_begin(&nested, name, nesting->depth_max);
    while ((code = oribi_nested_next(&nested, &step)) > 0)
        continue;
    return code == 0 && !(for_rack.is_rack2 && step.kind == ORIBI_NESTED_LIST && NIL_P(value));
}

/* Puts the value where the name leads. False: Rack has to, and what was made on the way is what it makes itself. */
static bool place(const struct nesting *nesting, VALUE hash, VALUE name, VALUE value)
{
    struct oribi_nested nested;
    struct oribi_nested_step step;
    struct oribi_slice text = ext_slice(name);
    bool is_simple = text.n < 2 || !memchr(text.p + 1, '[', text.n - 1);
    if (rb_enc_str_coderange(name) == ENC_CODERANGE_BROKEN || nesting->depth_max == 0 ||
        ((!is_simple || for_rack.is_rack2) && !is_readable(nesting, text, value)))
        return false;
    if (is_simple) {
        if (text.n > 0)
            rb_hash_aset(hash, name, value);
        return true;
    }
    oribi_nested_begin(&nested, text, nesting->depth_max);
    while (oribi_nested_next(&nested, &step) > 0)
        if (!take_step(nesting, &step, &hash, value))
            return false;
    return true;
}

/* False: the parser has been told to make others than Rack's own. */
static bool nesting_of(VALUE self, struct nesting *nesting)
{
    size_t depth;
    bool is_known = limit_of(self, id_param_depth_limit, &depth);
    nesting->class = for_rack.has_hashes ? for_rack.params_class : rb_cHash;
    nesting->depth_max = depth > UINT32_MAX ? UINT32_MAX : (uint32_t)depth;
    return is_known && rb_attr_get(self, id_params_class) == for_rack.params_class;
}

/* --- the methods --- */

/* parse_nested_query(string, separator = nil) */
static VALUE parse_nested(int argc, VALUE *argv, VALUE self)
{
    struct reading reading;
    struct nesting nesting;
    struct oribi_form_pair pair;
    VALUE holder;
    rb_check_arity(argc, 1, 2);
    if (!nesting_of(self, &nesting) || !may_begin(self, argc, argv, &reading))
        return rb_call_super(argc, argv);
    VALUE params = rb_hash_new();
    begin(&reading, ALLOCV_N(char, holder, (size_t)RSTRING_LEN(reading.string) + 1));
    while (next_pair(&reading, &pair))
        reading.left = !place(&nesting, params, key_of(pair.key), value_of(&pair));
    ALLOCV_END(holder);
    RB_GC_GUARD(reading.string);
    return reading.left ? rb_call_super(argc, argv) : params;
}

/* Of several values with one key an array is made, as soon as there is one that is not nil. */
static void add_to_query(VALUE params, VALUE key, VALUE value)
{
    VALUE found = rb_hash_lookup(params, key);
    if (NIL_P(found))
        rb_hash_aset(params, key, value);
    else if (RB_TYPE_P(found, T_ARRAY))
        rb_ary_push(found, value);
    else
        rb_hash_aset(params, key, rb_assoc_new(found, value));
}

/* parse_query(string, separator = nil, &unescaper) */
static VALUE parse_query(int argc, VALUE *argv, VALUE self)
{
    struct reading reading;
    struct nesting nesting;
    struct oribi_form_pair pair;
    VALUE holder;
    rb_check_arity(argc, 1, 2);
    if (rb_block_given_p() || !nesting_of(self, &nesting) || !may_begin(self, argc, argv, &reading))
        return rb_call_super(argc, argv);
    VALUE params = rb_hash_new();
    begin(&reading, ALLOCV_N(char, holder, (size_t)RSTRING_LEN(reading.string) + 1));
    while (next_pair(&reading, &pair))
        add_to_query(params, key_of(pair.key), value_of(&pair));
    ALLOCV_END(holder);
    RB_GC_GUARD(reading.string);
    return reading.left ? rb_call_super(argc, argv) : params;
}

/* parse_query_pairs(string, separator = nil), of Rack 3.2 */
static VALUE parse_pairs(int argc, VALUE *argv, VALUE self)
{
    struct reading reading;
    struct oribi_form_pair pair;
    VALUE holder;
    rb_check_arity(argc, 1, 2);
    if (!may_begin(self, argc, argv, &reading))
        return rb_call_super(argc, argv);
    VALUE pairs = rb_ary_new();
    begin(&reading, ALLOCV_N(char, holder, (size_t)RSTRING_LEN(reading.string) + 1));
    while (next_pair(&reading, &pair)) {
        VALUE key = text_of(pair.key);
        rb_ary_push(pairs, rb_assoc_new(key, value_of(&pair)));
    }
    ALLOCV_END(holder);
    RB_GC_GUARD(reading.string);
    return reading.left ? rb_call_super(argc, argv) : pairs;
}

/* A name in an encoding that keys can be cut in. */
static bool is_name(VALUE name)
{
    return RB_TYPE_P(name, T_STRING) && RSTRING_LEN(name) > 0 && rb_enc_get_index(name) == rb_utf8_encindex();
}

/* normalize_params(params, name, value, _depth = nil), since Rack 3.1 */
static VALUE normalize(int argc, VALUE *argv, VALUE self)
{
    struct nesting nesting;
    rb_check_arity(argc, 3, 4);
    if (is_name(argv[1]) && nesting_of(self, &nesting) && !OBJ_FROZEN(argv[0]) && is_params(&nesting, argv[0]) &&
        place(&nesting, argv[0], argv[1], argv[2]))
        return argv[0];
    return rb_call_super(argc, argv);
}

/* expand(parser, pairs): the pairs of a multipart body as Rack 2.2 and 3.0 nest them, or nil: Rack has to. */
static VALUE expand(VALUE self, VALUE parser, VALUE pairs)
{
    struct nesting nesting;
    size_t key_space;
    VALUE params = rb_hash_new();
    if (for_rack.has_hashes || !nesting_of(parser, &nesting) || !limit_of(parser, id_key_space_limit, &key_space))
        return Qnil;
    for (long i = 0; i < RARRAY_LEN(pairs); i++) {
        VALUE pair = RARRAY_AREF(pairs, i);
        VALUE name = rb_ary_entry(pair, 0);
        if (!is_name(name) || (size_t)RSTRING_LEN(name) > key_space ||
            !place(&nesting, params, name, rb_ary_entry(pair, 1)))
            return Qnil;
        key_space -= (size_t)RSTRING_LEN(name);
    }
    return params;
}

/* use(params_class, is_rack2): the installed Rack. */
static VALUE use(VALUE self, VALUE params_class, VALUE is_rack2)
{
    for_rack.params_class = params_class;
    rb_gc_register_mark_object(params_class);
    for_rack.has_hashes = RTEST(rb_class_inherited_p(params_class, rb_cHash));
    for_rack.is_rack2 = RTEST(is_rack2);
    return Qnil;
}

void ext_for_rack_setup(void)
{
    VALUE module = rb_define_module_under(ext_module, "ForRack");
    VALUE queries = rb_define_module_under(module, "Queries");
    VALUE pairs = rb_define_module_under(module, "QueryPairs");
    VALUE names = rb_define_module_under(module, "Names");
    id_bytesize_limit = rb_intern("@bytesize_limit");
    id_params_limit = rb_intern("@params_limit");
    id_key_space_limit = rb_intern("@key_space_limit");
    id_param_depth_limit = rb_intern("@param_depth_limit");
    id_params_class = rb_intern("@params_class");
    sym_tempfile = ID2SYM(rb_intern("tempfile"));
    rb_define_method(queries, "parse_query", parse_query, -1);
    rb_define_method(queries, "parse_nested_query", parse_nested, -1);
    rb_define_method(pairs, "parse_query_pairs", parse_pairs, -1);
    rb_define_method(names, "normalize_params", normalize, -1);
    rb_define_singleton_method(module, "use", use, 2);
    rb_define_singleton_method(module, "expand", expand, 2);
    ext_for_rack_parts_setup(module);
}
