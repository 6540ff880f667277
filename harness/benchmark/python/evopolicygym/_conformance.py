"""What check_benchmark does: plans and Episodes are the same twice, and every rule of authoring is kept."""

from ._calling import calling
from ._values import public_bytes
from .authoring import BenchmarkFixture, BenchmarkSpec, ConformanceIssue, ConformanceReport, EpisodeSpec, Step
from .authoring import InvalidAction


def _setting(fixture, named, names, default):
    """What was given under the first of several names for the same."""
    for name in names:
        for found in (named.get(name), getattr(fixture, name, None)):
            if found is not None:
                return found
    return default


def _sequences(actions):
    """One list of Actions for each Episode; a flat list is one for all of them."""
    actions = list(actions)
    if all(isinstance(one, (list, tuple)) for one in actions):
        return [list(one) for one in actions], []
    return [], actions


def _play(benchmark, episode, actions, limit):
    """One Episode's observations and Steps as bytes; stops where the Actions or the Episode do."""
    environment = benchmark.make_environment(episode)
    try:
        trace = [public_bytes(environment.reset(), "reset's observation")]
        for action in actions[:limit]:
            try:
                step = environment.step(action)
            except InvalidAction as refused:
                step = refused
            if isinstance(step, InvalidAction) or step is InvalidAction:
                trace.append("invalid")
                break
            if not isinstance(step, Step):
                raise TypeError("step returned %s, not a Step" % type(step).__name__)
            trace.append(step._wire)
            if step.terminated or step.truncated:
                break
        return trace
    finally:
        environment.close()


def check(benchmark, fixture, named):
    if isinstance(benchmark, BenchmarkFixture):
        fixture, benchmark = benchmark, benchmark.benchmark
    if callable(benchmark) and not hasattr(benchmark, "make_environment"):
        benchmark = benchmark()
    issues = []

    def attempt(code, location, action):
        try:
            return action()
        except Exception as error:
            issues.append(ConformanceIssue(code, "%s: %s" % (type(error).__name__, error), location))
            return None

    split, seed = _setting(fixture, named, ("split",), "train"), _setting(fixture, named, ("seed",), 0)
    actions, same = _sequences(_setting(fixture, named, ("actions", "action_sequences", "valid_actions"), ()))
    count = _setting(fixture, named, ("count", "episode_count", "episodes"), max(len(actions), 2))
    spec = attempt("spec", "spec", lambda: benchmark.spec() if callable(benchmark.spec) else benchmark.spec)
    if spec is not None and not isinstance(spec, BenchmarkSpec):
        issues.append(ConformanceIssue("spec", "spec is no BenchmarkSpec", "spec"))
    names = ("split", "seed", "count")
    plan = lambda: list(calling(benchmark.episodes, names)(split, seed, count))
    plans = [attempt("episodes", "episodes", plan) for _ in range(2)]
    if None in plans or issues:
        return ConformanceReport(issues)
    if len(plans[0]) != count or not all(isinstance(episode, EpisodeSpec) for episode in plans[0]):
        issues.append(ConformanceIssue("episodes", "episodes must be exactly %d EpisodeSpecs" % count, "episodes"))
    if plans[0] != plans[1]:
        issues.append(ConformanceIssue("determinism", "the same plan twice differs", "episodes"))
    for index, episode in enumerate(plans[0] if not issues else ()):
        chosen = actions[index] if index < len(actions) else same
        where = "episode %d" % index
        traces = [
            attempt("episode", where, lambda: _play(benchmark, episode, chosen, spec.max_episode_steps))
            for _ in range(2)
        ]
        if None not in traces and traces[0] != traces[1]:
            issues.append(ConformanceIssue("determinism", "the same Episode twice differs", where))
    return ConformanceReport(issues)
