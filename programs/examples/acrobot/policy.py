"""A weak but valid Acrobot Policy: torque one way all the time. It hardly ever reaches the height."""

from evopolicygym.policy import Policy, PolicyContext, PolicyValue


class ConstantTorque(Policy):
    def act(self, observation: PolicyValue) -> PolicyValue:
        return 2


def make_policy(context: PolicyContext) -> Policy:
    return ConstantTorque()
