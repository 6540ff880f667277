#include "environments/trig.h"

#include <stdint.h>

static const double QUARTER = 0x1.921fb54442d18p-1; /* pi/4 */
static const double TWO_OVER_PI = 0x1.45f306dc9c883p-1;
static const double HALF_PI_1 = 0x1.921fb54400000p+0;  /* pi/2: its first 33 bits, */
static const double HALF_PI_2 = 0x1.0b4611a600000p-34; /* the next 33, */
static const double HALF_PI_3 = 0x1.3198a2e037073p-69; /* and the rest */

/* x as a multiple of pi/2 (its last two bits are returned) and a remainder in two parts, within [-pi/4, pi/4]. */
static unsigned reduce(double x, double *high, double *low)
{
    double turns = x * TWO_OVER_PI;
    int64_t whole = (int64_t)(turns < 0.0 ? turns - 0.5 : turns + 0.5);
    double n = (double)whole;
    double first = x - n * HALF_PI_1; /* exact: the product has at most 53 bits, the difference cancels */
    double part = n * HALF_PI_2;      /* exact */
    double second = first - part;
    double back = first - second;
    double lost = (first - (second + back)) + (back - part); /* what `second` was rounded by */
    double rest = n * HALF_PI_3 - lost;
    *high = second - rest;
    *low = (second - *high) - rest;
    return (unsigned)(whole & 3);
}

/* sin(x + y) = sin x + y cos x for a tiny y: x - x^3/3! + x^5/5! - ... - x^19/19! */
static double sine_near(double x, double y)
{
    double z = x * x;
    double tail = -1.0 / 121645100408832000.0;
    tail = 1.0 / 355687428096000.0 + z * tail;
    tail = -1.0 / 1307674368000.0 + z * tail;
    tail = 1.0 / 6227020800.0 + z * tail;
    tail = -1.0 / 39916800.0 + z * tail;
    tail = 1.0 / 362880.0 + z * tail;
    tail = -1.0 / 5040.0 + z * tail;
    tail = 1.0 / 120.0 + z * tail;
    tail = -1.0 / 6.0 + z * tail;
    return x + (x * z * tail + y * (1.0 - 0.5 * z));
}

/* cos(x + y) = cos x - y sin x for a tiny y: 1 - x^2/2! + x^4/4! - ... + x^18/18! */
static double cosine_near(double x, double y)
{
    double z = x * x;
    double tail = -1.0 / 6402373705728000.0;
    tail = 1.0 / 20922789888000.0 + z * tail;
    tail = -1.0 / 87178291200.0 + z * tail;
    tail = 1.0 / 479001600.0 + z * tail;
    tail = -1.0 / 3628800.0 + z * tail;
    tail = 1.0 / 40320.0 + z * tail;
    tail = -1.0 / 720.0 + z * tail;
    tail = 1.0 / 24.0 + z * tail;
    double half = 0.5 * z;
    double lead = 1.0 - half;
    return lead + (((1.0 - lead) - half) + (z * z * tail - x * y));
}

void epg_sin_cos(double x, double *sine, double *cosine)
{
    double high = x;
    double low = 0.0;
    unsigned quadrant = x >= -QUARTER && x <= QUARTER ? 0 : reduce(x, &high, &low);
    double s = sine_near(high, low);
    double c = cosine_near(high, low);
    *sine = quadrant == 0 ? s : quadrant == 1 ? c : quadrant == 2 ? -s : -c;
    *cosine = quadrant == 0 ? c : quadrant == 1 ? -s : quadrant == 2 ? -c : s;
}

double epg_sin(double x)
{
    double sine;
    double cosine;
    epg_sin_cos(x, &sine, &cosine);
    return sine;
}

double epg_cos(double x)
{
    double sine;
    double cosine;
    epg_sin_cos(x, &sine, &cosine);
    return cosine;
}
