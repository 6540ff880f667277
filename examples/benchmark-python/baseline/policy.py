"""Guesses at random."""

import random


class Guesser:
    def __init__(self, context):
        self.random = random.Random(context.policy_seed)
        self.size = context.environment_parameters["size"]

    def act(self, observation):
        return self.random.randrange(self.size)


def make_policy(context):
    return Guesser(context)
