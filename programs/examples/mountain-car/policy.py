"""A weak but valid MountainCar Policy: full throttle to the right. The engine is too weak, so it never gets there."""

from evopolicygym.policy import Policy, PolicyContext, PolicyValue


class FullThrottle(Policy):
    def act(self, observation: PolicyValue) -> PolicyValue:
        return 2


def make_policy(context: PolicyContext) -> Policy:
    return FullThrottle()
