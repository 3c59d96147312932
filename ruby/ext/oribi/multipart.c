/* Oribi::Multipart::Reader: a body of multipart/form-data, piece by piece. What a part becomes is asked of the reader's
 * sink once for each part; its bytes then go there without a call of Ruby: to a String, or to a descriptor.
 *
 * The sink answers two messages:
 *   part(head)          where the body goes: a String, an Integer (a descriptor, which stays the sink's), nil: nowhere.
 *                       `head` is an array, see part_array()
 *   part_end(target, n) the part is complete; its body has n bytes
 * and may answer a fourth, in the place of `part`:
 *   part_file(head, file) the body is in a File of its own (multipart_stream), open at its beginning for reading and
 *                         writing, which is the sink's from now on. Gives the target for part_end() */
#include "ext.h"

#include "oribi/base/os/os.h"
#include "oribi/event/body.h"
#include "oribi/form/multipart.h"

#include <sys/stat.h>
#include <unistd.h>

enum {
    APART_BYTES = 16 * 1024, /* as many are written to a file without the VM's lock */
    PIECE_BYTES = 64 * 1024, /* read from a file at a time */
};

struct reader {
    struct oribi_form_data form;
    VALUE sink;
    VALUE target;  /* of the part at hand */
    uint64_t size; /* of its body so far */
    bool begun;
    bool busy;   /* a call of feed() has not returned */
    bool broken; /* a call of feed() has ended with an exception */
};

static VALUE error_class;
static ID id_part;
static ID id_part_end;
static ID id_part_file;
static ID id_for_fd;
static ID id_fileno;
static ID id_pos;
static ID id_seek;

static void reader_mark(void *p)
{
    const struct reader *reader = p;
    rb_gc_mark(reader->sink);
    rb_gc_mark(reader->target);
}

static void reader_free(void *p)
{
    struct reader *reader = p;
    oribi_form_data_deinit(&reader->form);
    ruby_xfree(reader);
}

static size_t reader_size(const void *p)
{
    const struct reader *reader = p;
    return sizeof(*reader) + reader->form.head.cap;
}

static const rb_data_type_t reader_type = {
    .wrap_struct_name = "Oribi::Multipart::Reader",
    .function = {.dmark = reader_mark, .dfree = reader_free, .dsize = reader_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE reader_alloc(VALUE class)
{
    struct reader *reader;
    VALUE self = TypedData_Make_Struct(class, struct reader, &reader_type, reader);
    reader->sink = Qnil;
    reader->target = Qnil;
    return self;
}

static struct reader *reader_get(VALUE self)
{
    struct reader *reader;
    TypedData_Get_Struct(self, struct reader, &reader_type, reader);
    if (!reader->begun)
        rb_raise(rb_eArgError, "not initialized");
    return reader;
}

static _Noreturn void fail(int code, const char *reason)
{
    if (code == ORIBI_ENOMEM)
        rb_memerror();
    VALUE arguments[] = {rb_str_new_cstr(reason), INT2FIX(oribi_form_data_status(code))};
    rb_exc_raise(rb_class_new_instance(2, arguments, error_class));
}

/* Reader.new(sink, boundary, parts_max, files_max, part_head_bytes_max, memory_max) */
static VALUE reader_initialize(VALUE self, VALUE sink, VALUE boundary, VALUE parts_max, VALUE files_max, VALUE head_max,
                               VALUE memory_max)
{
    struct reader *reader;
    struct oribi_form_data_limits limits;
    TypedData_Get_Struct(self, struct reader, &reader_type, reader);
    if (reader->begun)
        rb_raise(rb_eArgError, "already initialized");
    oribi_form_data_limits_init(&limits);
    limits.parts_max = ext_maximum(parts_max);
    limits.files_max = ext_maximum(files_max);
    limits.part_head_bytes_max = ext_maximum(head_max);
    limits.memory_max = ext_size(memory_max);
    StringValue(boundary);
    int code =
        oribi_form_data_init(&reader->form, &limits, oribi_slice(RSTRING_PTR(boundary), (size_t)RSTRING_LEN(boundary)));
    if (code < 0)
        fail(code, reader->form.reason);
    RB_OBJ_WRITE(self, &reader->sink, sink);
    reader->begun = true;
    return self;
}

/* --- a part's head --- */

static VALUE text_of(struct oribi_slice text)
{
    return text.p ? rb_utf8_str_new(text.p, (long)text.n) : Qnil;
}

/* Without the line ends of folds. */
static VALUE unfolded(struct oribi_slice value)
{
    VALUE text = text_of(value);
    if (!NIL_P(text) && memchr(value.p, '\r', value.n))
        rb_str_set_len(text, (long)oribi_form_data_unfold(value, RSTRING_PTR(text)));
    return text;
}

/* Nor the backslashes that a quotation mark or another backslash has needed. */
static VALUE value_of(const struct oribi_part_parameter *parameter)
{
    VALUE text = unfolded(parameter->value);
    if (!NIL_P(text) && parameter->quoted && memchr(parameter->value.p, '\\', parameter->value.n))
        rb_str_set_len(text, (long)oribi_form_data_unescape(ext_slice(text), RSTRING_PTR(text)));
    return text;
}

/* [name, filename, filename*, content type, head]; what is missing is nil. */
static VALUE part_array(const struct oribi_part *part)
{
    return rb_ary_new_from_args(5, value_of(&part->name), value_of(&part->filename),
                                unfolded(part->filename_star.value), unfolded(part->content_type), text_of(part->head));
}

/* --- its body --- */

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
        writing->rest = oribi_slice(writing->rest.p + n, writing->rest.n - (size_t)n);
    }
    return NULL;
}

/* The bytes lie in a String that is locked, or in the reader. */
static void write_out(int fd, struct oribi_slice data)
{
    struct writing writing = {.fd = fd, .rest = data};
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
}

static void take_data(struct reader *reader)
{
    struct oribi_slice data = reader->form.data;
    reader->size += data.n;
    if (RB_INTEGER_TYPE_P(reader->target)) {
        write_out(NUM2INT(reader->target), data);
    } else if (!NIL_P(reader->target)) {
        rb_str_cat(reader->target, data.p, (long)data.n);
    }
}

static void begin_part(VALUE self, struct reader *reader)
{
    const char *mistake = oribi_part_mistake(&reader->form.part);
    if (mistake)
        fail(ORIBI_EBAD, mistake);
    VALUE target = rb_funcall(reader->sink, id_part, 1, part_array(&reader->form.part));
    if (!NIL_P(target) && !RB_INTEGER_TYPE_P(target)) {
        Check_Type(target, T_STRING);
        oribi_form_data_keep(&reader->form);
    }
    RB_OBJ_WRITE(self, &reader->target, target);
    reader->size = 0;
}

/* --- the pieces --- */

struct feeding {
    VALUE self;
    struct reader *reader;
    VALUE piece; /* a String that is locked meanwhile, or the buffer of what is read from files; or nil */
    struct oribi_slice bytes;
    int fd; /* a descriptor of ours, or -1 */
    off_t offset;
    struct ext_call *call;               /* of a body that was taken apart, or NULL */
    const struct oribi_body_piece *next; /* the file that follows the bytes at hand, if the sink takes files; or NULL */
    uint32_t next_index;                 /* its number, oribi_req_piece() */
};

/* A head is followed by a file that has all of the part's body: the sink takes it, and it is not read. */
static void give_file(struct feeding *feeding)
{
    struct reader *reader = feeding->reader;
    const char *mistake = oribi_part_mistake(&reader->form.part);
    if (mistake)
        fail(ORIBI_EBAD, mistake);
    VALUE head = part_array(&reader->form.part);
    int fd = oribi_req_part_file(feeding->call->req, feeding->next_index); /* each parse gives files of its own */
    if (fd < 0)
        rb_sys_fail("cannot keep an upload");
    rb_update_max_fd(fd);
    VALUE file = rb_funcall(rb_cFile, id_for_fd, 2, INT2NUM(fd), rb_str_new_cstr("r+b"));
    VALUE target = rb_funcall(reader->sink, id_part_file, 2, head, file);
    RB_OBJ_WRITE(feeding->self, &reader->target, target);
    reader->size = (uint64_t)feeding->next->len;
    feeding->next = NULL; /* it is taken */
}

static void feed_bytes(struct feeding *feeding, struct oribi_slice in)
{
    struct reader *reader = feeding->reader;
    int event;
    while ((event = oribi_form_data_next(&reader->form, &in)) > ORIBI_FORM_DATA_MORE) {
        if (event == ORIBI_FORM_DATA_PART && in.n == 0 && feeding->next)
            give_file(feeding);
        else if (event == ORIBI_FORM_DATA_PART)
            begin_part(feeding->self, reader);
        else if (event == ORIBI_FORM_DATA_DATA)
            take_data(reader);
        else
            rb_funcall(reader->sink, id_part_end, 2, reader->target, ULL2NUM(reader->size));
    }
    if (event < 0)
        fail(event, reader->form.reason);
}

struct reading {
    int fd;
    char *buf;
    size_t wanted;
    off_t offset;
    ssize_t n;
    int error;
};

static void *read_piece(void *p)
{
    struct reading *reading = p;
    reading->n = pread(reading->fd, reading->buf, reading->wanted, reading->offset);
    reading->error = reading->n < 0 ? errno : 0;
    return NULL;
}

/* `len` bytes, or all there are; gives where it has ended. */
static off_t feed_file(struct feeding *feeding, int fd, off_t offset, int64_t len)
{
    const struct oribi_body_piece *next = feeding->next;
    struct reading reading = {.fd = fd, .buf = RSTRING_PTR(feeding->piece), .offset = offset};
    do {
        reading.wanted = len < PIECE_BYTES ? (size_t)len : PIECE_BYTES;
        rb_thread_call_without_gvl(read_piece, &reading, RUBY_UBF_IO, NULL);
        if (reading.error && reading.error != EINTR)
            rb_syserr_fail(reading.error, "cannot read the body");
        rb_thread_check_ints();
        if (reading.n > 0) {
            reading.offset += reading.n;
            len -= reading.n;
            feeding->next = len == 0 ? next : NULL; /* it follows the last bytes */
            feed_bytes(feeding, oribi_slice(reading.buf, (size_t)reading.n));
        }
    } while (reading.n != 0 && len > 0);
    return reading.offset;
}

static void feed_parts(struct feeding *feeding)
{
    struct oribi_body_piece piece;
    struct oribi_body_piece next;
    bool takes = rb_respond_to(feeding->reader->sink, id_part_file) &&
                 oribi_req_parted_by(feeding->call->req, &feeding->reader->form);
    for (uint32_t i = 0; oribi_req_piece(feeding->call->req, i, &piece); i++) {
        bool offers = takes && oribi_req_piece(feeding->call->req, i + 1, &next) && next.is_part;
        feeding->next = offers ? &next : NULL;
        feeding->next_index = i + 1;
        if (piece.fd < 0)
            feed_bytes(feeding, piece.bytes);
        else
            (void)feed_file(feeding, piece.fd, (off_t)piece.offset, piece.len);
        i += offers && !feeding->next; /* the file was given away */
        feeding->next = NULL;
    }
}

static VALUE feed_all(VALUE p)
{
    struct feeding *feeding = (struct feeding *)p;
    if (feeding->call)
        feed_parts(feeding);
    else if (feeding->fd >= 0)
        feeding->offset = feed_file(feeding, feeding->fd, feeding->offset, INT64_MAX);
    else
        feed_bytes(feeding, feeding->bytes);
    feeding->reader->broken = false;
    return Qnil;
}

static VALUE feed_end(VALUE p)
{
    struct feeding *feeding = (struct feeding *)p;
    feeding->reader->busy = false;
    if (feeding->call)
        feeding->call->feeding = false;
    if (feeding->fd >= 0)
        (void)close(feeding->fd); /* only read from */
    if (!NIL_P(feeding->piece))
        rb_str_unlocktmp(feeding->piece);
    return Qnil;
}

static void check_free(const struct reader *reader)
{
    if (reader->busy)
        rb_raise(rb_eThreadError, "a reader takes one piece at a time");
    if (reader->broken)
        rb_raise(rb_eArgError, "the reader has failed before");
}

static void feed(struct feeding *feeding)
{
    if (!NIL_P(feeding->piece))
        rb_str_locktmp(feeding->piece);
    feeding->reader->busy = true;
    feeding->reader->broken = true; /* until the piece is taken */
    rb_ensure(feed_all, (VALUE)feeding, feed_end, (VALUE)feeding);
}

/* #feed(piece): the next bytes. The String cannot be changed meanwhile. */
static VALUE reader_feed(VALUE self, VALUE piece)
{
    struct feeding feeding = {.self = self, .reader = reader_get(self), .piece = StringValue(piece), .fd = -1};
    check_free(feeding.reader);
    if (OBJ_FROZEN(piece))
        feeding.piece = rb_str_dup(piece); /* shares its bytes; a frozen one cannot be locked */
    feeding.bytes = oribi_slice(RSTRING_PTR(feeding.piece), (size_t)RSTRING_LEN(feeding.piece));
    feed(&feeding);
    return Qnil;
}

/* The rest of a plain File of Ruby's from where it stands: false when it is none. */
static bool begin_file(struct feeding *feeding, VALUE io)
{
    struct stat status;
    if (!RB_TYPE_P(io, T_FILE) || rb_obj_class(io) != rb_cFile)
        return false;
    int fd = NUM2INT(rb_funcall(io, id_fileno, 0));
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return false;
    feeding->offset = (off_t)NUM2LL(rb_funcall(io, id_pos, 0));
    feeding->piece = rb_str_buf_new(PIECE_BYTES);
    feeding->fd = rb_cloexec_dup(fd); /* another thread may close the File meanwhile */
    if (feeding->fd < 0)
        rb_sys_fail("cannot read the body");
    return true;
}

/* #feed_body(io): all of a body where it lies: the rack.input of a body in memory or of one that was taken apart, or a
 * File from where it stands to its end, which is where all of them stand behind it. False: it is none of these,
 * and #feed is to be called with what it gives. */
static VALUE reader_feed_body(VALUE self, VALUE io)
{
    struct feeding feeding = {.self = self, .reader = reader_get(self), .piece = Qnil, .fd = -1};
    check_free(feeding.reader);
    if ((feeding.call = ext_input_parts(io))) {
        feeding.piece = rb_str_buf_new(PIECE_BYTES);
        feeding.call->feeding = true;
    } else if (ext_input_stays(io)) {
        ext_input_lies(io, &feeding.bytes);
    } else if (!begin_file(&feeding, io)) {
        return Qfalse;
    }
    bool is_file = feeding.fd >= 0;
    feed(&feeding);
    if (is_file)
        rb_funcall(io, id_seek, 1, OFFT2NUM(feeding.offset));
    RB_GC_GUARD(io);
    return Qtrue;
}

/* #finish: after the last piece. */
static VALUE reader_finish(VALUE self)
{
    struct reader *reader = reader_get(self);
    int code = oribi_form_data_finish(&reader->form);
    if (code < 0)
        fail(code, reader->form.reason);
    return Qnil;
}

/* Oribi::Multipart.boundary(content_type) → String, or nil when it is no multipart type or has none. */
static VALUE multipart_boundary(VALUE self, VALUE content_type)
{
    StringValue(content_type);
    struct oribi_slice text = oribi_slice(RSTRING_PTR(content_type), (size_t)RSTRING_LEN(content_type));
    return text_of(oribi_form_data_boundary(text));
}

void ext_multipart_setup(void)
{
    VALUE module = rb_define_module_under(ext_module, "Multipart");
    VALUE reader = rb_define_class_under(module, "Reader", rb_cObject);
    error_class = rb_const_get(rb_const_get(ext_module, rb_intern("Form")), rb_intern("Error"));
    rb_gc_register_mark_object(error_class);
    id_part = rb_intern("part");
    id_part_end = rb_intern("part_end");
    id_part_file = rb_intern("part_file");
    id_for_fd = rb_intern("for_fd");
    id_fileno = rb_intern("fileno");
    id_pos = rb_intern("pos");
    id_seek = rb_intern("seek");
    rb_define_alloc_func(reader, reader_alloc);
    rb_define_method(reader, "initialize", reader_initialize, 6);
    rb_define_method(reader, "feed", reader_feed, 1);
    rb_define_method(reader, "feed_body", reader_feed_body, 1);
    rb_define_method(reader, "finish", reader_finish, 0);
    rb_define_singleton_method(module, "boundary", multipart_boundary, 1);
    rb_define_const(module, "PARTS_MAX", INT2FIX(ORIBI_FORM_PARTS_DEFAULT));
    rb_define_const(module, "FILES_MAX", INT2FIX(ORIBI_FORM_FILES_DEFAULT));
    rb_define_const(module, "PART_HEAD_MAX", INT2FIX(ORIBI_FORM_PART_HEAD_BYTES_DEFAULT));
    rb_define_const(module, "MEMORY_MAX", INT2FIX(ORIBI_FORM_MEMORY_DEFAULT));
}
