/* Pendulum-v1: swing a rod up with a motor too weak to lift it at once, and hold it there. In Gymnasium's order of
 * operations. */
#include <math.h>

#include "base/memory.h"
#include "environments/kinds.h"
#include "environments/trig.h"

static const double GRAVITY = 10.0;
static const double SECONDS = 0.05;
static const double SPEED_LIMIT = 8.0;
static const double TORQUE_LIMIT = 2.0;
enum { STEPS = 200 };

typedef struct pendulum {
    double angle, velocity; /* the angle from upright, never wrapped */
} pendulum;

static void describe(const void *parameters, epg_spec *spec)
{
    (void)parameters;
    spec->max_episode_steps = STEPS;
    spec->description = epg_strdup(
        "Swing a 1 m, 1 kg rod up and balance it upright, with a motor at its pivot of at most 2 N m, too weak to lift "
        "it at once from the side. Theta is the angle from upright, positive counter-clockwise. Each step of 0.05 s "
        "the "
        "velocity changes by (15 * sin(theta) + 3 * torque) * 0.05, is clipped to [-8, 8] rad/s, and theta moves by "
        "0.05 times the new velocity. A step earns -(theta^2 + 0.1 * velocity^2 + 0.001 * torque^2), theta brought to "
        "[-pi, pi] and all measured before the step; the best is 0, upright and still. An Episode never ends by itself "
        "and is cut after 200 steps. Theta starts drawn evenly from [-pi, pi] and the velocity from [-1, 1]. The score "
        "is the mean return; an Episode in which the Policy fails counts as the worst return there is, about "
        "-3254.72.");
    epg_simple_literal(&spec->observation_space,
                       "{'type': 'object', 'policy_carrier': 'dict[str, float]', 'source_dtype': 'float32', 'fields': {"
                       "'cos_theta': {'type': 'float', 'minimum': -1.0, 'maximum': 1.0,"
                       " 'meaning': 'Cosine of theta; theta=0 is upright.'},"
                       "'sin_theta': {'type': 'float', 'minimum': -1.0, 'maximum': 1.0, 'meaning': 'Sine of theta.'},"
                       "'theta_angular_velocity': {'type': 'float', 'minimum': -8.0, 'maximum': 8.0,"
                       " 'unit': 'radians_per_second'}}}");
    epg_simple_literal(&spec->action_space,
                       "{'type': 'float', 'minimum': -2.0, 'maximum': 2.0, 'policy_carrier': 'float',"
                       " 'unit': 'newton_meters', 'meaning': 'signed_torque: negative/zero/positive',"
                       " 'strictness': 'A float in the range; an int, or a float outside, is an invalid Action and is"
                       " never clipped.'}");
    epg_simple_literal(
        &spec->environment_parameters,
        "{'angle_cost_coefficient': 1.0, 'angle_update_formula': 'theta+updated_theta_dot*0.05',"
        " 'angular_velocity_cost_coefficient': 0.1, 'angular_velocity_update_formula':"
        " 'clip(theta_dot+(3*g/(2*l)*sin(theta)+3*torque/(m*l^2))*0.05,-8,8)',"
        " 'gravity_meters_per_second_squared': 10.0, 'initial_angle_maximum_radians': 3.141592653589793,"
        " 'initial_angle_minimum_radians': -3.141592653589793,"
        " 'initial_angular_velocity_maximum_radians_per_second': 1.0,"
        " 'initial_angular_velocity_minimum_radians_per_second': -1.0, 'integrator': 'semi_implicit_euler',"
        " 'maximum_absolute_angular_velocity_radians_per_second': 8.0,"
        " 'maximum_absolute_torque_newton_meters': 2.0, 'natural_termination': 'none',"
        " 'pendulum_length_meters': 1.0, 'pendulum_mass_kilograms': 1.0,"
        " 'reward_formula': '-(theta^2+0.1*theta_dot^2+0.001*torque^2)', 'seconds_per_step': 0.05,"
        " 'time_limit': 200, 'torque_cost_coefficient': 0.001}");
}

static double cost(double angle, double velocity, double torque)
{
    return angle * angle + 0.1 * (velocity * velocity) + 0.001 * (torque * torque);
}

static double worst_return(const void *parameters)
{
    (void)parameters;
    return -STEPS * cost(EPG_PI, SPEED_LIMIT, TORQUE_LIMIT);
}

static void reset(void *state, const void *parameters, epg_random *random)
{
    (void)parameters;
    pendulum *self = state;
    self->angle = epg_random_uniform(random, -EPG_PI, EPG_PI);
    self->velocity = epg_random_uniform(random, -1.0, 1.0);
}

/* Into [-pi, pi), by a remainder that is never negative. */
static double wrap(double angle)
{
    double turned = fmod(angle + EPG_PI, 2.0 * EPG_PI);
    return (turned < 0.0 ? turned + 2.0 * EPG_PI : turned) - EPG_PI;
}

static void step(void *state, const void *parameters, epg_random *random, epg_action action, epg_outcome *out)
{
    (void)parameters;
    (void)random;
    pendulum *self = state;
    out->reward = -cost(wrap(self->angle), self->velocity, action.value);
    double velocity = self->velocity + (3.0 * GRAVITY / 2.0 * epg_sin(self->angle) + 3.0 * action.value) * SECONDS;
    self->velocity = velocity < -SPEED_LIMIT ? -SPEED_LIMIT : velocity > SPEED_LIMIT ? SPEED_LIMIT : velocity;
    self->angle = self->angle + self->velocity * SECONDS;
}

static void observe(const void *state, const void *parameters, epg_buffer *out)
{
    (void)parameters;
    const pendulum *self = state;
    double sine;
    double cosine;
    epg_sin_cos(self->angle, &sine, &cosine);
    epg_value_put_map(out, 3);
    epg_value_put_key(out, "cos_theta");
    epg_value_put_float(out, epg_float32(cosine));
    epg_value_put_key(out, "sin_theta");
    epg_value_put_float(out, epg_float32(sine));
    epg_value_put_key(out, "theta_angular_velocity");
    epg_value_put_float(out, epg_float32(self->velocity));
}

const epg_simple_kind epg_pendulum_kind = {
    .name = "pendulum",
    .id = "gymnasium/Pendulum-v1/mean-return-v1",
    .primary_metric = "mean_return",
    .action_low = -2.0,
    .action_high = 2.0,
    .state_size = sizeof(pendulum),
    .describe = describe,
    .worst_return = worst_return,
    .reset = reset,
    .step = step,
    .observe = observe,
};
