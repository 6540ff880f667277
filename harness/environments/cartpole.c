/* CartPole-v1: a pole hinged on a cart; push the cart left or right and keep the pole up.
 *
 * The equations of Barto, Sutton and Anderson (1983) without friction, moved by explicit Euler steps, in Gymnasium's
 * order of operations. */
#include "base/memory.h"
#include "environments/kinds.h"
#include "environments/trig.h"

static const double GRAVITY = 9.8;
static const double CART_MASS = 1.0;
static const double POLE_MASS = 0.1;
static const double HALF_LENGTH = 0.5;
static const double FORCE = 10.0;
static const double SECONDS = 0.02;
static const double POSITION_LIMIT = 2.4;
static const double ANGLE_LIMIT = 12.0 * 2.0 * EPG_PI / 360.0;

typedef struct cartpole {
    double position, velocity, angle, angular_velocity;
} cartpole;

static void describe(const void *parameters, epg_spec *spec)
{
    (void)parameters;
    spec->max_episode_steps = 500;
    spec->description = epg_strdup(
        "Keep a pole upright on a cart that moves along a frictionless track, by pushing the cart left or right with a "
        "fixed force 50 times a second. Every step earns 1.0, the last one included. An Episode ends when the pole "
        "leans more than 12 degrees (0.2095 rad) from upright, when the cart's centre is more than 2.4 m from the "
        "middle, or after 500 steps, so a return lies between 1 and 500. It starts near upright and at rest: each of "
        "the four state numbers is drawn evenly from [-0.05, 0.05]. The score is the mean return over the Episodes; an "
        "Episode in which the Policy fails counts as 0.");
    epg_simple_literal(
        &spec->observation_space,
        "{'type': 'vector', 'policy_carrier': 'list[float]', 'source_dtype': 'float32', 'shape': [4],"
        " 'components': ['cart_position', 'cart_velocity', 'pole_angle', 'pole_angular_velocity'],"
        " 'component_meanings': {"
        "'cart_position': 'Metres from the middle of the track, positive to the right; beyond 2.4 either"
        " way the Episode is over.',"
        "'cart_velocity': 'Metres per second, positive to the right; unbounded.',"
        "'pole_angle': 'Radians from upright, positive when the pole leans right; beyond 0.2094 either"
        " way the Episode is over.',"
        "'pole_angular_velocity': 'Radians per second, positive when the pole turns right; unbounded.'}}");
    epg_simple_literal(&spec->action_space,
                       "{'type': 'discrete', 'values': [0, 1], 'policy_carrier': 'int', 'component': 'force_direction',"
                       " 'meaning': {'0': 'push_left', '1': 'push_right'},"
                       " 'strictness': 'An int 0 or 1; a bool, a float or any other value is an invalid Action.'}");
    epg_simple_literal(
        &spec->environment_parameters,
        "{'cart_mass_kilograms': 1.0, 'cart_position_limit_meters': 2.4, 'force_magnitude_newtons': 10.0,"
        " 'gravity_meters_per_second_squared': 9.8, 'initial_state_maximum': 0.05,"
        " 'initial_state_minimum': -0.05, 'integrator': 'explicit_euler',"
        " 'pole_angle_limit_degrees': 12.0, 'pole_angle_limit_radians': 0.20943951023931953,"
        " 'pole_half_length_meters': 0.5, 'pole_mass_kilograms': 0.1,"
        " 'reward_per_step_including_termination': 1.0, 'seconds_per_step': 0.02, 'time_limit': 500}");
}

static double worst_return(const void *parameters)
{
    (void)parameters;
    return 0.0;
}

static void reset(void *state, const void *parameters, epg_random *random)
{
    (void)parameters;
    cartpole *self = state;
    self->position = epg_random_uniform(random, -0.05, 0.05);
    self->velocity = epg_random_uniform(random, -0.05, 0.05);
    self->angle = epg_random_uniform(random, -0.05, 0.05);
    self->angular_velocity = epg_random_uniform(random, -0.05, 0.05);
}

static const char *end_name(const cartpole *self)
{
    if (self->angle < -ANGLE_LIMIT) {
        return "pole_fell_left";
    }
    if (self->angle > ANGLE_LIMIT) {
        return "pole_fell_right";
    }
    if (self->position < -POSITION_LIMIT) {
        return "cart_left_the_track_on_the_left";
    }
    return self->position > POSITION_LIMIT ? "cart_left_the_track_on_the_right" : NULL;
}

static void step(void *state, const void *parameters, epg_random *random, epg_action action, epg_outcome *out)
{
    (void)parameters;
    (void)random;
    cartpole *self = state;
    const double mass = POLE_MASS + CART_MASS;
    const double moment = POLE_MASS * HALF_LENGTH;
    double sine;
    double cosine;
    epg_sin_cos(self->angle, &sine, &cosine);
    double force = action.index == 1 ? FORCE : -FORCE;
    double push = (force + moment * (self->angular_velocity * self->angular_velocity) * sine) / mass;
    double angular_acceleration =
        (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / mass));
    double acceleration = push - moment * angular_acceleration * cosine / mass;
    self->position = self->position + SECONDS * self->velocity;
    self->velocity = self->velocity + SECONDS * acceleration;
    self->angle = self->angle + SECONDS * self->angular_velocity;
    self->angular_velocity = self->angular_velocity + SECONDS * angular_acceleration;
    out->reward = 1.0;
    out->end = end_name(self);
    out->terminated = out->end != NULL;
}

static void observe(const void *state, const void *parameters, epg_buffer *out)
{
    (void)parameters;
    const cartpole *self = state;
    const double seen[] = {self->position, self->velocity, self->angle, self->angular_velocity};
    epg_simple_put_float32s(out, seen, EPG_COUNT(seen));
}

const epg_simple_kind epg_cartpole_kind = {
    .name = "cartpole",
    .id = "gymnasium/CartPole-v1/mean-return-v1",
    .primary_metric = "mean_return",
    .action_count = 2,
    .state_size = sizeof(cartpole),
    .describe = describe,
    .worst_return = worst_return,
    .reset = reset,
    .step = step,
    .observe = observe,
};
