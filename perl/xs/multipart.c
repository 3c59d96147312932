/* Oribi::Multipart::Reader: a body of multipart/form-data, piece by piece, to the two lists that HTTP::Entity::Parser
 * gives. Perl is asked for a file once for each part that has one; its bytes go there without Perl. */
#include "xs/binding.h"

#include "oribi/base/os/os.h"
#include "oribi/event/body.h"
#include "oribi/form/multipart.h"

#include <errno.h>
#include <unistd.h>

enum { PIECE_BYTES = 256 * 1024 }; /* read from a file at a time */

struct psgi_reader {
    struct oribi_form_data form;
    SV *open;    /* code: called with the file name, gives a handle and the file's name */
    AV *params;  /* name, value, … */
    AV *uploads; /* name, hash, … */
    SV *value;   /* of the field at hand, which the program may have dropped; NULL: a file's part, or no part */
    SV *handle;  /* of the file at hand; NULL: none, its bytes are dropped */
    HV *upload;  /* the same file, as it is told in the end */
    int fd;      /* of handle */
    UV size;     /* bytes of the file at hand */
    const struct oribi_body_piece *next; /* a file that follows the bytes at hand; NULL: none, or it is taken */
    bool failed;                         /* an exception has left a piece half read */
};

static struct oribi_slice bytes_of(pTHX_ SV *sv)
{
    STRLEN n;
    const char *p = SvPVbyte(sv, n);
    return oribi_slice(p, n);
}

__attribute__((noreturn)) static void fail(pTHX_ int code, const char *reason)
{
    if (code == ORIBI_ENOMEM)
        croak("out of memory"); /* Perl_croak_no_mem() is no extension's to call in newer Perls */
    psgi_form_fail(aTHX_ oribi_form_data_status(code), reason);
}

SV *psgi_reader_new(pTHX_ SV *boundary, UV parts_max, UV files_max, UV head_max, UV memory_max, SV *open)
{
    struct psgi_reader *reader;
    struct oribi_form_data_limits limits;
    struct oribi_slice bytes = bytes_of(aTHX_ boundary);
    oribi_form_data_limits_init(&limits);
    limits.parts_max = (uint32_t)parts_max;
    limits.files_max = (uint32_t)files_max;
    limits.part_head_bytes_max = (uint32_t)head_max;
    limits.memory_max = memory_max;
    Newxz(reader, 1, struct psgi_reader);
    SV *self = sv_bless(newRV_noinc(newSViv(PTR2IV(reader))), gv_stashpvs("Oribi::Multipart::Reader", GV_ADD));
    sv_2mortal(self); /* until nothing can fail */
    reader->open = newSVsv(open);
    reader->params = newAV();
    reader->uploads = newAV();
    int code = oribi_form_data_init(&reader->form, &limits, bytes);
    if (code < 0)
        fail(aTHX_ code, reader->form.reason);
    return SvREFCNT_inc_simple_NN(self);
}

static struct psgi_reader *reader_of(pTHX_ SV *self)
{
    if (!sv_derived_from(self, "Oribi::Multipart::Reader"))
        croak("not an Oribi::Multipart::Reader");
    return INT2PTR(struct psgi_reader *, SvIV(SvRV(self)));
}

/* --- a part --- */

/* Without the line ends of folds. */
static SV *field_value(pTHX_ struct oribi_slice value)
{
    SV *sv = newSVpvn(value.p, value.n);
    SvCUR_set(sv, (STRLEN)oribi_form_data_unfold(value, SvPVX(sv)));
    *SvEND(sv) = '\0';
    return sv;
}

static SV *headers_of(pTHX_ const struct oribi_part *part)
{
    AV *headers = newAV();
    for (uint32_t i = 0; i < part->field_count; i++) {
        av_push(headers, newSVpvn(part->fields[i].name.p, part->fields[i].name.n));
        av_push(headers, field_value(aTHX_ part->fields[i].value));
    }
    return newRV_noinc((SV *)headers);
}

static void store(pTHX_ HV *hash, const char *key, SV *value)
{
    (void)hv_store(hash, key, (I32)strlen(key), value, 0);
}

/* Perl opens the file. What it gives is copied: the stack moves. */
static void open_file(pTHX_ struct psgi_reader *reader, SV *filename, int fd)
{
    dSP;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    XPUSHs(filename);
    if (fd >= 0)
        XPUSHs(sv_2mortal(newSViv(fd)));
    PUTBACK;
    int count = call_sv(reader->open, G_LIST);
    SPAGAIN;
    SV *tempname = count == 2 ? newSVsv(POPs) : NULL;
    SV *handle = count == 2 ? newSVsv(POPs) : NULL;
    PUTBACK;
    FREETMPS;
    LEAVE;
    if (!handle)
        croak("Oribi::Multipart: a handle and a name are wanted for an upload");
    store(aTHX_ reader->upload, "tempname", tempname);
    reader->handle = handle;
    IO *io = sv_2io(handle);
    reader->fd = io && IoIFP(io) ? PerlIO_fileno(IoIFP(io)) : -1;
}

/* `ends`: its head was the last of the bytes at hand. The file that follows is an upload's then; a part that is no file
 * to this reader reads it. */
static void begin_part(pTHX_ struct psgi_reader *reader, bool ends)
{
    struct oribi_part *part = &reader->form.part;
    const char *mistake = oribi_part_read_strictly(part);
    if (mistake)
        fail(aTHX_ ORIBI_EBAD, mistake);
    struct oribi_slice name = part->name.value;
    struct oribi_slice filename = part->filename.value;
    const struct oribi_body_piece *file = ends && filename.p ? reader->next : NULL;
    if (file)
        reader->next = NULL;
    reader->size = 0;
    if (!filename.p) {
        reader->value = newSVpvs("");
        oribi_form_data_keep(&reader->form);
        av_push(reader->params, field_value(aTHX_ name));
        av_push(reader->params, SvREFCNT_inc_simple_NN(reader->value));
    } else if (filename.n > 0) {
        reader->upload = newHV();
        store(aTHX_ reader->upload, "name", field_value(aTHX_ name));
        store(aTHX_ reader->upload, "headers", headers_of(aTHX_ part));
        SV *given = field_value(aTHX_ filename);
        store(aTHX_ reader->upload, "filename", given);
        open_file(aTHX_ reader, given, file ? file->fd : -1);
        if (file)
            reader->size = (UV)file->len;
    }
}

static void write_out(pTHX_ struct psgi_reader *reader, struct oribi_slice data)
{
    while (data.n > 0) {
        ssize_t n = write(reader->fd, data.p, data.n);
        if (n < 0 && errno != EINTR)
            croak("Oribi::Multipart: cannot keep an upload: %s", Strerror(errno));
        if (n < 0) {
            PERL_ASYNC_CHECK();
        } else {
            data = oribi_slice(data.p + n, data.n - (size_t)n);
        }
    }
}

static void take_data(pTHX_ struct psgi_reader *reader)
{
    struct oribi_slice data = reader->form.data;
    if (reader->value) {
        sv_catpvn(reader->value, data.p, data.n);
    } else if (reader->handle) {
        reader->size += data.n;
        write_out(aTHX_ reader, data);
    }
}

static void forget_part(pTHX_ struct psgi_reader *reader)
{
    SvREFCNT_dec(reader->value);
    SvREFCNT_dec(reader->handle); /* the last: closes it */
    SvREFCNT_dec((SV *)reader->upload);
    reader->value = NULL;
    reader->handle = NULL;
    reader->upload = NULL;
}

static void end_part(pTHX_ struct psgi_reader *reader)
{
    if (!reader->upload) {
        forget_part(aTHX_ reader);
        return;
    }
    SV **name = hv_fetchs(reader->upload, "name", 0);
    store(aTHX_ reader->upload, "size", newSVuv(reader->size));
    av_push(reader->uploads, newSVsv(*name));
    av_push(reader->uploads, newRV_inc((SV *)reader->upload));
    forget_part(aTHX_ reader);
}

/* --- all of it --- */

static void feed(pTHX_ struct psgi_reader *reader, struct oribi_slice in)
{
    int event;
    if (reader->failed)
        croak("Oribi::Multipart: the reader has failed before");
    reader->failed = true; /* until the piece is taken */
    while ((event = oribi_form_data_next(&reader->form, &in)) > ORIBI_FORM_DATA_MORE) {
        if (event == ORIBI_FORM_DATA_PART)
            begin_part(aTHX_ reader, in.n == 0);
        else if (event == ORIBI_FORM_DATA_DATA)
            take_data(aTHX_ reader);
        else
            end_part(aTHX_ reader);
    }
    if (event < 0)
        fail(aTHX_ event, reader->form.reason);
    reader->failed = false;
}

/* Perl code that opens a file may drop the reader meanwhile. */
static struct psgi_reader *kept_reader(pTHX_ SV *self)
{
    struct psgi_reader *reader = reader_of(aTHX_ self);
    sv_2mortal(SvREFCNT_inc_simple_NN(SvRV(self)));
    return reader;
}

static void unlock(pTHX_ void *piece)
{
    SvREADONLY_off((SV *)piece);
}

/* Perl code that opens a file may change the variable that the piece is in: bytes are locked meanwhile, anything else
 * is copied. */
static SV *kept_piece(pTHX_ SV *piece)
{
    bool plain = psgi_input_is_plain(piece);
    if (!plain && !psgi_input_is_ours(aTHX_ piece))
        return sv_2mortal(newSVsv(piece));
    if (plain && !SvREADONLY(piece)) {
        SvREADONLY_on(piece);
        SAVEDESTRUCTOR_X(unlock, piece);
    }
    return sv_2mortal(SvREFCNT_inc_simple_NN(piece));
}

void psgi_reader_feed(pTHX_ SV *self, SV *piece)
{
    struct psgi_reader *reader = kept_reader(aTHX_ self);
    ENTER;
    feed(aTHX_ reader, bytes_of(aTHX_ kept_piece(aTHX_ piece)));
    LEAVE;
}

/* False: there are fewer. */
static bool feed_range(pTHX_ struct psgi_reader *reader, int fd, int64_t offset, int64_t n)
{
    const struct oribi_body_piece *next = reader->next;
    char *buf = SvPVX(sv_2mortal(newSV(PIECE_BYTES)));
    while (n > 0) {
        ssize_t got = oribi_os_read_at(fd, buf, n < PIECE_BYTES ? (size_t)n : PIECE_BYTES, offset);
        if (got <= 0)
            return false;
        offset += got;
        n -= got;
        reader->next = n == 0 ? next : NULL; /* it follows the last bytes */
        feed(aTHX_ reader, oribi_slice(buf, (size_t)got));
    }
    return true;
}

bool psgi_reader_feed_file(pTHX_ SV *self, SV *input, UV n)
{
    int fd = psgi_input_file(aTHX_ input);
    return fd >= 0 && feed_range(aTHX_ kept_reader(aTHX_ self), fd, 0, (int64_t)n);
}

bool psgi_reader_feed_parts(pTHX_ SV *self, SV *object)
{
    struct psgi_reader *reader = kept_reader(aTHX_ self);
    struct oribi_req *req = psgi_input_parts(aTHX_ object);
    struct oribi_body_piece piece;
    struct oribi_body_piece next;
    if (!req)
        return false;
    ENTER;
    SAVEBOOL(psgi_input_worker(aTHX_ object)->input.feeding);
    psgi_input_worker(aTHX_ object)->input.feeding = true;
    bool takes = oribi_req_parted_by(req, &reader->form);
    for (uint32_t i = 0; oribi_req_piece(req, i, &piece); i++) {
        bool offers = takes && oribi_req_piece(req, i + 1, &next) && next.is_part;
        reader->next = offers ? &next : NULL;
        if (piece.fd < 0)
            feed(aTHX_ reader, piece.bytes);
        else if (!feed_range(aTHX_ reader, piece.fd, piece.offset, piece.len))
            croak("Oribi::Multipart: cannot read the body: %s", Strerror(errno));
        i += offers && !reader->next;
        reader->next = NULL;
    }
    LEAVE;
    return true;
}

void psgi_reader_finish(pTHX_ SV *self)
{
    struct psgi_reader *reader = reader_of(aTHX_ self);
    int code = oribi_form_data_finish(&reader->form);
    if (code < 0)
        fail(aTHX_ code, reader->form.reason);
}

SV *psgi_reader_list(pTHX_ SV *self, int uploads)
{
    struct psgi_reader *reader = reader_of(aTHX_ self);
    return newRV_inc((SV *)(uploads ? reader->uploads : reader->params));
}

void psgi_reader_free(pTHX_ SV *self)
{
    struct psgi_reader *reader = reader_of(aTHX_ self);
    forget_part(aTHX_ reader);
    SvREFCNT_dec(reader->open);
    SvREFCNT_dec((SV *)reader->params);
    SvREFCNT_dec((SV *)reader->uploads);
    oribi_form_data_deinit(&reader->form);
    Safefree(reader);
}

SV *psgi_multipart_boundary(pTHX_ SV *content_type)
{
    struct oribi_slice boundary = oribi_form_data_boundary(bytes_of(aTHX_ content_type));
    return boundary.p ? newSVpvn(boundary.p, boundary.n) : newSV(0);
}
