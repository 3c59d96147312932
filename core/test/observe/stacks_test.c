/* Stacks that the supervisor reads from answers in shared memory, also from those that an application has spoilt. */
#include "observe/stacks.c"

#include "system.h"
#include "observe_world.h"
#include "tap.h"

#include <unistd.h>

enum { SLOTS = 2 };

static void open_world(void)
{
    (void)world_begin(1, SLOTS);
    world->policy.records[0].state = ORIBI_RECORD_SERVING;
    world->policy.records[0].pid = getpid();
    atomic_store(&world->context.board.slots[0].state, ORIBI_SLOT_BUSY);
}

static void close_world(void)
{
    world_end(world);
}

static void look_now(void)
{
    world_expire(world, &world->observe.state->stacks.look);
}

/* One call in the worker's part, as its helper writes it. */
static struct oribi_stack *write_call(const char *line, const char *frames)
{
    struct oribi_stacks *shared = stacks_of(&world->observe, 0);
    struct oribi_stack stack = {.state = 'S', .age_us = 1500000, .frames_len = (uint32_t)strlen(frames)};
    (void)snprintf(stack.line, sizeof(stack.line), "%s", line);
    stack.size = (uint32_t)(sizeof(stack) + stack.frames_len + 7) & ~7U;
    memcpy(shared->bytes, &stack, sizeof(stack));
    memcpy(shared->bytes + sizeof(stack), frames, stack.frames_len);
    atomic_store(&shared->len, stack.size);
    return (struct oribi_stack *)shared->bytes;
}

static const char *answer_text(void)
{
    (void)oribi__stacks_ask(&world->observe);
    atomic_store(&stacks_of(&world->observe, 0)->answered, world->observe.state->stacks.number);
    look_now();
    ok(!world->observe.state->stacks.open);
    (void)oribi_buf_try_append(&world->observe.state->stacks.text, "", 1);
    (void)oribi_buf_try_append(&world->observe.state->stacks.json, "", 1);
    return world->observe.state->stacks.text.p;
}

static void test_a_call_and_its_frames(void)
{
    char expected[256];
    open_world();
    (void)write_call("GET /x", "/app.rb:7:in `x'\nC: recv (libc.so.6)\n");
    (void)snprintf(expected, sizeof(expected),
                   "worker 0 (pid %d): GET /x, 1.500 s, waiting\n    /app.rb:7:in `x'\n    C: recv (libc.so.6)\n",
                   (int)getpid());
    is_str(answer_text(), expected);
    ok(strstr(world->observe.state->stacks.json.p,
              "\"call\":\"GET /x\",\"request_id\":\"\",\"system_call\":\"\",\"frames\":["
              "\"/app.rb:7:in `x'\",\"C: recv (libc.so.6)\"]}]"));
    close_world();
}

static void test_nothing_speaks_to_the_terminal(void)
{
    open_world();
    (void)write_call("GET /\x1b[2J", "a\x1b]0;b\x07\xc2\x9bm\xff \xc3\xa9\n");
    ok(strstr(answer_text(), "GET /?[2J, "));
    ok(strstr(world->observe.state->stacks.text.p, "    a?]0;b??m? \xc3\xa9\n"));
    ok(strstr(world->observe.state->stacks.json.p, "\\u001b"));
    close_world();
}

/* Each is one lie about sizes; guard pages and sanitizers see what is read beyond. */
static void test_lies_about_sizes_are_no_calls(void)
{
    static const struct {
        uint32_t size;
        uint32_t frames_len;
        uint32_t len;
        uint8_t id_len;
    } lies[] = {
        {0, 0, 4096, 0},
        {UINT32_MAX, 0, 4096, 0},
        {4096, UINT32_MAX, 4096, 0},
        {4096, 4000, 4096, 0},
        {sizeof(struct oribi_stack), 1, 4096, 0},
        {sizeof(struct oribi_stack), 0, 4096, 255},
        {4096, 0, sizeof(struct oribi_stack) - 1, 0},
        {8192, 0, 4096, 0},
    };
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        open_world();
        struct oribi_stack *stack = write_call("GET /x", "");
        stack->size = lies[i].size;
        stack->frames_len = lies[i].frames_len;
        stack->id_len = lies[i].id_len;
        atomic_store(&stacks_of(&world->observe, 0)->len, lies[i].len);
        ok_named(strstr(answer_text(), "): no call\n"), "lie %zu", i);
        close_world();
    }
    open_world();
    struct oribi_stack *stack = write_call("GET /x", "frame\n");
    memset(stack->line, 'x', sizeof(stack->line)); /* without an end */
    memset(stack->call, 'y', sizeof(stack->call));
    atomic_store(&stacks_of(&world->observe, 0)->len, UINT32_MAX);
    ok(strstr(answer_text(), "yyyy\n    frame\n"));
    close_world();
}

static void test_a_worker_that_says_nothing_is_not_waited_for(void)
{
    if (!only_on_linux("what a thread waits in is not known"))
        return;
    open_world();
    struct oribi_slot *slot = &world->context.board.slots[0];
    atomic_store(&slot->call_started_us, oribi_clock_us());
    memcpy(slot->line, "GET /stuck", 11);
    atomic_store(&stacks_of(&world->observe, 0)->helper_tid, INT32_MAX); /* there is no such thread */
    uint32_t number = oribi__stacks_ask(&world->observe);
    ok_eq(oribi__stacks_ask(&world->observe), number); /* those who ask meanwhile share the answer */
    ok(!oribi__stacks_answered(&world->observe, number));
    look_now(); /* too early */
    ok(!oribi__stacks_answered(&world->observe, number));
    ok(oribi_timer_at(&world->observe.state->stacks.look) <= oribi_clock_ms() + ORIBI__STACKS_LOOK_MS);
    world->observe.state->stacks.until = 0;
    look_now();
    ok(oribi__stacks_answered(&world->observe, number));
    ok_eq(world->stacks_found, 1);
    ok_eq(oribi_timer_at(&world->observe.state->stacks.look), INT64_MAX);
    (void)oribi_buf_try_append(&world->observe.state->stacks.text, "", 1);
    ok(strstr(world->observe.state->stacks.text.p, "does not answer; its first thread is running"));
    ok(strstr(world->observe.state->stacks.text.p, "; its call: GET /stuck, 0."));
    close_world();
}

int main(void)
{
    test_a_call_and_its_frames();
    test_nothing_speaks_to_the_terminal();
    test_lies_about_sizes_are_no_calls();
    test_a_worker_that_says_nothing_is_not_waited_for();
    return done_testing();
}
