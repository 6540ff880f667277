"""A weak but valid MountainCarContinuous Policy: half force to the right. It never gets there, and pays for it."""

from evopolicygym.policy import Policy, PolicyContext, PolicyValue


class HalfForce(Policy):
    def act(self, observation: PolicyValue) -> PolicyValue:
        return 0.5


def make_policy(context: PolicyContext) -> Policy:
    return HalfForce()
