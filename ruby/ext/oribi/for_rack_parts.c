/* The other half of `require "oribi/rack"`: cookies, and the parts of multipart bodies that take Rack's own parser
 * longest. That parser stays in charge: Oribi::ForRack::Parser is a subclass whose steps are these, each for what
 * lies in the parser's buffer and is of the ordinary shape (form/multipart.h), and Rack's own for all else. */
#include "ext.h"

#include "for_rack.h"
#include "oribi/form/cookie.h"
#include "oribi/form/multipart.h"
#include "oribi/base/os/os.h"
#include "oribi/event/body.h"

#include <unistd.h>

enum {
    APART_BYTES = 16 * 1024, /* as many are written to a file without the VM's lock */
    /* Results of body_to_file() beside a length. */
    ODD = -1,
    MORE = -2,
};

static ID id_pairs_of_part;

static struct oribi_slice from(struct oribi_slice text, size_t at)
{
    return oribi_slice(text.p + at, text.n - at);
}

static VALUE utf8_of(struct oribi_slice slice)
{
    return rb_enc_str_new(slice.p, (long)slice.n, rb_utf8_encoding());
}

/* --- cookies --- */

/* Rack cuts the field and leaves the pieces in its encoding; a value is decoded to UTF-8, or stays a piece where its
 * escapes are none. A piece lies in the field; what was decoded does not, unless there was nothing to decode. */
static VALUE cookie_value(struct oribi_slice header, rb_encoding *encoding, const struct oribi_form_pair *pair)
{
    struct oribi_slice value = pair->value;
    if (pair->bare)
        return Qnil;
    bool is_piece = value.p >= header.p && value.p < header.p + header.n;
    if (is_piece && value.n > 0 && memchr(value.p, '%', value.n))
        return rb_enc_str_new(value.p, (long)value.n, encoding);
    return utf8_of(value);
}

/* cookies(header) → what Rack::Utils.parse_cookies_header gives, or nil: Rack has to. */
static VALUE parse_cookies(VALUE self, VALUE header)
{
    struct oribi_cookies cookies;
    struct oribi_form_pair pair;
    VALUE holder;
    if (!for_rack_is_bytes(header))
        return Qnil;
    VALUE parsed = rb_hash_new();
    rb_encoding *encoding = rb_enc_get(header);
    struct oribi_slice in = ext_slice(header);
    char *room = ALLOCV_N(char, holder, in.n + 1);
    int code = oribi_cookies_begin(&cookies, in, room, ORIBI_COOKIE_RACK);
    while (code == 0 && (code = oribi_cookies_next(&cookies, &pair)) > 0) {
        VALUE key = rb_enc_interned_str(pair.key.p, (long)pair.key.n, encoding);
        if (rb_hash_lookup2(parsed, key, Qundef) == Qundef)
            rb_hash_aset(parsed, key, cookie_value(in, encoding, &pair));
        code = 0;
    }
    ALLOCV_END(holder);
    RB_GC_GUARD(header);
    return code < 0 ? Qnil : parsed;
}

/* --- parts in memory --- */

static struct oribi_plain_delimiter delimiter_of(VALUE text)
{
    return (struct oribi_plain_delimiter){.text = ext_slice(text), .anywhere = for_rack.is_rack2};
}

/* plain_parts(buffer, from, delimiter, parts, class, count_max, bytes_max) → [where the next part's head begins, bytes
 * of heads and bodies, was it the last]; nil: the first one is not plain. Adds to `parts`, an Array, new(body, nil,
 * nil, nil, name) of the class for each, up to count_max elements in it; bytes_max of heads and bodies are taken. */
static VALUE plain_parts(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 7, 7);
    VALUE buffer = argv[0];
    VALUE parts = argv[3];
    struct oribi_plain_part part;
    if (!for_rack_is_bytes(buffer) || !RB_TYPE_P(argv[2], T_STRING) || !RB_TYPE_P(parts, T_ARRAY))
        return Qnil;
    struct oribi_plain_delimiter delimiter = delimiter_of(argv[2]);
    size_t at = NUM2SIZET(argv[1]);
    size_t start = at;
    size_t taken = 0;
    size_t bytes_max = NUM2SIZET(argv[6]);
    long count_max = NUM2LONG(argv[5]);
    bool is_last = false;
    while (!is_last && RARRAY_LEN(parts) < count_max && at < (size_t)RSTRING_LEN(buffer) &&
           oribi_plain_part(from(ext_slice(buffer), at), &delimiter, &part) &&
           part.head_len + part.body.n <= bytes_max - taken) {
        VALUE fields[] = {utf8_of(part.body), Qnil, Qnil, Qnil, utf8_of(part.name)};
        taken += part.head_len + part.body.n;
        at += part.len;
        is_last = part.is_last;
        rb_ary_push(parts, rb_class_new_instance(5, fields, argv[4]));
    }
    RB_GC_GUARD(buffer);
    if (at == start)
        return Qnil;
    return rb_ary_new_from_args(3, SIZET2NUM(at), SIZET2NUM(taken), is_last ? Qtrue : Qfalse);
}

/* Fields of Rack's Struct of a part. */
enum { PART_BODY, PART_HEAD, PART_FILENAME, PART_TYPE, PART_NAME };

static VALUE tag(VALUE string)
{
    rb_enc_associate_index(string, rb_utf8_encindex());
    return string;
}

/* pairs_of(parser, parts, class) → [[name, value], …]: of a text field without a type, which is of the class, here; of
 * others by the parser's pairs_of_part(). */
static VALUE pairs_of(VALUE self, VALUE parser, VALUE parts, VALUE class)
{
    Check_Type(parts, T_ARRAY);
    VALUE pairs = rb_ary_new_capa(RARRAY_LEN(parts));
    for (long i = 0; i < RARRAY_LEN(parts); i++) {
        VALUE part = RARRAY_AREF(parts, i);
        if (RBASIC_CLASS(part) == class && NIL_P(RSTRUCT_GET(part, PART_TYPE)) &&
            NIL_P(RSTRUCT_GET(part, PART_FILENAME)))
            rb_ary_push(pairs, rb_assoc_new(tag(RSTRUCT_GET(part, PART_NAME)), tag(RSTRUCT_GET(part, PART_BODY))));
        else
            rb_ary_concat(pairs, rb_funcall(parser, id_pairs_of_part, 1, part));
    }
    return pairs;
}

/* --- a file's body --- */

struct writing {
    int fd;
    struct oribi_slice rest;
    int error; /* errno; 0: none */
};

static void *write_all(void *p)
{
    struct writing *writing = p;
    while (writing->rest.n > 0) {
        ssize_t n = write(writing->fd, writing->rest.p, writing->rest.n);
        if (n < 0) {
            writing->error = errno;
            break;
        }
        writing->rest = from(writing->rest, (size_t)n);
    }
    return NULL;
}

struct output {
    VALUE string; /* where the bytes lie */
    struct oribi_slice data;
    int fd;
};

static VALUE write_out(VALUE p)
{
    const struct output *output = (const struct output *)p;
    struct writing writing = {.fd = output->fd, .rest = output->data};
    do {
        writing.error = 0;
        if (writing.rest.n < APART_BYTES)
            (void)write_all(&writing);
        else
            rb_thread_call_without_gvl(write_all, &writing, RUBY_UBF_IO, NULL);
        if (writing.error && writing.error != EINTR)
            rb_syserr_fail(writing.error, "cannot keep an upload");
        rb_thread_check_ints();
    } while (writing.rest.n > 0);
    return Qnil;
}

/* Nobody can change the String meanwhile. A copy would cost Rack's buffer its memory, which it reads into again. */
static void write_locked(int fd, VALUE string, struct oribi_slice data)
{
    struct output output = {.string = string, .data = data, .fd = fd};
    if (data.n == 0)
        return;
    if (OBJ_FROZEN(string)) {
        write_out((VALUE)&output);
    } else {
        rb_str_locktmp(string);
        rb_ensure(write_out, (VALUE)&output, rb_str_unlocktmp, string);
    }
    RB_GC_GUARD(string);
}

/* body_to_file(buffer, from, delimiter, kept, fd): writes the body that goes on in the buffer, up to its delimiter or
 * as far as no delimiter can have begun, which `kept` bytes are enough for. Gives how many bytes were written when the
 * body has ended; MORE - n when it has not; ODD: what is there is none of these, and nothing was written. */
static VALUE body_to_file(VALUE self, VALUE buffer, VALUE offset, VALUE delimiter_text, VALUE kept, VALUE fd)
{
    bool bare;
    if (!for_rack_is_bytes(buffer) || !RB_TYPE_P(delimiter_text, T_STRING))
        return INT2FIX(ODD);
    struct oribi_plain_delimiter delimiter = delimiter_of(delimiter_text);
    struct oribi_slice rest = from(ext_slice(buffer), NUM2SIZET(offset));
    size_t at = oribi_plain_find(rest, &delimiter, &bare);
    bool has_ended = at < rest.n;
    size_t most = NUM2SIZET(kept);
    if (bare)
        return INT2FIX(ODD);
    if (!has_ended)
        at = rest.n > most ? rest.n - most : 0;
    write_locked(NUM2INT(fd), buffer, oribi_slice(rest.p, at));
    return has_ended ? SIZET2NUM(at) : LL2NUM(MORE - (long long)at);
}

/* Does a delimiter begin in `tail`, or stand in `piece`, which follows it? */
static bool has_delimiter(struct oribi_slice tail, struct oribi_slice piece,
                          const struct oribi_plain_delimiter *delimiter, char *joint)
{
    bool bare;
    size_t most = delimiter->text.n + 1;
    size_t n = piece.n < most ? piece.n : most;
    memcpy(joint, tail.p, tail.n);
    memcpy(joint + tail.n, piece.p, n);
    struct oribi_slice seam = oribi_slice(joint, tail.n + n);
    return oribi_plain_find(seam, delimiter, &bare) < seam.n || oribi_plain_find(piece, delimiter, &bare) < piece.n;
}

/* file_piece(tail, piece, delimiter, kept, fd) → the new tail; nil: a delimiter may stand there, and nothing was
 * written. Writes tail and piece but for the last `kept` bytes, which are the new tail. */
static VALUE file_piece(VALUE self, VALUE tail, VALUE piece, VALUE delimiter_text, VALUE kept, VALUE fd)
{
    VALUE holder;
    struct oribi_plain_delimiter delimiter = delimiter_of(StringValue(delimiter_text));
    size_t most = NUM2SIZET(kept);
    if (!for_rack_is_bytes(tail) || !for_rack_is_bytes(piece) || (size_t)RSTRING_LEN(tail) > most ||
        (size_t)RSTRING_LEN(piece) < most)
        return Qnil;
    bool is_binary = rb_enc_get_index(tail) == rb_ascii8bit_encindex() || !rb_enc_str_asciionly_p(piece);
    rb_encoding *encoding = is_binary ? rb_ascii8bit_encoding() : rb_enc_get(tail);
    struct oribi_slice data = ext_slice(piece);
    VALUE rest = Qnil;
    char *joint = ALLOCV_N(char, holder, most + delimiter.text.n + 1);
    if (!has_delimiter(ext_slice(tail), data, &delimiter, joint)) {
        rest = rb_enc_str_new(data.p + data.n - most, (long)most, encoding);
        write_locked(NUM2INT(fd), tail, ext_slice(tail));
        write_locked(NUM2INT(fd), piece, oribi_slice(data.p, data.n - most));
    }
    ALLOCV_END(holder);
    RB_GC_GUARD(delimiter_text);
    return rest;
}

/* --- bodies that the core has taken apart --- */

/* Is the body in parts at this boundary? */
static bool is_parted_at(const struct ext_call *call, VALUE boundary)
{
    static const struct oribi_form_data_limits limits; /* of a parser that reads nothing */
    struct oribi_form_data form;
    struct oribi_slice text = oribi_slice(RSTRING_PTR(boundary), (size_t)RSTRING_LEN(boundary));
    if (oribi_form_data_init(&form, &limits, text) < 0)
        return false;
    bool same = oribi_req_parted_by(call->req, &form);
    oribi_form_data_deinit(&form);
    return same;
}

static VALUE file_of(int fd, const char *mode)
{
    if (fd < 0)
        rb_sys_fail("cannot read the body");
    rb_update_max_fd(fd);
    return rb_funcall(rb_cFile, rb_intern("for_fd"), 2, INT2NUM(fd), rb_str_new_cstr(mode));
}

/* pieces_of(input, boundary): a rack.input that the core has taken apart, and of which nothing was read, in the order
 * of its bytes: a String, or [File, offset, length] for a stretch of a file, or a File, at its beginning, for the data
 * of one part. Each File is the caller's. The input stands at its end then. nil: it is none, or its boundary is not
 * this one. */
static VALUE pieces_of(VALUE self, VALUE input, VALUE boundary)
{
    struct ext_call *call = ext_input_parts(input);
    struct oribi_body_piece piece;
    VALUE pieces = rb_ary_new();
    StringValue(boundary);
    if (!call || !is_parted_at(call, boundary))
        return Qnil;
    call->feeding = true; /* the parts stay: File.for_fd may be the application's */
    for (uint32_t i = 0; oribi_req_piece(call->req, i, &piece); i++) {
        if (piece.fd < 0)
            rb_ary_push(pieces, ext_bytes(piece.bytes));
        else if (piece.is_part)
            rb_ary_push(pieces, file_of(oribi_req_part_file(call->req, i), "r+b"));
        else
            rb_ary_push(pieces, rb_ary_new_from_args(3, file_of(rb_cloexec_dup(piece.fd), "rb"), LL2NUM(piece.offset),
                                                     LL2NUM(piece.len)));
    }
    call->feeding = false;
    RB_GC_GUARD(input);
    return pieces;
}

/* link_to(file, path): gives an unlinked file of the core's that name; false where its file system cannot. */
static VALUE link_to(VALUE self, VALUE file, VALUE path)
{
    int fd = NUM2INT(rb_funcall(file, rb_intern("fileno"), 0));
    return oribi_os_link(fd, StringValueCStr(path)) == 0 ? Qtrue : Qfalse;
}

void ext_for_rack_parts_setup(VALUE module)
{
    id_pairs_of_part = rb_intern("pairs_of_part");
    rb_define_singleton_method(module, "cookies", parse_cookies, 1);
    rb_define_singleton_method(module, "pairs_of", pairs_of, 3);
    rb_define_singleton_method(module, "plain_parts", plain_parts, -1);
    rb_define_singleton_method(module, "body_to_file", body_to_file, 5);
    rb_define_singleton_method(module, "file_piece", file_piece, 5);
    rb_define_singleton_method(module, "pieces_of", pieces_of, 2);
    rb_define_singleton_method(module, "link_to", link_to, 2);
    rb_define_const(module, "ODD", INT2FIX(ODD));
    rb_define_const(module, "MORE", INT2FIX(MORE));
}
