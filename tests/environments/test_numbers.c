/* Random numbers against numpy's (1.24.2, computed there), sin and cos against the C library's long double. */
#include <math.h>
#include <stdlib.h>

#include "environments/random.h"
#include "environments/trig.h"
#include "support/support.h"

/* What numpy gives for a seed: two raw words; then, from the start again: random(), integers(0, 3), integers(0, 13),
 * random(), integers(0, 4), choice of five, uniform(-0.05, 0.05), integers(0, 3000000000). */
typedef struct draws {
    uint64_t seed;
    uint64_t raw[2];
    double first;
    uint32_t of_3, of_13;
    double second;
    uint32_t of_4, of_5;
    double uniform;
    uint32_t of_many;
} draws;

static const draws numpy[] = {
    {UINT64_C(0),
     {UINT64_C(11749869230777074271), UINT64_C(4976686463289251617)},
     0x1.461fd79fb3850p-1,
     1,
     3,
     0x1.4fa7b529d9bd0p-5,
     0,
     0,
     0x1.00a187e6f5faap-5,
     1948247248},
    {UINT64_C(1),
     {UINT64_C(9441442522235856127), UINT64_C(17532960557476522086)},
     0x1.060d7be6f245cp-1,
     2,
     12,
     0x1.273d27b04760cp-3,
     3,
     4,
     -0x1.344b9bfe67aa0p-6,
     2607075741},
    {UINT64_C(42),
     {UINT64_C(14276969152011380360), UINT64_C(8095878257575067585)},
     0x1.8c43f79a2db24p-1,
     1,
     5,
     0x1.b79a2584ddb42p-1,
     0,
     3,
     -0x1.4c732dbc27c1ap-5,
     1579436936},
    {UINT64_C(4294967295),
     {UINT64_C(4647538520743280031), UINT64_C(4041050679407036418)},
     0x1.01fd7ea4c363ep-2,
     2,
     2,
     0x1.262df73ba3636p-2,
     0,
     3,
     0x1.645cb08bdcf48p-5,
     395285850},
    {UINT64_C(4294967296),
     {UINT64_C(16412783775159424549), UINT64_C(10277383025879800780)},
     0x1.c78bd7c50b582p-1,
     2,
     7,
     0x1.9a109ff09b1bdp-1,
     0,
     4,
     -0x1.69951c26bf76cp-5,
     190083292},
    {UINT64_C(9071532795289577885),
     {UINT64_C(13876005797560121712), UINT64_C(6727811316839968920)},
     0x1.8122f38261a9fp-1,
     0,
     4,
     0x1.cdf2bba19ea32p-1,
     3,
     3,
     0x1.1d61594edfc34p-5,
     253977160},
    {UINT64_C(18446744073709551615),
     {UINT64_C(12544278110101001871), UINT64_C(15593249672699323225)},
     0x1.5c2c74f5188eap-1,
     2,
     10,
     0x1.e52b195bc2d00p-8,
     0,
     4,
     -0x1.2ff3a14add66ap-5,
     910079888},
};

START_TEST(draws_are_numpys)
{
    for (size_t i = 0; i < sizeof numpy / sizeof numpy[0]; i++) {
        const draws *right = &numpy[i];
        epg_random random;
        epg_random_seed(&random, right->seed);
        ck_assert_uint_eq(epg_random_u64(&random), right->raw[0]);
        ck_assert_uint_eq(epg_random_u64(&random), right->raw[1]);
        epg_random_seed(&random, right->seed);
        ck_assert_double_eq(epg_random_double(&random), right->first);
        ck_assert_uint_eq(epg_random_below(&random, 3), right->of_3);
        ck_assert_uint_eq(epg_random_below(&random, 13), right->of_13);
        ck_assert_double_eq(epg_random_double(&random), right->second);
        ck_assert_uint_eq(epg_random_below(&random, 4), right->of_4);
        ck_assert_uint_eq(epg_random_below(&random, 5), right->of_5);
        ck_assert_double_eq(epg_random_uniform(&random, -0.05, 0.05), right->uniform);
        ck_assert_uint_eq(epg_random_below(&random, 3000000000), right->of_many);
    }
}
END_TEST

START_TEST(draws_that_are_rejected_are_drawn_again_as_numpy_does)
{
    epg_random random;
    epg_random_seed(&random, 7);
    uint64_t sum = 0;
    for (int i = 0; i < 100000; i++) {
        sum += epg_random_below(&random, 3000000000); /* three draws of ten are rejected */
    }
    ck_assert_uint_eq(sum, UINT64_C(149908795222734));
}
END_TEST

START_TEST(a_category_is_the_first_whose_sum_is_above_the_draw)
{
    static const double never_first[] = {0.0, 1.0};
    static const double short_of_one[] = {0.0, 0.0, 0.0};
    epg_random random;
    epg_random_seed(&random, 1);
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(epg_random_categorical(&random, never_first, 2), 1);
        ck_assert_uint_eq(epg_random_categorical(&random, short_of_one, 3), 0);
    }
}
END_TEST

/* In units of the last place of the right result. */
static double error_of(double ours, long double right)
{
    double size = fabs((double)right);
    return fabs((double)(((long double)ours - right) / ((long double)nextafter(size, INFINITY) - (long double)size)));
}

START_TEST(sine_and_cosine_are_within_one_unit_in_the_last_place)
{
    static const double ranges[] = {0.3, 0.79, 3.2, 12.0, 200.0, 1e6};
    for (size_t k = 0; k < sizeof ranges / sizeof ranges[0]; k++) {
        for (int i = -20000; i <= 20000; i++) {
            double x = ranges[k] * (double)i / 20000.0;
            double sine;
            double cosine;
            epg_sin_cos(x, &sine, &cosine);
            ck_assert_double_le(error_of(sine, sinl((long double)x)), 0.85);
            ck_assert_double_le(error_of(cosine, cosl((long double)x)), 0.85);
            ck_assert_double_eq(sine, epg_sin(x));
            ck_assert_double_eq(cosine, epg_cos(x));
        }
    }
}
END_TEST

START_TEST(sine_and_cosine_hold_near_multiples_of_a_quarter_turn)
{
    for (int n = -200; n <= 200; n++) {
        double x = (double)n * 1.5707963267948966;
        for (int i = 0; i < 3; i++) {
            ck_assert_double_le(error_of(epg_sin(x), sinl((long double)x)), 0.85);
            ck_assert_double_le(error_of(epg_cos(x), cosl((long double)x)), 0.85);
            x = nextafter(x, INFINITY);
        }
    }
    ck_assert_double_eq(epg_sin(0.0), 0.0);
    ck_assert_double_eq(epg_cos(0.0), 1.0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("numbers");
    TCase *tests = tcase_create("numbers");
    tcase_add_test(tests, draws_are_numpys);
    tcase_add_test(tests, draws_that_are_rejected_are_drawn_again_as_numpy_does);
    tcase_add_test(tests, a_category_is_the_first_whose_sum_is_above_the_draw);
    tcase_add_test(tests, sine_and_cosine_are_within_one_unit_in_the_last_place);
    tcase_add_test(tests, sine_and_cosine_hold_near_multiples_of_a_quarter_turn);
    suite_add_tcase(suite, tests);
    return epg_test_main(suite);
}
