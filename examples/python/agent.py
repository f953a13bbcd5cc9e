"""An agent in thirty lines: it counts the words of its issue, says so, and closes it."""
import json, os, urllib.request

ENV = {name: os.environ["PAPERCLIP_" + name] for name in ("API_URL", "API_KEY", "AGENT_ID", "COMPANY_ID", "RUN_ID")}


def call(method, path, body=None):
    """Asks the node's API with the token of this run."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ENV["API_URL"] + path, data, method=method, headers={
        "Authorization": "Bearer " + ENV["API_KEY"], "X-Paperclip-Run-Id": ENV["RUN_ID"], "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def work(issue):
    call("POST", f"/api/issues/{issue['id']}/checkout", {"agentId": ENV["AGENT_ID"], "expectedStatuses": ["todo", "in_progress"]})
    words = len(f"{issue['title']} {issue.get('description') or ''}".split())
    call("POST", f"/api/issues/{issue['id']}/comments", {"body": f"This issue has {words} words."})
    call("PATCH", f"/api/issues/{issue['id']}", {"status": "done"})
    print(issue["identifier"], "is done")  # standard output is the run's log


mine = f"/api/companies/{ENV['COMPANY_ID']}/issues?assigneeAgentId={ENV['AGENT_ID']}&status=todo,in_progress"
for issue in call("GET", mine):
    work(issue)
