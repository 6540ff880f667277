/* FrozenLake-v1: cross a frozen lake from start to goal without falling into a hole; the ice may be slippery. */
#include <string.h>

#include "base/memory.h"
#include "environments/kinds.h"

enum { DIRECTIONS = 4 }; /* left, down, right, up: each is beside its perpendiculars */

static const char *const map_names[] = {"4x4", "8x8", NULL};
static const char *const map_4[] = {"SFFF", "FHFH", "FFFH", "HFFG"};
static const char *const map_8[] = {"SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF",
                                    "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG"};

typedef struct lake_parameters {
    int map; /* in map_names */
    bool slippery;
    double success_rate;
    int size;
    const char *const *rows;
} lake_parameters;

typedef struct lake {
    int row, column;
} lake;

static epg_code configure(void *parameters, const char *text, epg_error *err)
{
    lake_parameters *self = parameters;
    *self = (lake_parameters){.slippery = true, .success_rate = 1.0 / 3.0};
    const epg_parameter table[] = {
        {.name = "map", .alias = "map_name", .kind = EPG_PARAMETER_CHOICE, .target = &self->map, .choices = map_names},
        {.name = "slippery", .alias = "is_slippery", .kind = EPG_PARAMETER_BOOL, .target = &self->slippery},
        {.name = "success_rate", .kind = EPG_PARAMETER_REAL, .target = &self->success_rate, .maximum = 1.0},
    };
    EPG_TRY(epg_parameters_parse("frozen-lake", text, table, EPG_COUNT(table), err));
    self->size = self->map == 0 ? 4 : 8;
    self->rows = self->map == 0 ? map_4 : map_8;
    return EPG_OK;
}

static double requested_probability(const lake_parameters *self)
{
    return self->slippery ? self->success_rate : 1.0;
}

static double perpendicular_probability(const lake_parameters *self)
{
    return self->slippery ? (1.0 - self->success_rate) / 2.0 : 0.0;
}

static void describe_parameters(const lake_parameters *self, epg_buffer *out)
{
    EPG_AUTO_BUFFER holes = {0};
    EPG_AUTO_BUFFER map = {0};
    for (int row = 0; row < self->size; row++) {
        (void)epg_buffer_format(&map, "%s'%s'", row == 0 ? "" : ", ", self->rows[row]);
        for (int column = 0; column < self->size; column++) {
            if (self->rows[row][column] == 'H') {
                (void)epg_buffer_format(&holes, "%s[%d, %d]", holes.size == 0 ? "" : ", ", row, column);
            }
        }
    }
    EPG_AUTO_BUFFER text = {0};
    (void)epg_buffer_format(&text,
                            "{'boundary_behavior': 'stay_in_place', 'columns': %d, 'rows': %d, 'goal_position': [%d, "
                            "%d], 'start_position': [0, 0], 'hole_positions': [%s], 'map': [%s], 'map_name': '%s', "
                            "'is_slippery': %s, 'reward_schedule': {'frozen': 0.0, 'goal': 1.0, 'hole': 0.0}, "
                            "'state_encoding': 'row_major_state_equals_row_times_columns_plus_column'",
                            self->size, self->size, self->size - 1, self->size - 1, epg_buffer_cstr(&holes),
                            epg_buffer_cstr(&map), map_names[self->map], self->slippery ? "true" : "false");
    epg_simple_literal_number(&text, "each_perpendicular_direction_probability", perpendicular_probability(self));
    epg_simple_literal_number(&text, "requested_direction_probability", requested_probability(self));
    epg_simple_literal_number(&text, "success_rate", self->success_rate);
    (void)epg_buffer_byte(&text, '}');
    epg_simple_literal(out, epg_buffer_cstr(&text));
}

static void describe(const void *parameters, epg_spec *spec)
{
    const lake_parameters *self = parameters;
    int last = self->size - 1;
    spec->max_episode_steps = self->map == 0 ? 100 : 200;
    EPG_AUTO_FREE char *ice =
        self->slippery
            ? epg_format(
                  "The ice is slippery: a move goes the way that was asked for with probability %.4g and each of "
                  "the two ways at right angles to it with %.4g, never backwards.",
                  requested_probability(self), perpendicular_probability(self))
            : epg_strdup("The ice is not slippery: every move goes the way that was asked for.");
    spec->description = epg_format(
        "Cross a frozen lake, a grid of %d by %d tiles, from the start at row 0, column 0 to the goal at row %d, "
        "column "
        "%d without falling into a hole. %s A move against the border stays in place. The map, in "
        "environment_parameters, is always the same: S start, F frozen, H hole, G goal. Reaching the goal earns 1 and "
        "ends the Episode; a hole ends it with 0; every other step earns 0. An Episode is cut after %llu steps. The "
        "score is the success rate, the share of Episodes that reach the goal; an Episode in which the Policy fails "
        "counts as 0.",
        self->size, self->size, last, last, ice, (unsigned long long)spec->max_episode_steps);
    EPG_AUTO_FREE char *space = epg_format(
        "{'type': 'object', 'policy_carrier': 'dict', 'fields': {"
        "'state': {'type': 'integer', 'minimum': 0, 'maximum': %d, 'meaning': 'row * %d + column'},"
        "'row': {'type': 'integer', 'minimum': 0, 'maximum': %d, 'meaning': 'Counted from 0 at the top, downwards.'},"
        "'column': {'type': 'integer', 'minimum': 0, 'maximum': %d, 'meaning': 'Counted from 0 at the left.'},"
        "'tile': {'type': 'string', 'values': ['S', 'F', 'H', 'G'], 'meaning': 'The tile that you stand on.'}}}",
        self->size * self->size - 1, self->size, last, last);
    epg_simple_literal(&spec->observation_space, space);
    epg_simple_literal(&spec->action_space,
                       "{'type': 'discrete', 'values': [0, 1, 2, 3], 'policy_carrier': 'int',"
                       " 'component': 'requested_direction', 'meaning': {'0': 'move_left', '1': 'move_down',"
                       " '2': 'move_right', '3': 'move_up'},"
                       " 'strictness': 'An int from 0 to 3; any other value is an invalid Action.'}");
    describe_parameters(self, &spec->environment_parameters);
}

static double worst_return(const void *parameters)
{
    (void)parameters;
    return 0.0;
}

static void reset(void *state, const void *parameters, epg_random *random)
{
    (void)state; /* zeroed: the start is at 0, 0 */
    (void)parameters;
    (void)epg_random_double(random); /* Gymnasium draws the one start that there is */
}

static int within(int value, int size)
{
    return value < 0 ? 0 : value >= size ? size - 1 : value;
}

static void step(void *state, const void *parameters, epg_random *random, epg_action action, epg_outcome *out)
{
    static const int down[DIRECTIONS] = {0, 1, 0, -1};
    static const int right[DIRECTIONS] = {-1, 0, 1, 0};
    const lake_parameters *lake_is = parameters;
    lake *self = state;
    unsigned way = action.index;
    if (lake_is->slippery) {
        double side = perpendicular_probability(lake_is);
        const double ways[] = {side, requested_probability(lake_is), side};
        way = (action.index + DIRECTIONS - 1 + (unsigned)epg_random_categorical(random, ways, 3)) % DIRECTIONS;
    } else {
        (void)epg_random_double(random);
    }
    self->row = within(self->row + down[way], lake_is->size);
    self->column = within(self->column + right[way], lake_is->size);
    char tile = lake_is->rows[self->row][self->column];
    out->reward = tile == 'G' ? 1.0 : 0.0;
    out->terminated = tile == 'G' || tile == 'H';
    out->end = tile == 'G' ? "reached_the_goal" : "fell_into_a_hole";
}

static void observe(const void *state, const void *parameters, epg_buffer *out)
{
    const lake_parameters *lake_is = parameters;
    const lake *self = state;
    char tile[2] = {lake_is->rows[self->row][self->column], '\0'};
    epg_value_put_map(out, 4);
    epg_value_put_key(out, "column");
    epg_value_put_i64(out, self->column);
    epg_value_put_key(out, "row");
    epg_value_put_i64(out, self->row);
    epg_value_put_key(out, "state");
    epg_value_put_i64(out, self->row * lake_is->size + self->column);
    epg_value_put_key(out, "tile");
    epg_value_put_text(out, tile);
}

const epg_simple_kind epg_frozen_lake_kind = {
    .name = "frozen-lake",
    .id = "gymnasium/FrozenLake-v1/success-rate-v1",
    .primary_metric = "success_rate",
    .action_count = DIRECTIONS,
    .parameters_size = sizeof(lake_parameters),
    .state_size = sizeof(lake),
    .configure = configure,
    .describe = describe,
    .worst_return = worst_return,
    .reset = reset,
    .step = step,
    .observe = observe,
};
