"""A weak but valid Pendulum Policy: no torque, so the rod just swings."""

from evopolicygym.policy import Policy, PolicyContext, PolicyValue


class NoTorque(Policy):
    def act(self, observation: PolicyValue) -> PolicyValue:
        return 0.0


def make_policy(context: PolicyContext) -> Policy:
    return NoTorque()
