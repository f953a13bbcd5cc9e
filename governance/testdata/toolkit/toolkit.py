"""Measures the policy evaluator of the agent governance toolkit: 1 rule and 100 rules of one comparison each, about an act that none
of them is against, as BenchmarkBesideToolkit of package governance does with the gate. Prints one line for each: rules, µs an act."""
import sys
import time

from agent_os.policies import PolicyDocument, PolicyEvaluator

ACT = {"tool_name": "fs.move", "agent": "ada", "risk": 500, "magnitude": 500, "role": "worker"}


def evaluator(rules):
    return PolicyEvaluator([PolicyDocument.model_validate({
        "name": "beside",
        "rules": [{"name": f"R-{i:03d}", "priority": i, "action": "deny", "message": "no",
                   "condition": {"field": "risk", "operator": "gt", "value": 700 + i}} for i in range(rules)],
        "defaults": {"action": "allow"}})])


def main():
    for rules in (1, 100):
        e, n, took = evaluator(rules), 0, 0.0
        if not e.evaluate(ACT).allowed or e.evaluate({**ACT, "risk": 950}).allowed:
            sys.exit("the rules do not decide as they should")
        end = time.perf_counter() + 1.0
        while (start := time.perf_counter()) < end:
            for _ in range(200):
                e.evaluate(ACT)
            took += time.perf_counter() - start
            n += 200
        print(rules, f"{took / n * 1e6:.2f}", flush=True)


main()
