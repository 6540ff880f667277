/* Acrobot-v1: two links hang from a fixed pivot; only the joint between them has a motor.
 *
 * The equations of Sutton and Barto's book (all masses, lengths and moments of inertia 1, centres of mass at 0.5),
 * moved by one Runge-Kutta step of fourth order each 0.2 s, in Gymnasium's order of operations. */
#include "base/memory.h"
#include "environments/kinds.h"
#include "environments/trig.h"

enum { SIZE = 4 };

static const double GRAVITY = 9.8;
static const double CENTRE = 0.5;
static const double SECONDS = 0.2;
static const double VELOCITY_1_LIMIT = 4.0 * EPG_PI;
static const double VELOCITY_2_LIMIT = 9.0 * EPG_PI;

typedef struct acrobot {
    double at[SIZE]; /* theta 1, theta 2, their velocities */
} acrobot;

static void describe(const void *parameters, epg_spec *spec)
{
    (void)parameters;
    spec->max_episode_steps = 500;
    spec->description = epg_strdup(
        "Swing the free end of a two-link pendulum above a line one link's length over its fixed pivot. Both links are "
        "1 m long; the first hangs from the pivot, and only the joint between the two has a motor, which gives -1, 0 "
        "or "
        "+1 N m of torque, held for 0.2 s a step. Theta 1 is the first link's angle from hanging straight down, theta "
        "2 "
        "the second link's angle relative to the first; both are seen as cosine and sine. The free end's height over "
        "the pivot is -cos(theta1) - cos(theta1 + theta2); the Episode ends when that is above 1.0. Every step earns "
        "-1, the one that reaches the height 0; after 500 steps the Episode is cut. Each Episode starts hanging nearly "
        "still: the four underlying numbers are drawn evenly from [-0.1, 0.1]. The score is the mean return, at most "
        "0, "
        "higher for a faster swing-up; an Episode in which the Policy fails counts as -500.");
    epg_simple_literal(
        &spec->observation_space,
        "{'type': 'object', 'policy_carrier': 'dict[str, float]', 'source_dtype': 'float32', 'fields': {"
        "'cos_theta_1': {'type': 'float', 'minimum': -1.0, 'maximum': 1.0,"
        " 'meaning': 'Cosine of the first link angle; 1 when it hangs straight down.'},"
        "'sin_theta_1': {'type': 'float', 'minimum': -1.0, 'maximum': 1.0, 'meaning': 'Sine of that angle.'},"
        "'cos_theta_2': {'type': 'float', 'minimum': -1.0, 'maximum': 1.0,"
        " 'meaning': 'Cosine of the second link angle relative to the first; 1 when they are in line.'},"
        "'sin_theta_2': {'type': 'float', 'minimum': -1.0, 'maximum': 1.0, 'meaning': 'Sine of that angle.'},"
        "'theta_1_angular_velocity': {'type': 'float', 'minimum': -12.566371, 'maximum': 12.566371,"
        " 'unit': 'radians_per_second'},"
        "'theta_2_angular_velocity': {'type': 'float', 'minimum': -28.274334, 'maximum': 28.274334,"
        " 'unit': 'radians_per_second'}}}");
    epg_simple_literal(&spec->action_space,
                       "{'type': 'discrete', 'values': [0, 1, 2], 'policy_carrier': 'int',"
                       " 'component': 'middle_joint_torque', 'meaning': {'0': 'apply_negative_torque',"
                       " '1': 'apply_zero_torque', '2': 'apply_positive_torque'},"
                       " 'strictness': 'An int from 0 to 2; any other value is an invalid Action.'}");
    epg_simple_literal(
        &spec->environment_parameters,
        "{'available_torques_newton_meters': [-1.0, 0.0, 1.0], 'dynamics_equations': 'sutton_barto_book',"
        " 'gravity_meters_per_second_squared': 9.8, 'initial_underlying_state_maximum': 0.1,"
        " 'initial_underlying_state_minimum': -0.1, 'integrator': 'runge_kutta_4', 'link_1_length_meters': 1.0,"
        " 'link_1_mass_kilograms': 1.0, 'link_2_length_meters': 1.0, 'link_2_mass_kilograms': 1.0,"
        " 'link_center_of_mass_meters': 0.5, 'link_moment_of_inertia': 1.0, 'nonterminal_reward': -1.0,"
        " 'seconds_per_step': 0.2, 'successful_terminal_reward': 0.0,"
        " 'target_height_formula': '-cos(theta1)-cos(theta1+theta2)',"
        " 'target_height_strictly_greater_than_meters': 1.0,"
        " 'theta_1_velocity_limit_radians_per_second': 12.566370614359172,"
        " 'theta_2_velocity_limit_radians_per_second': 28.274333882308138, 'time_limit': 500,"
        " 'torque_noise_maximum': 0.0}");
}

static double worst_return(const void *parameters)
{
    (void)parameters;
    return -500.0;
}

static void reset(void *state, const void *parameters, epg_random *random)
{
    (void)parameters;
    acrobot *self = state;
    for (int i = 0; i < SIZE; i++) {
        self->at[i] = epg_float32(epg_random_uniform(random, -0.1, 0.1)); /* Gymnasium's first state is float32 */
    }
}

/* The state's derivative under a torque. */
static void derive(const double at[SIZE], double torque, double out[SIZE])
{
    double velocity_1 = at[2];
    double velocity_2 = at[3];
    double sine_2;
    double cosine_2;
    epg_sin_cos(at[1], &sine_2, &cosine_2);
    double d1 = CENTRE * CENTRE + (1.0 + CENTRE * CENTRE + 2.0 * CENTRE * cosine_2) + 1.0 + 1.0;
    double d2 = (CENTRE * CENTRE + CENTRE * cosine_2) + 1.0;
    double phi2 = CENTRE * GRAVITY * epg_cos(at[0] + at[1] - EPG_PI / 2.0);
    double phi1 = -CENTRE * (velocity_2 * velocity_2) * sine_2 - 2.0 * CENTRE * velocity_2 * velocity_1 * sine_2 +
                  (CENTRE + 1.0) * GRAVITY * epg_cos(at[0] - EPG_PI / 2.0) + phi2;
    double acceleration_2 = (torque + d2 / d1 * phi1 - CENTRE * (velocity_1 * velocity_1) * sine_2 - phi2) /
                            (CENTRE * CENTRE + 1.0 - d2 * d2 / d1);
    out[0] = velocity_1;
    out[1] = velocity_2;
    out[2] = -(d2 * acceleration_2 + phi1) / d1;
    out[3] = acceleration_2;
}

/* at + by * slope */
static void along(const double at[SIZE], double by, const double slope[SIZE], double out[SIZE])
{
    for (int i = 0; i < SIZE; i++) {
        out[i] = at[i] + by * slope[i];
    }
}

static void runge_kutta(double at[SIZE], double torque)
{
    double k1[SIZE];
    double k2[SIZE];
    double k3[SIZE];
    double k4[SIZE];
    double probe[SIZE];
    derive(at, torque, k1);
    along(at, SECONDS / 2.0, k1, probe);
    derive(probe, torque, k2);
    along(at, SECONDS / 2.0, k2, probe);
    derive(probe, torque, k3);
    along(at, SECONDS, k3, probe);
    derive(probe, torque, k4);
    for (int i = 0; i < SIZE; i++) {
        at[i] = at[i] + SECONDS / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
    }
}

static double wrap(double angle)
{
    while (angle > EPG_PI) {
        angle -= 2.0 * EPG_PI;
    }
    while (angle < -EPG_PI) {
        angle += 2.0 * EPG_PI;
    }
    return angle;
}

static double bound(double value, double limit)
{
    return value < -limit ? -limit : value > limit ? limit : value;
}

static void step(void *state, const void *parameters, epg_random *random, epg_action action, epg_outcome *out)
{
    (void)parameters;
    (void)random;
    acrobot *self = state;
    runge_kutta(self->at, (double)action.index - 1.0);
    self->at[0] = wrap(self->at[0]);
    self->at[1] = wrap(self->at[1]);
    self->at[2] = bound(self->at[2], VELOCITY_1_LIMIT);
    self->at[3] = bound(self->at[3], VELOCITY_2_LIMIT);
    out->terminated = -epg_cos(self->at[0]) - epg_cos(self->at[1] + self->at[0]) > 1.0;
    out->reward = out->terminated ? 0.0 : -1.0;
    out->end = "reached_the_height";
}

static void put(epg_buffer *out, const char *key, double value)
{
    epg_value_put_key(out, key);
    epg_value_put_float(out, epg_float32(value));
}

static void observe(const void *state, const void *parameters, epg_buffer *out)
{
    (void)parameters;
    const acrobot *self = state;
    double sine_1;
    double cosine_1;
    double sine_2;
    double cosine_2;
    epg_sin_cos(self->at[0], &sine_1, &cosine_1);
    epg_sin_cos(self->at[1], &sine_2, &cosine_2);
    epg_value_put_map(out, 6);
    put(out, "cos_theta_1", cosine_1);
    put(out, "cos_theta_2", cosine_2);
    put(out, "sin_theta_1", sine_1);
    put(out, "sin_theta_2", sine_2);
    put(out, "theta_1_angular_velocity", self->at[2]);
    put(out, "theta_2_angular_velocity", self->at[3]);
}

const epg_simple_kind epg_acrobot_kind = {
    .name = "acrobot",
    .id = "gymnasium/Acrobot-v1/mean-return-v1",
    .primary_metric = "mean_return",
    .action_count = 3,
    .state_size = sizeof(acrobot),
    .describe = describe,
    .worst_return = worst_return,
    .reset = reset,
    .step = step,
    .observe = observe,
};
