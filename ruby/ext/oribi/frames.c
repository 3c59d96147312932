/* Where a call stands: read from the VM's memory by the thread of the call, in a signal handler, with the VM's lock or
 * without; Ruby from 3.3 on can be read from another thread too. Only what is there already is
 * looked at (iseqs, their paths and labels), and no object is made. rb_profile_frames() is made for profilers, which do
 * the same. */
#include "ext.h"

#include <ruby/debug.h>
#include <stdio.h>

enum {
    DEPTH = 64, /* looked at, since our own frames among them are left out */
    DIRS = 2,
    DIR_CAP = 512,
};

/* Folders of ours, each with its length. */
static struct {
    char path[DIR_CAP];
    size_t len;
} ours[DIRS];

static bool is_ours(VALUE path)
{
    for (int i = 0; i < DIRS; i++)
        if (ours[i].len > 0 && (size_t)RSTRING_LEN(path) >= ours[i].len &&
            memcmp(RSTRING_PTR(path), ours[i].path, ours[i].len) == 0)
            return true;
    return RSTRING_LEN(path) > 10 && memcmp(RSTRING_PTR(path), "<internal:", 10) == 0;
}

static size_t put_frame(VALUE path, int line, VALUE label, char *dst, size_t cap)
{
    int n = snprintf(dst, cap, "%.*s:%d:in `%.*s'\n", (int)RSTRING_LEN(path), RSTRING_PTR(path), line,
                     (int)RSTRING_LEN(label), RSTRING_PTR(label));
    return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}

/* A function in C has the line from which it was called, as in Ruby's backtraces. */
static size_t put_frames(const VALUE *frames, const int *lines, int count, char *dst, size_t cap)
{
    size_t n = 0;
    int shown = 0;
    VALUE pending[DEPTH]; /* names of functions in C, innermost first, for the next frame of Ruby's */
    int pending_count = 0;
    for (int i = 0; i < count && shown < ORIBI_FRAMES_MAX; i++) {
        VALUE path = rb_profile_frame_path(frames[i]);
        VALUE label = rb_profile_frame_label(frames[i]);
        if (!RB_TYPE_P(path, T_STRING) || !RB_TYPE_P(label, T_STRING)) {
            VALUE name = rb_profile_frame_method_name(frames[i]);
            if (RB_TYPE_P(name, T_STRING))
                pending[pending_count++] = name;
            continue;
        }
        for (int k = 0; k < pending_count && !is_ours(path) && shown < ORIBI_FRAMES_MAX; k++, shown++)
            n += put_frame(path, lines[i], pending[k], dst + n, cap - n);
        pending_count = 0;
        if (is_ours(path) || shown == ORIBI_FRAMES_MAX)
            continue;
        n += put_frame(path, lines[i], label, dst + n, cap - n);
        shown++;
    }
    return n;
}

static size_t show_frames(void *self, uint32_t hand, bool own_thread, char *dst, size_t cap)
{
    VALUE frames[DEPTH];
    int lines[DEPTH];
    int count = 0;
    if (own_thread) {
        count = rb_profile_frames(0, DEPTH, frames, lines);
    } else {
#ifdef HAVE_RB_PROFILE_THREAD_FRAMES
        const struct ext_worker *worker = self;
        count = rb_profile_thread_frames(worker->threads[hand].thread, 0, DEPTH, frames, lines);
#endif
    }
    return put_frames(frames, lines, count, dst, cap);
}

void ext_frames_show(struct ext_worker *worker)
{
    VALUE dirs = rb_const_get(rb_const_get(ext_module, rb_intern("Failure")), rb_intern("OURS"));
    for (long i = 0; i < RARRAY_LEN(dirs) && i < DIRS; i++) {
        VALUE dir = RARRAY_AREF(dirs, i);
        ours[i].len = (size_t)RSTRING_LEN(dir) < DIR_CAP ? (size_t)RSTRING_LEN(dir) : 0;
        memcpy(ours[i].path, RSTRING_PTR(dir), ours[i].len);
    }
    char once[4096]; /* whatever these functions make when they are first called is made now */
    (void)show_frames(worker, 0, true, once, sizeof(once));
    oribi_worker_show_frames(worker->core, show_frames, worker);
}
