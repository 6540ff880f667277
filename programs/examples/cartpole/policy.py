"""A weak but valid CartPole Policy: always push right. It keeps the pole up for about nine steps."""

from evopolicygym.policy import Policy, PolicyContext, PolicyValue


class AlwaysRight(Policy):
    def act(self, observation: PolicyValue) -> PolicyValue:
        return 1


def make_policy(context: PolicyContext) -> Policy:
    return AlwaysRight()
