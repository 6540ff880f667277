/* sin and cos that are the same on every machine.
 *
 * A C library picks its sin and cos by the processor (with fused multiply-add or without), and their last bits differ;
 * a chaotic system then gives other Episodes elsewhere. These use only IEEE double additions and multiplications in a
 * fixed order (the build forbids contraction), so every conforming machine and compiler gives the same bits: reduction
 * by a three-part pi/2, then the Taylor series on [-pi/4, pi/4]. The result is within 0.8 units in the last place, and
 * the correctly rounded one for 97 arguments of 100. `x` must be within 2^20, which no Environment here comes near. */
#ifndef EPG_ENVIRONMENTS_TRIG_H
#define EPG_ENVIRONMENTS_TRIG_H

#define EPG_PI 3.141592653589793

double epg_sin(double x);
double epg_cos(double x);
void epg_sin_cos(double x, double *sine, double *cosine);

#endif
