/* Taxi-v4: fetch a passenger at one of four landmarks and take them to another. Rain can push the taxi aside; a fickle
 * passenger may change their mind once, on the first move with them aboard. */
#include "base/memory.h"
#include "environments/kinds.h"

enum { SIZE = 5, LANDMARKS = 4, IN_TAXI = 4, STATES = SIZE * SIZE * (LANDMARKS + 1) * LANDMARKS };
enum { SOUTH, NORTH, EAST, WEST, PICKUP, DROPOFF, ACTIONS };

/* What stands between columns decides where the taxi can pass: ':' lets it, '|' is a wall. */
static const char *const map[] = {"+---------+", "|R: | : :G|", "| : | : : |", "| : : : : |",
                                  "| | : | : |", "|Y| : |B: |", "+---------+"};
static const int landmark_rows[LANDMARKS] = {0, 0, 4, 4};
static const int landmark_columns[LANDMARKS] = {0, 4, 0, 3};
static const char *const place_names[] = {"red", "green", "yellow", "blue", "in_taxi"};

typedef struct taxi_parameters {
    bool rainy, fickle;
    double rainy_probability, fickle_probability;
} taxi_parameters;

typedef struct taxi {
    int row, column, passenger, destination;
    bool may_change; /* the passenger's mind, still */
} taxi;

static epg_code configure(void *parameters, const char *text, epg_error *err)
{
    taxi_parameters *self = parameters;
    *self = (taxi_parameters){.rainy_probability = 0.8, .fickle_probability = 0.3};
    const epg_parameter table[] = {
        {.name = "rainy", .alias = "is_rainy", .kind = EPG_PARAMETER_BOOL, .target = &self->rainy},
        {.name = "fickle", .alias = "fickle_passenger", .kind = EPG_PARAMETER_BOOL, .target = &self->fickle},
        {.name = "rainy_probability", .kind = EPG_PARAMETER_REAL, .target = &self->rainy_probability, .maximum = 1.0},
        {.name = "fickle_probability", .kind = EPG_PARAMETER_REAL, .target = &self->fickle_probability, .maximum = 1.0},
    };
    return epg_parameters_parse("taxi", text, table, EPG_COUNT(table), err);
}

static double aside_probability(const taxi_parameters *self)
{
    return self->rainy ? (1.0 - self->rainy_probability) / 2.0 : 0.0;
}

static void describe_parameters(const taxi_parameters *self, epg_buffer *out)
{
    EPG_AUTO_BUFFER text = {0};
    (void)epg_buffer_text(
        &text, "{'columns': 5, 'rows': 5, 'destination_indices': {'red': 0, 'green': 1, 'yellow': 2, 'blue': 3},"
               " 'passenger_indices': {'red': 0, 'green': 1, 'yellow': 2, 'blue': 3, 'in_taxi': 4},"
               " 'landmarks': {'red': [0, 0], 'green': [0, 4], 'yellow': [4, 0], 'blue': [4, 3]},"
               " 'map': ['+---------+', '|R: | : :G|', '| : | : : |', '| : : : : |', '| | : | : |', '|Y| : |B: |',"
               " '+---------+'], 'encoded_state_count': 500, 'reachable_state_count': 404,"
               " 'uniform_initial_state_count': 300,"
               " 'fickle_change_trigger': 'first_successful_taxi_movement_after_first_pickup',"
               " 'legal_actions_is_enforced_mask': false, 'reward_schedule': {'illegal_pickup_or_dropoff': -10.0,"
               " 'ordinary_or_wrong_landmark_dropoff': -1.0, 'successful_dropoff': 20.0},"
               " 'state_encoding': '(((taxi_row*5+taxi_column)*5+passenger_index)*4+destination_index)'");
    (void)epg_buffer_format(&text, ", 'fickle_passenger': %s, 'is_rainy': %s", self->fickle ? "true" : "false",
                            self->rainy ? "true" : "false");
    epg_simple_literal_number(&text, "each_lateral_movement_probability", aside_probability(self));
    epg_simple_literal_number(&text, "requested_movement_probability", self->rainy ? self->rainy_probability : 1.0);
    epg_simple_literal_number(&text, "fickle_probability", self->fickle_probability);
    epg_simple_literal_number(&text, "rainy_probability", self->rainy_probability);
    /* The one text here that holds the literal's own quotes. */
    (void)epg_buffer_text(&text, ", 'map_encoding': 'each interior \\u0027:\\u0027 permits east-west passage; "
                                 "\\u0027|\\u0027 is a vertical wall; north-south movement has no interior walls'}");
    epg_simple_literal(out, epg_buffer_cstr(&text));
}

static void describe(const void *parameters, epg_spec *spec)
{
    const taxi_parameters *self = parameters;
    spec->max_episode_steps = 200;
    EPG_AUTO_FREE char *rain =
        self->rainy
            ? epg_format(" It rains: a move goes the way that was asked for with probability %.4g and to each "
                         "side of it with %.4g, staying in place where that side is blocked; a move into a wall "
                         "never slips.",
                         self->rainy_probability, aside_probability(self))
            : epg_strdup("");
    EPG_AUTO_FREE char *fickle =
        self->fickle
            ? epg_format(" The passenger is fickle: with probability %.4g an Episode is one in which the first "
                         "move with them aboard draws another destination, so look at it in every step.",
                         self->fickle_probability)
            : epg_strdup("");
    spec->description = epg_format(
        "Drive a taxi on a grid of 5 by 5 tiles: go to the passenger, who waits at one of four landmarks, pick them "
        "up, "
        "take them to the landmark that is their destination and drop them off there. Walls stand between some columns "
        "(see map in environment_parameters); driving into one, or over the border, stays in place. Every step earns "
        "-1, but a pickup where no passenger waits and a dropoff that is not allowed earn -10, and dropping the "
        "passenger off at the destination earns 20 and ends the Episode. A dropoff at another landmark is allowed and "
        "leaves the passenger there.%s%s The start is drawn evenly: any tile, the passenger at a landmark that is not "
        "the destination. An Episode is cut after 200 steps. The score is the mean return (near 8 for the best Policy "
        "without rain); an Episode in which the Policy fails counts as -2000.",
        rain, fickle);
    epg_simple_literal(
        &spec->observation_space,
        "{'type': 'object', 'policy_carrier': 'dict', 'fields': {"
        "'state': {'type': 'integer', 'minimum': 0, 'maximum': 499,"
        " 'meaning': '((taxi_row * 5 + taxi_column) * 5 + passenger_index) * 4 + destination_index'},"
        "'taxi_row': {'type': 'integer', 'minimum': 0, 'maximum': 4, 'meaning': 'Counted from 0 in the north.'},"
        "'taxi_column': {'type': 'integer', 'minimum': 0, 'maximum': 4, 'meaning': 'Counted from 0 in the west.'},"
        "'passenger_location': {'type': 'string', 'values': ['red', 'green', 'yellow', 'blue', 'in_taxi']},"
        "'destination': {'type': 'string', 'values': ['red', 'green', 'yellow', 'blue']},"
        "'legal_actions': {'type': 'array', 'items': {'type': 'integer', 'minimum': 0, 'maximum': 5},"
        " 'meaning': 'Advice: the Actions that change the state (or are a rightful pickup or dropoff); others are"
        " taken too, and cost.'}}}");
    epg_simple_literal(&spec->action_space,
                       "{'type': 'discrete', 'values': [0, 1, 2, 3, 4, 5], 'policy_carrier': 'int',"
                       " 'component': 'requested_action', 'masked': false, 'advisory_action_field': 'legal_actions',"
                       " 'meaning': {'0': 'move_south', '1': 'move_north', '2': 'move_east', '3': 'move_west',"
                       " '4': 'pickup', '5': 'dropoff'},"
                       " 'strictness': 'An int from 0 to 5; any other value is an invalid Action.'}");
    describe_parameters(self, &spec->environment_parameters);
}

static double worst_return(const void *parameters)
{
    (void)parameters;
    return -2000.0; /* a wrong pickup in every one of 200 steps */
}

static void reset(void *state, const void *parameters, epg_random *random)
{
    const taxi_parameters *self_is = parameters;
    taxi *self = state;
    double chances[STATES];
    for (int i = 0; i < STATES; i++) {
        int passenger = i / LANDMARKS % (LANDMARKS + 1);
        chances[i] = passenger < IN_TAXI && passenger != i % LANDMARKS ? 1.0 / 300.0 : 0.0;
    }
    int drawn = (int)epg_random_categorical(random, chances, STATES);
    self->destination = drawn % LANDMARKS;
    self->passenger = drawn / LANDMARKS % (LANDMARKS + 1);
    self->column = drawn / (LANDMARKS * (LANDMARKS + 1)) % SIZE;
    self->row = drawn / (LANDMARKS * (LANDMARKS + 1) * SIZE);
    self->may_change = self_is->fickle && epg_random_double(random) < self_is->fickle_probability;
}

static bool open_east(int row, int column)
{
    return map[1 + row][2 * column + 2] == ':';
}

static bool open_west(int row, int column)
{
    return map[1 + row][2 * column] == ':';
}

static int within(int value)
{
    return value < 0 ? 0 : value >= SIZE ? SIZE - 1 : value;
}

/* The landmark where the taxi stands, or -1. */
static int landmark_here(const taxi *self)
{
    for (int i = 0; i < LANDMARKS; i++) {
        if (landmark_rows[i] == self->row && landmark_columns[i] == self->column) {
            return i;
        }
    }
    return -1;
}

static bool blocked(const taxi *self, unsigned way)
{
    return (way == EAST && !open_east(self->row, self->column)) || (way == WEST && !open_west(self->row, self->column));
}

static void move(taxi *self, const taxi_parameters *parameters, epg_random *random, unsigned way)
{
    static const int down[] = {1, -1, 0, 0};
    static const int right[] = {0, 0, 1, -1};
    /* What is to the left and to the right of the way that it drives. Gymnasium's Episodes that ours are held against
     * show it for north, east and west; for south it is what these three have in common. */
    static const unsigned aside[][2] = {
        [SOUTH] = {EAST, WEST}, [NORTH] = {WEST, EAST}, [EAST] = {NORTH, SOUTH}, [WEST] = {SOUTH, NORTH}};
    const double side = aside_probability(parameters);
    const double ways[] = {parameters->rainy ? parameters->rainy_probability : 1.0, side, side};
    size_t drawn = epg_random_categorical(random, ways, 3);
    if (blocked(self, way)) {
        return; /* a taxi that a wall stops is not pushed aside either */
    }
    unsigned taken = drawn == 0 ? way : aside[way][drawn - 1];
    if (!blocked(self, taken)) {
        self->row = within(self->row + down[taken]);
        self->column = within(self->column + right[taken]);
    }
}

static void pick_up(taxi *self, epg_outcome *out)
{
    if (self->passenger != IN_TAXI && landmark_here(self) == self->passenger) {
        self->passenger = IN_TAXI;
    } else {
        out->reward = -10.0;
    }
}

static void drop_off(taxi *self, epg_outcome *out)
{
    int here = landmark_here(self);
    if (here < 0 || self->passenger != IN_TAXI) {
        out->reward = -10.0;
        return;
    }
    self->passenger = here;
    if (here == self->destination) {
        out->reward = 20.0;
        out->terminated = true;
        out->end = "delivered";
    }
}

static void change_mind(taxi *self, epg_random *random)
{
    int drawn = (int)epg_random_below(random, LANDMARKS - 1); /* among the other destinations, in order */
    self->may_change = false;
    self->destination = drawn < self->destination ? drawn : drawn + 1;
}

static void step(void *state, const void *parameters, epg_random *random, epg_action action, epg_outcome *out)
{
    taxi *self = state;
    const taxi before = *self;
    out->reward = -1.0;
    if (action.index <= WEST) {
        move(self, parameters, random, action.index);
    } else {
        (void)epg_random_double(random);
        if (action.index == PICKUP) {
            pick_up(self, out);
        } else {
            drop_off(self, out);
        }
    }
    bool moved = self->row != before.row || self->column != before.column;
    if (self->may_change && before.passenger == IN_TAXI && moved) {
        change_mind(self, random);
    }
}

static unsigned legal_actions(const taxi *self, unsigned out[ACTIONS])
{
    int here = landmark_here(self);
    const bool legal[ACTIONS] = {
        [SOUTH] = self->row<SIZE - 1, [NORTH] = self->row> 0,
        [EAST] = open_east(self->row, self->column),
        [WEST] = open_west(self->row, self->column),
        [PICKUP] = self->passenger != IN_TAXI && here == self->passenger,
        [DROPOFF] = self->passenger == IN_TAXI && here >= 0,
    };
    unsigned count = 0;
    for (unsigned i = 0; i < ACTIONS; i++) {
        if (legal[i]) {
            out[count++] = i;
        }
    }
    return count;
}

static void observe(const void *state, const void *parameters, epg_buffer *out)
{
    (void)parameters;
    const taxi *self = state;
    unsigned legal[ACTIONS];
    unsigned count = legal_actions(self, legal);
    epg_value_put_map(out, 6);
    epg_value_put_key(out, "destination");
    epg_value_put_text(out, place_names[self->destination]);
    epg_value_put_key(out, "legal_actions");
    epg_value_put_list(out, count);
    for (unsigned i = 0; i < count; i++) {
        epg_value_put_i64(out, legal[i]);
    }
    epg_value_put_key(out, "passenger_location");
    epg_value_put_text(out, place_names[self->passenger]);
    epg_value_put_key(out, "state");
    epg_value_put_i64(out, ((self->row * SIZE + self->column) * (LANDMARKS + 1) + self->passenger) * LANDMARKS +
                               self->destination);
    epg_value_put_key(out, "taxi_column");
    epg_value_put_i64(out, self->column);
    epg_value_put_key(out, "taxi_row");
    epg_value_put_i64(out, self->row);
}

const epg_simple_kind epg_taxi_kind = {
    .name = "taxi",
    .id = "gymnasium/Taxi-v4/mean-return-v1",
    .primary_metric = "mean_return",
    .action_count = ACTIONS,
    .parameters_size = sizeof(taxi_parameters),
    .state_size = sizeof(taxi),
    .configure = configure,
    .describe = describe,
    .worst_return = worst_return,
    .reset = reset,
    .step = step,
    .observe = observe,
};
