from evopolicygym.policy import Policy, PolicyContext


class Right(Policy):
    def act(self, observation):
        return 1


def make_policy(context: PolicyContext) -> Policy:
    return Right()
