/* The built-in Benchmarks' kinds, one file each. */
#ifndef EPG_ENVIRONMENTS_KINDS_H
#define EPG_ENVIRONMENTS_KINDS_H

#include "environments/simple.h"

extern const epg_simple_kind epg_cartpole_kind;
extern const epg_simple_kind epg_acrobot_kind;
extern const epg_simple_kind epg_mountain_car_kind;
extern const epg_simple_kind epg_mountain_car_continuous_kind;
extern const epg_simple_kind epg_pendulum_kind;
extern const epg_simple_kind epg_frozen_lake_kind;
extern const epg_simple_kind epg_cliff_walking_kind;
extern const epg_simple_kind epg_taxi_kind;
extern const epg_simple_kind epg_blackjack_kind;

#endif
