/* Blackjack-v1: one hand against a dealer who draws below 17, from a deck that never runs out. */
#include "base/memory.h"
#include "environments/kinds.h"

enum { BUST_ABOVE = 21, DEALER_STICKS_AT = 17, DECK = 13 };

typedef struct blackjack_parameters {
    bool natural, sab;
} blackjack_parameters;

typedef struct hand {
    int sum; /* aces as 1 */
    int cards;
    bool ace, ten;
} hand;

typedef struct blackjack {
    hand player, dealer;
    int dealer_showing;
} blackjack;

static epg_code configure(void *parameters, const char *text, epg_error *err)
{
    blackjack_parameters *self = parameters;
    *self = (blackjack_parameters){.natural = false, .sab = true};
    const epg_parameter table[] = {
        {.name = "natural", .kind = EPG_PARAMETER_BOOL, .target = &self->natural},
        {.name = "sab", .kind = EPG_PARAMETER_BOOL, .target = &self->sab},
    };
    return epg_parameters_parse("blackjack", text, table, EPG_COUNT(table), err);
}

static void describe(const void *parameters, epg_spec *spec)
{
    const blackjack_parameters *self = parameters;
    bool bonus = self->natural && !self->sab;
    spec->max_episode_steps = 32;
    spec->description = epg_format(
        "Play one hand of blackjack against a dealer. Number cards count their number, face cards 10, an ace 1 or, "
        "when "
        "that does not pass 21, 11 (a usable ace). Cards are drawn from a deck that never runs out: 1/13 for each "
        "value "
        "from 1 to 9, 4/13 for 10. You and the dealer get two cards each; one of the dealer's is shown. Hit to draw a "
        "card, and lose at once with -1 when your sum passes 21; stick, and the dealer draws until reaching 17 or "
        "more. "
        "Then the sum nearer to 21 wins, a dealer over 21 loses: 1 for a win, 0 for a draw, -1 for a loss. %s The "
        "score "
        "is the mean reward over the Episodes (the best Policies are near -0.05); an Episode in which the Policy fails "
        "counts as -1.",
        self->sab ? "A natural (an ace and a ten as your first two cards) wins against everything but the dealer's "
                    "natural."
        : bonus   ? "Winning with a natural (an ace and a ten as your first two cards) earns 1.5."
                  : "A natural (an ace and a ten as your first two cards) is a 21 like any other.");
    epg_simple_literal(&spec->observation_space,
                       "{'type': 'object', 'policy_carrier': 'dict', 'fields': {"
                       "'player_sum': {'type': 'integer', 'minimum': 4, 'maximum': 31,"
                       " 'meaning': 'Your sum, a usable ace counted as 11.'},"
                       "'dealer_showing': {'type': 'integer', 'minimum': 1, 'maximum': 10,"
                       " 'meaning': 'The shown card of the dealer; 1 is an ace.'},"
                       "'usable_ace': {'type': 'boolean', 'meaning': 'Whether an ace counts as 11 in your sum.'}}}");
    epg_simple_literal(&spec->action_space,
                       "{'type': 'discrete', 'values': [0, 1], 'policy_carrier': 'int', 'component': 'decision',"
                       " 'meaning': {'0': 'stick', '1': 'hit'},"
                       " 'strictness': 'An int 0 or 1; any other value is an invalid Action.'}");
    EPG_AUTO_FREE char *text = epg_format(
        "{'bust_above': 21, 'card_value_probabilities': {'1': 0.07692307692307693, '2': 0.07692307692307693,"
        " '3': 0.07692307692307693, '4': 0.07692307692307693, '5': 0.07692307692307693, '6': 0.07692307692307693,"
        " '7': 0.07692307692307693, '8': 0.07692307692307693, '9': 0.07692307692307693, '10': 0.3076923076923077},"
        " 'dealer_public_cards': 1, 'dealer_sticks_at': 17, 'draw_reward': 0.0, 'draw_with_replacement': true,"
        " 'effective_natural_bonus': %s, 'initial_dealer_cards': 2, 'initial_player_cards': 2,"
        " 'loss_or_bust_reward': -1.0, 'natural': %s, 'nonterminal_hit_reward': 0.0, 'otherwise_ace_value': 1,"
        " 'sab': %s, 'time_limit': 32, 'usable_ace_value': 11, 'win_reward': 1.0}",
        bonus ? "1.5" : "1.0", self->natural ? "true" : "false", self->sab ? "true" : "false");
    epg_simple_literal(&spec->environment_parameters, text);
}

static double worst_return(const void *parameters)
{
    (void)parameters;
    return -1.0;
}

static int draw(hand *to, epg_random *random)
{
    static const int deck[DECK] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10};
    int card = deck[epg_random_below(random, DECK)];
    to->sum += card;
    to->cards++;
    to->ace = to->ace || card == 1;
    to->ten = to->ten || card == 10;
    return card;
}

static bool usable_ace(const hand *of)
{
    return of->ace && of->sum + 10 <= BUST_ABOVE;
}

static int best_sum(const hand *of)
{
    return of->sum + (usable_ace(of) ? 10 : 0);
}

static int score(const hand *of)
{
    return best_sum(of) > BUST_ABOVE ? 0 : best_sum(of);
}

static bool is_natural(const hand *of)
{
    return of->cards == 2 && of->ace && of->ten;
}

static void reset(void *state, const void *parameters, epg_random *random)
{
    (void)parameters;
    blackjack *self = state;
    self->dealer_showing = draw(&self->dealer, random);
    (void)draw(&self->dealer, random);
    (void)draw(&self->player, random);
    (void)draw(&self->player, random);
    (void)epg_random_below(random, 4); /* Gymnasium draws the shown card's suit, */
    if (self->dealer_showing == 10) {
        (void)epg_random_below(random, 3); /* and its face, for its picture */
    }
}

static void stick(blackjack *self, const blackjack_parameters *rules, epg_random *random, epg_outcome *out)
{
    while (best_sum(&self->dealer) < DEALER_STICKS_AT) {
        (void)draw(&self->dealer, random);
    }
    int player = score(&self->player);
    int dealer = score(&self->dealer);
    out->reward = player > dealer ? 1.0 : player < dealer ? -1.0 : 0.0;
    if (rules->sab && is_natural(&self->player) && !is_natural(&self->dealer)) {
        out->reward = 1.0;
    } else if (!rules->sab && rules->natural && is_natural(&self->player) && out->reward > 0.0) {
        out->reward = 1.5;
    }
    out->terminated = true;
    out->end = out->reward > 0.0 ? "won" : out->reward < 0.0 ? "lost" : "drew";
}

static void step(void *state, const void *parameters, epg_random *random, epg_action action, epg_outcome *out)
{
    blackjack *self = state;
    if (action.index == 0) {
        stick(self, parameters, random, out);
        return;
    }
    (void)draw(&self->player, random);
    out->terminated = best_sum(&self->player) > BUST_ABOVE;
    out->reward = out->terminated ? -1.0 : 0.0;
    out->end = "went_bust";
}

static void observe(const void *state, const void *parameters, epg_buffer *out)
{
    (void)parameters;
    const blackjack *self = state;
    epg_value_put_map(out, 3);
    epg_value_put_key(out, "dealer_showing");
    epg_value_put_i64(out, self->dealer_showing);
    epg_value_put_key(out, "player_sum");
    epg_value_put_i64(out, best_sum(&self->player));
    epg_value_put_key(out, "usable_ace");
    epg_value_put_bool(out, usable_ace(&self->player));
}

const epg_simple_kind epg_blackjack_kind = {
    .name = "blackjack",
    .id = "gymnasium/Blackjack-v1/mean-reward-v1",
    .primary_metric = "mean_reward",
    .action_count = 2,
    .parameters_size = sizeof(blackjack_parameters),
    .state_size = sizeof(blackjack),
    .configure = configure,
    .describe = describe,
    .worst_return = worst_return,
    .reset = reset,
    .step = step,
    .observe = observe,
};
