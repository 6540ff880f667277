/* CliffWalking-v1: walk along a cliff's edge from the bottom left corner to the bottom right one. */
#include "base/memory.h"
#include "environments/kinds.h"

enum { ROWS = 4, COLUMNS = 12, DIRECTIONS = 4 }; /* up, right, down, left: each is beside its perpendiculars */

typedef struct cliff_parameters {
    bool slippery;
} cliff_parameters;

typedef struct walker {
    int row, column;
} walker;

static epg_code configure(void *parameters, const char *text, epg_error *err)
{
    cliff_parameters *self = parameters;
    *self = (cliff_parameters){.slippery = false};
    const epg_parameter table[] = {
        {.name = "slippery", .alias = "is_slippery", .kind = EPG_PARAMETER_BOOL, .target = &self->slippery},
    };
    return epg_parameters_parse("cliff-walking", text, table, EPG_COUNT(table), err);
}

static void describe(const void *parameters, epg_spec *spec)
{
    const cliff_parameters *self = parameters;
    spec->max_episode_steps = 200;
    spec->description = epg_format(
        "Walk over a grid of 4 rows and 12 columns from the start at row 3, column 0 to the goal at row 3, column 11. "
        "The tiles between them, row 3, columns 1 to 10, are a cliff: stepping there earns -100 and puts you back at "
        "the start, and the Episode goes on. Every other step earns -1, the one onto the goal included, which ends the "
        "Episode. A move against the border stays in place. %s An Episode is cut after 200 steps. The score is the "
        "mean "
        "return%s; an Episode in which the Policy fails counts as -20000.",
        self->slippery ? "The ground is slippery: a move goes the way that was asked for or one of the two ways at "
                         "right angles to it, each with probability 1/3."
                       : "Every move goes the way that was asked for.",
        self->slippery ? "" : " (the shortest safe path gives -13)");
    epg_simple_literal(
        &spec->observation_space,
        "{'type': 'object', 'policy_carrier': 'dict', 'fields': {"
        "'state': {'type': 'integer', 'minimum': 0, 'maximum': 47,"
        " 'meaning': 'Row-major id equal to row * 12 + column.'},"
        "'row': {'type': 'integer', 'minimum': 0, 'maximum': 3, 'meaning': 'Zero-based row increasing downward.'},"
        "'column': {'type': 'integer', 'minimum': 0, 'maximum': 11,"
        " 'meaning': 'Zero-based column increasing rightward.'},"
        "'tile': {'type': 'string', 'values': ['start', 'safe', 'goal'],"
        " 'meaning': 'The tile that you stand on; a cliff tile is never seen.'}}}");
    epg_simple_literal(&spec->action_space,
                       "{'type': 'discrete', 'values': [0, 1, 2, 3], 'policy_carrier': 'int',"
                       " 'component': 'requested_direction', 'meaning': {'0': 'move_up', '1': 'move_right',"
                       " '2': 'move_down', '3': 'move_left'},"
                       " 'strictness': 'An int from 0 to 3; any other value is an invalid Action.'}");
    EPG_AUTO_FREE char *text = epg_format(
        "{'boundary_behavior': 'stay_in_place',"
        " 'cliff_behavior': 'reward_minus_100_and_return_to_start_without_termination',"
        " 'cliff_is_live_observation_tile': false, 'cliff_positions': [[3, 1], [3, 2], [3, 3], [3, 4], [3, 5], [3, 6],"
        " [3, 7], [3, 8], [3, 9], [3, 10]], 'cliff_reward': -100.0, 'columns': 12,"
        " 'each_adjacent_direction_probability': %s, 'goal_position': [3, 11], 'is_slippery': %s,"
        " 'map': ['............', '............', '............', 'SCCCCCCCCCCG'], 'ordinary_and_goal_reward': -1.0,"
        " 'requested_direction_probability': %s, 'rows': 4, 'start_position': [3, 0],"
        " 'state_encoding': 'row_major_state_equals_row_times_12_plus_column', 'time_limit': 200}",
        self->slippery ? "0.3333333333333333" : "0.0", self->slippery ? "true" : "false",
        self->slippery ? "0.3333333333333333" : "1.0");
    epg_simple_literal(&spec->environment_parameters, text);
}

static double worst_return(const void *parameters)
{
    (void)parameters;
    return -20000.0; /* over the cliff in every one of 200 steps */
}

static void reset(void *state, const void *parameters, epg_random *random)
{
    (void)parameters;
    *(walker *)state = (walker){.row = ROWS - 1, .column = 0};
    (void)epg_random_double(random); /* Gymnasium draws the one start that there is */
}

static int within(int value, int size)
{
    return value < 0 ? 0 : value >= size ? size - 1 : value;
}

static void step(void *state, const void *parameters, epg_random *random, epg_action action, epg_outcome *out)
{
    static const int down[DIRECTIONS] = {-1, 0, 1, 0};
    static const int right[DIRECTIONS] = {0, 1, 0, -1};
    const cliff_parameters *cliff = parameters;
    walker *self = state;
    unsigned way = action.index;
    if (cliff->slippery) {
        static const double ways[] = {1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0};
        way = (action.index + DIRECTIONS - 1 + (unsigned)epg_random_categorical(random, ways, 3)) % DIRECTIONS;
    } else {
        (void)epg_random_double(random);
    }
    self->row = within(self->row + down[way], ROWS);
    self->column = within(self->column + right[way], COLUMNS);
    out->reward = -1.0;
    if (self->row == ROWS - 1 && self->column > 0 && self->column < COLUMNS - 1) {
        out->reward = -100.0;
        self->column = 0;
    }
    out->terminated = self->row == ROWS - 1 && self->column == COLUMNS - 1;
    out->end = "reached_the_goal";
}

static void observe(const void *state, const void *parameters, epg_buffer *out)
{
    (void)parameters;
    const walker *self = state;
    bool bottom = self->row == ROWS - 1;
    epg_value_put_map(out, 4);
    epg_value_put_key(out, "column");
    epg_value_put_i64(out, self->column);
    epg_value_put_key(out, "row");
    epg_value_put_i64(out, self->row);
    epg_value_put_key(out, "state");
    epg_value_put_i64(out, self->row * COLUMNS + self->column);
    epg_value_put_key(out, "tile");
    epg_value_put_text(out, !bottom ? "safe" : self->column == 0 ? "start" : "goal");
}

const epg_simple_kind epg_cliff_walking_kind = {
    .name = "cliff-walking",
    .id = "gymnasium/CliffWalking-v1/mean-return-v1",
    .primary_metric = "mean_return",
    .action_count = DIRECTIONS,
    .parameters_size = sizeof(cliff_parameters),
    .state_size = sizeof(walker),
    .configure = configure,
    .describe = describe,
    .worst_return = worst_return,
    .reset = reset,
    .step = step,
    .observe = observe,
};
