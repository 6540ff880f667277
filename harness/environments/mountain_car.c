/* MountainCar-v0 and MountainCarContinuous-v0: an engine too weak for the hill; rock back and forth to climb it.
 *
 * In Gymnasium's order of operations. The continuous one keeps its state as float32 between steps, as Gymnasium does.
 */
#include "base/memory.h"
#include "environments/kinds.h"
#include "environments/trig.h"

static const double LEFT = -1.2;
static const double RIGHT = 0.6;
static const double SPEED_LIMIT = 0.07;
static const double GRAVITY = 0.0025;

typedef struct car {
    double position, velocity;
} car;

#define OBSERVATION_SPACE                                                                                              \
    "{'type': 'object', 'policy_carrier': 'dict[str, float]', 'source_dtype': 'float32', 'fields': {"                  \
    "'position': {'type': 'float', 'minimum': -1.2, 'maximum': 0.6, 'unit': 'track_position',"                         \
    " 'meaning': 'Where the car is along the track; the valley floor is near -0.52.'},"                                \
    "'velocity': {'type': 'float', 'minimum': -0.07, 'maximum': 0.07, 'unit': 'track_position_per_step',"              \
    " 'meaning': 'Positive to the right.'}}}"

static void reset(void *state, const void *parameters, epg_random *random)
{
    (void)parameters;
    car *self = state;
    self->position = epg_random_uniform(random, -0.6, -0.4);
    self->velocity = 0.0;
}

static double clip(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static void roll(car *self, double velocity)
{
    self->velocity = clip(velocity, -SPEED_LIMIT, SPEED_LIMIT);
    self->position = clip(self->position + self->velocity, LEFT, RIGHT);
    if (self->position == LEFT && self->velocity < 0.0) {
        self->velocity = 0.0; /* the wall */
    }
}

static void observe(const void *state, const void *parameters, epg_buffer *out)
{
    (void)parameters;
    const car *self = state;
    epg_value_put_map(out, 2);
    epg_value_put_key(out, "position");
    epg_value_put_float(out, epg_float32(self->position));
    epg_value_put_key(out, "velocity");
    epg_value_put_float(out, epg_float32(self->velocity));
}

/* --- MountainCar-v0 --- */

static void describe(const void *parameters, epg_spec *spec)
{
    (void)parameters;
    spec->max_episode_steps = 200;
    spec->description = epg_strdup(
        "Drive a car out of a valley to the flag on the right hill. Its engine is too weak to climb straight up, so it "
        "must rock back and forth to gather speed. Each step the velocity changes by (action - 1) * 0.001 - 0.0025 * "
        "cos(3 * position), is clipped to [-0.07, 0.07] and added to the position, which is clipped to [-1.2, 0.6]; "
        "the "
        "left end is a wall that stops the car. Every step earns -1. An Episode ends when the car is at 0.5 or beyond "
        "while not rolling back, or is cut after 200 steps. It starts at rest, the position drawn evenly from [-0.6, "
        "-0.4]. The score is the mean return, from -200 (never there) upwards, higher for a faster climb; an Episode "
        "in "
        "which the Policy fails counts as -200.");
    epg_simple_literal(&spec->observation_space, OBSERVATION_SPACE);
    epg_simple_literal(&spec->action_space,
                       "{'type': 'discrete', 'values': [0, 1, 2], 'policy_carrier': 'int',"
                       " 'component': 'engine_acceleration_direction', 'meaning': {'0': 'accelerate_left',"
                       " '1': 'coast_without_engine_acceleration', '2': 'accelerate_right'},"
                       " 'strictness': 'An int from 0 to 2; any other value is an invalid Action.'}");
    epg_simple_literal(
        &spec->environment_parameters,
        "{'engine_velocity_increment_per_action_unit': 0.001, 'goal_position_minimum': 0.5,"
        " 'goal_velocity_minimum': 0.0, 'gravity_velocity_increment_formula': '-0.0025*cos(3*position)',"
        " 'initial_position_maximum': -0.4, 'initial_position_minimum': -0.6, 'initial_velocity': 0.0,"
        " 'left_wall_velocity_reset': 0.0, 'maximum_absolute_velocity': 0.07, 'maximum_position': 0.6,"
        " 'minimum_position': -1.2, 'position_update_formula': 'clip(position+updated_velocity,-1.2,0.6)',"
        " 'reward_per_transition': -1.0, 'terrain_height_formula': '0.45*sin(3*position)+0.55', 'time_limit': 200,"
        " 'velocity_update_formula': 'clip(velocity+(action-1)*0.001-0.0025*cos(3*position),-0.07,0.07)'}");
}

static double worst_return(const void *parameters)
{
    (void)parameters;
    return -200.0;
}

static void step(void *state, const void *parameters, epg_random *random, epg_action action, epg_outcome *out)
{
    (void)parameters;
    (void)random;
    car *self = state;
    double change = ((double)action.index - 1.0) * 0.001 + epg_cos(3.0 * self->position) * -GRAVITY;
    roll(self, self->velocity + change);
    out->reward = -1.0;
    out->terminated = self->position >= 0.5 && self->velocity >= 0.0;
    out->end = "reached_the_flag";
}

const epg_simple_kind epg_mountain_car_kind = {
    .name = "mountain-car",
    .id = "gymnasium/MountainCar-v0/mean-return-v1",
    .primary_metric = "mean_return",
    .action_count = 3,
    .state_size = sizeof(car),
    .describe = describe,
    .worst_return = worst_return,
    .reset = reset,
    .step = step,
    .observe = observe,
};

/* --- MountainCarContinuous-v0 --- */

static void describe_continuous(const void *parameters, epg_spec *spec)
{
    (void)parameters;
    spec->max_episode_steps = 999;
    spec->description = epg_strdup(
        "Drive a car out of a valley to the flag on the right hill, with an engine whose force you choose and pay for. "
        "It is too weak to climb straight up, so the car must rock back and forth. Each step the velocity changes by "
        "0.0015 * force - 0.0025 * cos(3 * position), is clipped to [-0.07, 0.07] and added to the position, which is "
        "clipped to [-1.2, 0.6]; the left end is a wall that stops the car. A step costs 0.1 * force^2, and the step "
        "that reaches 0.45 or beyond while not rolling back earns 100 and ends the Episode; it is cut after 999 steps. "
        "It starts at rest, the position drawn evenly from [-0.6, -0.4]. The score is the mean return, at most just "
        "under 100 (standing still gives 0); an Episode in which the Policy fails counts as -99.9.");
    epg_simple_literal(&spec->observation_space, OBSERVATION_SPACE);
    epg_simple_literal(&spec->action_space,
                       "{'type': 'float', 'minimum': -1.0, 'maximum': 1.0, 'policy_carrier': 'float',"
                       " 'meaning': 'The engine force, negative to the left.',"
                       " 'strictness': 'A float in the range; an int, or a float outside, is an invalid Action and is"
                       " never clipped.'}");
    epg_simple_literal(
        &spec->environment_parameters,
        "{'action_cost_coefficient': 0.1, 'engine_velocity_increment_per_unit_force': 0.0015,"
        " 'goal_position_minimum': 0.45, 'goal_velocity_minimum': 0.0,"
        " 'gravity_velocity_increment_formula': '-0.0025*cos(3*position)', 'initial_position_maximum': -0.4,"
        " 'initial_position_minimum': -0.6, 'initial_velocity': 0.0, 'left_wall_velocity_reset': 0.0,"
        " 'maximum_absolute_velocity': 0.07, 'maximum_position': 0.6, 'minimum_position': -1.2,"
        " 'position_update_formula': 'clip(position+updated_velocity,-1.2,0.6)',"
        " 'reward_formula': 'success_bonus_if_terminated-0.1*force^2', 'success_bonus': 100.0,"
        " 'terrain_height_formula': '0.45*sin(3*position)+0.55', 'time_limit': 999,"
        " 'velocity_update_formula': 'clip(velocity+force*0.0015-0.0025*cos(3*position),-0.07,0.07)'}");
}

static double worst_continuous_return(const void *parameters)
{
    (void)parameters;
    return -99.9; /* full force for 999 steps */
}

static void step_continuous(void *state, const void *parameters, epg_random *random, epg_action action,
                            epg_outcome *out)
{
    (void)parameters;
    (void)random;
    car *self = state;
    double change = action.value * 0.0015 - GRAVITY * epg_cos(3.0 * self->position);
    roll(self, self->velocity + change);
    out->terminated = self->position >= 0.45 && self->velocity >= 0.0;
    out->reward = (out->terminated ? 100.0 : 0.0) - action.value * action.value * 0.1;
    out->end = "reached_the_flag";
    self->position = epg_float32(self->position);
    self->velocity = epg_float32(self->velocity);
}

const epg_simple_kind epg_mountain_car_continuous_kind = {
    .name = "mountain-car-continuous",
    .id = "gymnasium/MountainCarContinuous-v0/mean-return-v1",
    .primary_metric = "mean_return",
    .action_low = -1.0,
    .action_high = 1.0,
    .state_size = sizeof(car),
    .describe = describe_continuous,
    .worst_return = worst_continuous_return,
    .reset = reset,
    .step = step_continuous,
    .observe = observe,
};
