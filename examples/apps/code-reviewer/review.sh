# Reviews the commits of $BRANCH of $REPOSITORY since the last look, at most 20, and opens an issue for each with
# findings. The clone and the last commit lie in the agent's own folder on this node. Works without a model; needs git
# and curl.
set -u
api() { # METHOD PATH [BODY]
  curl -sS --fail-with-body --max-time 30 -X "$1" -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" \
    -H 'Content-Type: application/json' ${3:+-d "$3"} "$PAPERCLIP_API_URL$2"
}
json() { printf '%s' "$1" | tr -d '\000-\010\013-\037' | sed 's/\\/\\\\/g; s/"/\\"/g' | awk '{ printf "%s%s", s, $0; s = "\\n" }'; }
home=${AGENT_HOME:-.}
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
[ -z "${PAPERCLIP_TASK_ID:-}" ] || api POST "/api/issues/$PAPERCLIP_TASK_ID/checkout" \
  "{\"agentId\":\"$PAPERCLIP_AGENT_ID\",\"expectedStatuses\":[\"todo\",\"backlog\",\"blocked\",\"in_progress\"]}" >/dev/null || exit 1
REPOSITORY=${REPOSITORY:-${PAPERCLIP_WORKSPACE_REPO_URL:-}}
if [ -z "$REPOSITORY" ]; then
  echo "no repository is set"
  [ -z "${PAPERCLIP_TASK_ID:-}" ] || api PATCH "/api/issues/$PAPERCLIP_TASK_ID" \
    '{"status":"done","comment":"No repository is set, so nothing was reviewed. Set one: selvage app upgrade DIR --rollback --set repository=URL"}' >/dev/null
  exit
fi
clone=$home/clone.git
if [ ! -d "$clone" ]; then
  git clone --quiet --bare -- "$REPOSITORY" "$clone" || exit 1
fi
cd "$clone" || exit 1
heads=$(git ls-remote --symref -- "$REPOSITORY" HEAD 'refs/heads/*') || exit 1
[ -n "${BRANCH:-}" ] || BRANCH=$(printf '%s\n' "$heads" | awk '$1 == "ref:" { sub("^refs/heads/", "", $2); print $2; exit }')
if ! printf '%s\n' "$heads" | awk -v "b=refs/heads/$BRANCH" '$2 == b { found = 1 } END { exit !found }'; then
  has=$(printf '%s\n' "$heads" | awk '$1 != "ref:" && sub("^refs/heads/", "", $2) { printf "%s%s", s, $2; s = ", " }' | cut -c1-500)
  echo "$REPOSITORY has no branch ${BRANCH:-(none is its first)}; it has: $has"
  [ -z "${PAPERCLIP_TASK_ID:-}" ] || api PATCH "/api/issues/$PAPERCLIP_TASK_ID" "{\"status\":\"done\",\"comment\":\"$(json "The repository has no branch $BRANCH, so nothing was reviewed. It has: $has. Set one: selvage app upgrade DIR --rollback --set branch=NAME")\"}" >/dev/null
  exit
fi
git fetch --quiet --force -- "$REPOSITORY" "refs/heads/$BRANCH:refs/heads/$BRANCH" || exit 1
head=$(git rev-parse --verify --quiet "refs/heads/$BRANCH") || { echo "no branch $BRANCH"; exit 1; }
last=$(cat "$home/last" 2>/dev/null)
if [ -n "$last" ] && git merge-base --is-ancestor "$last" "$head" 2>/dev/null; then
  commits=$(git rev-list --reverse --max-count=20 "$last..$head")
else
  commits=$head
fi
# review prints the findings of a commit: "- FILE: what".
review() {
  git show --format= --unified=0 --no-color --no-ext-diff "$1" | awk '
    /^\+\+\+ / { file = substr($0, 7); next }
    /^@@ / { split($3, at, ","); line = substr(at[1], 2) - 1; next }
    /^\+/ {
      line++; text = substr($0, 2)
      if (text ~ /^(<<<<<<<|>>>>>>>)( |$)/) print "- " file ":" line ": a leftover of a merge"
      if (text ~ /-----BEGIN [A-Z ]*PRIVATE KEY-----/ || text ~ /AKIA[0-9A-Z]{16}/ || text ~ /ghp_[0-9A-Za-z]{20}/) print "- " file ":" line ": a key or a token; replace it"
      if (text ~ /(^|[^A-Za-z])(TODO|FIXME|XXX)([^A-Za-z]|$)/) print "- " file ":" line ": a new TODO"
      if (text ~ /console\.log\(|debugger;|fmt\.Println\(|import pdb|binding\.pry|dbg!\(/) print "- " file ":" line ": debugging?"
    }' | head -n 50
  git diff-tree --no-commit-id -r --root "$1" | while read -r _ _ _ blob _ path; do
    size=$(git cat-file -s "$blob" 2>/dev/null || echo 0)
    [ "$size" -le 1000000 ] || echo "- $path: $size bytes"
  done
  files=$(git diff-tree --no-commit-id --name-only -r --root "$1")
  if printf '%s\n' "$files" | grep -Eq '\.(go|rs|py|js|ts|java|rb|c|cc|cpp)$' && ! printf '%s\n' "$files" | grep -iq test; then
    echo "- code changed, and no test"
  fi
}
n=0 opened=0 said=''
for c in $commits; do
  n=$((n + 1))
  short=$(git rev-parse --short "$c") subject=$(git show -s --format=%s "$c" | cut -c1-120)
  found=$(review "$c")
  said="$said
- $short $subject: $(printf '%s' "$found" | grep -c '^- ' || true) findings"
  if [ -n "$found" ]; then
    text="Commit $c by $(git show -s --format=%an "$c"): $subject

$found

$(git show --stat --format= "$c" | tail -n 20)"
    api POST "/api/companies/$PAPERCLIP_COMPANY_ID/issues" "{\"title\":\"Review $short: $(json "$subject")\",\"description\":\"$(json "$text")\",\"status\":\"todo\",\"originKind\":\"code-reviewer\",\"originId\":\"$c\",\"idempotencyKey\":\"code-reviewer $c\",\"allowDuplicate\":true}" >/dev/null || exit 1
    opened=$((opened + 1))
  fi
  printf '%s' "$c" >"$home/last"
done
echo "$n commits, $opened with findings$said"
if [ -n "${PAPERCLIP_TASK_ID:-}" ]; then
  api PATCH "/api/issues/$PAPERCLIP_TASK_ID" "{\"status\":\"done\",\"comment\":\"$(json "$n commits reviewed, $opened issues opened.
$said")\"}" >/dev/null || exit 1
fi
