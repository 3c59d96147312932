/* A server that the tests of `observe` look at; see the header. */
#include "observe_world.h"

#include "tap.h"

#include "oribi/base/mem.h"

struct world *world;

static void report(void *owner, const struct oribi_policy_event *event)
{
    struct world *which = owner;
    which->reports++;
    which->report = *event;
}

static void stacks_found(void *owner)
{
    struct world *which = owner;
    which->stacks_found++;
}

struct world *world_begin(uint32_t workers, uint32_t slots)
{
    struct oribi_policy_config config = {.workers = workers, .workers_max = workers};
    world = oribi_mem_alloc(1, sizeof(*world));
    ok_eq(oribi_dispatcher_init(&world->dispatcher), 0);
    oribi_options_init(&world->options);
    world->predecessor_fd = -1;
    world->context.options = &world->options;
    world->context.listeners = &world->listeners;
    world->context.program = "test";
    world->observe.view = (struct oribi__view){
        .context = &world->context,
        .policy = &world->policy,
        .frontends = &world->frontends,
        .acme = &world->acme,
        .predecessor_fd = &world->predecessor_fd,
        .version = "",
        .restart_file = "",
    };
    world->observe.dispatcher = &world->dispatcher;
    world->observe.owner = world;
    world->observe.report = report;
    world->observe.stacks_found = stacks_found;
    oribi__observe_init(&world->observe);
    ok_eq(oribi_scoreboard_create(&world->context.board, slots), 0);
    oribi_policy_init(&world->policy, &config, world->context.board.slots, slots);
    return world;
}

void world_end(struct world *which)
{
    oribi__observe_close(&which->observe, true);
    oribi__observe_deinit(&which->observe);
    oribi__inherited_totals_close(&which->observe.inherited);
    ok_eq(which->dispatcher.timers.len, 0);
    oribi_dispatcher_deinit(&which->dispatcher);
    oribi_scoreboard_destroy(&which->context.board);
    oribi_options_deinit(&which->options);
    if (world == which)
        world = NULL;
    oribi_mem_free(which);
}

void world_turn(struct world *which)
{
    while (oribi_dispatcher_next(&which->dispatcher))
        continue;
}

void world_expire(struct world *which, struct oribi_timer *timer)
{
    oribi_dispatcher_arm(&which->dispatcher, timer, 1);
    world_turn(which);
}
