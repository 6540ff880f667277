"""A weak but valid Blackjack Policy: always stick."""

from evopolicygym.policy import Policy, PolicyContext, PolicyValue


class AlwaysStick(Policy):
    def act(self, observation: PolicyValue) -> PolicyValue:
        return 0


def make_policy(context: PolicyContext) -> Policy:
    return AlwaysStick()
