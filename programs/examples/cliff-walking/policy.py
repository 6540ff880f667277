"""A weak but valid CliffWalking Policy: up first, then right along the top, then down. Safe, but not short."""

from evopolicygym.policy import Policy, PolicyContext, PolicyValue


class AlongTheTop(Policy):
    def act(self, observation: PolicyValue) -> PolicyValue:
        row, column = observation["row"], observation["column"]
        if column == 11:
            return 2
        return 0 if row > 0 else 1


def make_policy(context: PolicyContext) -> Policy:
    return AlongTheTop()
