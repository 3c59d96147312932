/* Oribi::Input: rack.input of a body that the core holds in memory. It has no bytes of its own: what parses a whole
 * body (Oribi::Form, Oribi::Multipart) reads them where they lie in the core, and so does #read. Any other method
 * needs a StringIO, which is made then and has a copy.
 *
 * Oribi::PartedInput is the same of a form that the core has taken apart (multipart_stream): Oribi::Multipart takes its
 * parts, any method has it put together in a file first, and reads that.
 *
 *   FRESH ─ a method of StringIO ─► OPEN (the StringIO is asked from now on)
 *     │
 *     └─ the request ends ─► CLOSED (IOError); a small body of which not all was read is opened first
 *
 * The core's bytes live until the request ends, which happens with the VM lock held, but where the application takes
 * the socket: ext_input_part(). So whoever reads them without
 * running Ruby code in between needs no more than that; whoever runs Ruby code must be the call's own fiber, because
 * the call cannot end under it: ext_input_stays(). */
#include "ext.h"

struct input {
    struct ext_worker *worker;
    VALUE worker_object; /* keeps it */
    VALUE io;            /* OPEN: the StringIO */
    uint64_t serial;     /* of the call */
    int64_t pos;         /* so much was read where it lies */
    bool closed;
};

static VALUE string_io_class;
static ID id_for_fd;
static ID id_new;
static ID id_read;
static ID id_seek;

static void input_mark(void *p)
{
    const struct input *input = p;
    rb_gc_mark(input->worker_object);
    rb_gc_mark(input->io);
}

static size_t input_size(const void *p)
{
    return sizeof(struct input);
}

static const rb_data_type_t input_type = {
    .wrap_struct_name = "Oribi::Input",
    .function = {.dmark = input_mark, .dfree = RUBY_DEFAULT_FREE, .dsize = input_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE input_class;
static VALUE parted_class;

VALUE ext_input_new(struct ext_call *call)
{
    struct input *input;
    VALUE self =
        TypedData_Make_Struct(call->req->parted ? parted_class : input_class, struct input, &input_type, input);
    input->worker = call->worker;
    input->worker_object = call->worker->self;
    input->io = Qnil;
    input->serial = call->serial;
    return self;
}

static struct input *input_get(VALUE self)
{
    return rb_check_typeddata(self, &input_type);
}

/* The call whose body this is, as long as its bytes are there. */
static struct ext_call *call_of(const struct input *input)
{
    struct ext_call *call = NIL_P(input->io) && !input->closed ? ext_call_find(input->worker, input->serial) : NULL;
    return call && call->req ? call : NULL;
}

static struct ext_call *fresh_call(const struct input *input)
{
    struct ext_call *call = call_of(input);
    if (!call)
        rb_raise(rb_eIOError, "closed stream");
    return call;
}

struct joining {
    struct oribi_req *req;
    int error;
};

static void *join_parts(void *p)
{
    struct joining *joining = p;
    joining->error = oribi_req_join(joining->req);
    return NULL;
}

/* The parts are read by a parser, or by another thread or fiber, which the call might not outlive without the VM lock:
 * a copy of its own. */
static int copy_joined(struct ext_call *call, int *fd)
{
    uint64_t serial = call->serial;
    const struct ext_worker *worker = call->worker;
    while (call && call->joining) {
        rb_thread_schedule();
        call = ext_call_find(worker, serial);
    }
    if (!call || !call->req)
        rb_raise(rb_eIOError, "closed stream");
    if (call->req->parted)
        return oribi_req_copy_body(call->req, fd);
    *fd = rb_cloexec_dup(call->req->body_fd);
    return *fd < 0 ? ORIBI_ESTORE : 0;
}

/* The body in one file, which stays the request's. */
static int join(struct ext_call *call, int *fd)
{
    struct joining joining = {.req = call->req};
    call->joining = true;
    rb_thread_call_without_gvl(join_parts, &joining, NULL, NULL);
    call->joining = false;
    if (joining.error == 0)
        *fd = rb_cloexec_dup(call->req->body_fd);
    return joining.error ? joining.error : *fd < 0 ? ORIBI_ESTORE : 0;
}

static VALUE open_joined(struct input *input)
{
    struct ext_call *call = fresh_call(input);
    int fd = -1;
    bool own = call->thread->fiber == rb_fiber_current() && !call->feeding;
    int error = own && call->req->parted ? join(call, &fd) : copy_joined(call, &fd);
    if (error < 0)
        rb_raise(rb_eIOError, "the body cannot be put together in a file: %s", oribi_error_text(error));
    rb_update_max_fd(fd);
    return rb_funcall(rb_cFile, id_for_fd, 2, INT2NUM(fd), rb_str_new_cstr("rb"));
}

static VALUE input_open(VALUE self)
{
    struct input *input = input_get(self);
    if (!NIL_P(input->io))
        return input->io;
    struct oribi_req *req = fresh_call(input)->req;
    VALUE io;
    if (rb_obj_class(self) == parted_class) {
        io = open_joined(input);
    } else {
        VALUE bytes = ext_bytes(req->body);
        io = rb_funcallv(string_io_class, id_new, 1, &bytes);
    }
    if (input->pos > 0)
        rb_funcall(io, id_seek, 1, LL2NUM(input->pos));
    RB_OBJ_WRITE(self, &input->io, io);
    return io;
}

/* A body of up to `bytes_max` bytes of which not all was read. One that was taken apart becomes a File, which would be
 * closed anyway. */
static void open_unread(struct ext_call *call, int64_t bytes_max)
{
    if (!rb_typeddata_is_kind_of(call->input, &input_type))
        return;
    const struct input *input = input_get(call->input);
    if (!call_of(input) || call->req->parted)
        return;
    if (input->pos < call->req->body_len && call->req->body_len <= bytes_max)
        (void)input_open(call->input);
}

void ext_input_settle(struct ext_call *call)
{
    open_unread(call, ORIBI_SMALL_BODY_BYTES);
}

void ext_input_close(struct ext_call *call)
{
    VALUE io = call->input;
    if (rb_typeddata_is_kind_of(io, &input_type))
        io = input_get(io)->io;
    if (RB_TYPE_P(io, T_FILE))
        rb_io_close(io); /* closing twice is allowed: the application may have done it */
}

void ext_input_part(struct ext_call *call)
{
    open_unread(call, INT64_MAX);
    if (rb_typeddata_is_kind_of(call->input, &input_type))
        input_get(call->input)->closed = true;
}

/* --- where it lies --- */

static struct input *fresh_at_beginning(VALUE object)
{
    if (!rb_typeddata_is_kind_of(object, &input_type))
        return NULL;
    struct input *input = input_get(object);
    return input->pos == 0 && call_of(input) ? input : NULL;
}

bool ext_input_lies(VALUE object, struct oribi_slice *bytes)
{
    struct input *input = fresh_at_beginning(object);
    if (!input || call_of(input)->req->parted)
        return false;
    *bytes = call_of(input)->req->body;
    input->pos = (int64_t)bytes->n;
    return true;
}

bool ext_input_stays(VALUE object)
{
    const struct input *input = fresh_at_beginning(object);
    return input && call_of(input)->thread->fiber == rb_fiber_current();
}

struct ext_call *ext_input_parts(VALUE object)
{
    if (!ext_input_stays(object))
        return NULL;
    struct input *input = input_get(object);
    struct ext_call *call = call_of(input);
    if (!call->req->parted)
        return NULL;
    input->pos = call->req->body_len;
    return call;
}

struct oribi_slice ext_input_bytes(VALUE *object)
{
    struct oribi_slice bytes;
    if (ext_input_lies(*object, &bytes))
        return bytes;
    if (!RB_TYPE_P(*object, T_STRING) && rb_respond_to(*object, id_read))
        *object = rb_funcallv(*object, id_read, 0, NULL);
    StringValue(*object);
    return oribi_slice(RSTRING_PTR(*object), (size_t)RSTRING_LEN(*object));
}

/* --- methods --- */

/* Calls the method of StringIO that has the name of the method called. A method that gives the StringIO itself gives
 * the Input. */
static VALUE input_forward(int argc, VALUE *argv, VALUE self)
{
    VALUE io = input_open(self);
    VALUE block = rb_block_given_p() ? rb_block_proc() : Qnil;
    VALUE result = rb_funcall_with_block_kw(io, rb_frame_this_func(), argc, argv, block, RB_PASS_CALLED_KEYWORDS);
    return result == io ? self : result;
}

/* read(length = nil, buffer = nil) as all applications call it; StringIO knows what to say of anything else. */
static bool reads_plainly(int argc, const VALUE *argv)
{
    if (argc > 2 || (argc > 0 && !NIL_P(argv[0]) && !(FIXNUM_P(argv[0]) && FIX2LONG(argv[0]) >= 0)))
        return false;
    return argc < 2 || NIL_P(argv[1]) || (RB_TYPE_P(argv[1], T_STRING) && !RB_OBJ_FROZEN(argv[1]));
}

static VALUE into_buffer(VALUE buffer, struct oribi_slice bytes)
{
    rb_str_modify(buffer);
    rb_str_resize(buffer, (long)bytes.n);
    if (bytes.n > 0)
        memcpy(RSTRING_PTR(buffer), bytes.p, bytes.n);
    rb_enc_associate(buffer, rb_ascii8bit_encoding());
    return buffer;
}

/* All of it at once, or piece by piece: one copy, and no StringIO. */
static VALUE input_read(int argc, VALUE *argv, VALUE self)
{
    struct input *input = input_get(self);
    const struct ext_call *call = call_of(input);
    if (!call || call->req->parted || !reads_plainly(argc, argv))
        return input_forward(argc, argv, self);
    VALUE buffer = argc > 1 ? argv[1] : Qnil;
    bool all = argc == 0 || NIL_P(argv[0]);
    int64_t left = call->req->body_len - input->pos;
    int64_t n = all || FIX2LONG(argv[0]) > left ? left : FIX2LONG(argv[0]);
    struct oribi_slice bytes = oribi_slice(call->req->body.p + input->pos, (size_t)n);
    VALUE read = NIL_P(buffer) ? ext_bytes(bytes) : into_buffer(buffer, bytes);
    input->pos += n;
    return n == 0 && !all && FIX2LONG(argv[0]) > 0 ? Qnil : read;
}

static VALUE input_rewind(VALUE self)
{
    struct input *input = input_get(self);
    if (!call_of(input))
        return input_forward(0, NULL, self);
    input->pos = 0;
    return INT2FIX(0);
}

static VALUE input_bytes(VALUE self)
{
    const struct ext_call *call = call_of(input_get(self));
    return call ? LL2NUM(call->req->body_len) : input_forward(0, NULL, self);
}

static VALUE input_close(VALUE self)
{
    struct input *input = input_get(self);
    if (!NIL_P(input->io))
        return input_forward(0, NULL, self);
    input->closed = true;
    return Qnil;
}

static VALUE input_is_closed(VALUE self)
{
    struct input *input = input_get(self);
    if (!NIL_P(input->io))
        return input_forward(0, NULL, self);
    return call_of(input) ? Qfalse : Qtrue;
}

static VALUE input_inspect(VALUE self)
{
    return rb_sprintf("#<%" PRIsVALUE ">", rb_obj_class(self));
}

static VALUE define_class(const char *name)
{
    VALUE class = rb_define_class_under(ext_module, name, rb_cObject);
    rb_gc_register_mark_object(class);
    rb_undef_alloc_func(class);
    rb_include_module(class, rb_mEnumerable);
    rb_define_method(class, "rewind", input_rewind, 0);
    rb_define_method(class, "size", input_bytes, 0);
    rb_define_method(class, "close", input_close, 0);
    rb_define_method(class, "closed?", input_is_closed, 0);
    rb_define_method(class, "inspect", input_inspect, 0);
    return class;
}

/* Every method that `model` has and an input has not by now. `dup` is a StringIO, or a File. */
static void define_forwards(VALUE class, VALUE model)
{
    VALUE names = rb_class_instance_methods(0, NULL, model);
    for (long i = 0; i < RARRAY_LEN(names); i++) {
        ID id = SYM2ID(RARRAY_AREF(names, i));
        if (!rb_method_boundp(class, id, 1))
            rb_define_method_id(class, id, input_forward, -1);
    }
    rb_define_method(class, "dup", input_forward, -1);
    rb_define_method(class, "clone", input_forward, -1);
}

void ext_input_setup(void)
{
    id_for_fd = rb_intern("for_fd");
    id_new = rb_intern("new");
    id_read = rb_intern("read");
    id_seek = rb_intern("seek");
    rb_require("stringio");
    string_io_class = rb_const_get(rb_cObject, rb_intern("StringIO"));
    rb_gc_register_mark_object(string_io_class);
    input_class = define_class("Input");
    rb_define_method(input_class, "read", input_read, -1);
    rb_define_method(input_class, "length", input_bytes, 0);
    define_forwards(input_class, string_io_class);
    parted_class = define_class("PartedInput");
    rb_define_method(parted_class, "to_io", input_open, 0);
    define_forwards(parted_class, rb_cFile);
}
