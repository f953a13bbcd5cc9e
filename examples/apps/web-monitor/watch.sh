# Looks at each page of $URLS. What it was lies in the agent's own folder on this node: a digest of its text, or the
# status that it answered. Works without a model; needs curl and sha256sum.
set -u
api() { # METHOD PATH [BODY]
  curl -sS --fail-with-body --max-time 30 -X "$1" -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" \
    -H 'Content-Type: application/json' ${3:+-d "$3"} "$PAPERCLIP_API_URL$2"
}
json() { printf '%s' "$1" | tr -d '\000-\010\013-\037' | sed 's/\\/\\\\/g; s/"/\\"/g' | awk '{ printf "%s%s", s, $0; s = "\\n" }'; }
issue() { # TITLE TEXT
  api POST "/api/companies/$PAPERCLIP_COMPANY_ID/issues" "{\"title\":\"$(json "$1")\",\"description\":\"$(json "$2")\",\"status\":\"todo\",\"originKind\":\"web-monitor\"}" >/dev/null
}
state=${AGENT_HOME:-.}/pages
mkdir -p "$state" || exit 1
[ -z "${PAPERCLIP_TASK_ID:-}" ] || api POST "/api/issues/$PAPERCLIP_TASK_ID/checkout" \
  "{\"agentId\":\"$PAPERCLIP_AGENT_ID\",\"expectedStatuses\":[\"todo\",\"backlog\",\"blocked\",\"in_progress\"]}" >/dev/null || exit 1
said='' changed=0
set -f
for url in ${URLS:-$PAPERCLIP_API_URL/healthz}; do
  case $url in http://* | https://*) ;; *) said="$said
- $url: not an address of http or https"; continue ;; esac
  key=$(printf '%s' "$url" | sha256sum | cut -c1-16)
  code=$(curl -sS -L --max-redirs 5 --max-time 60 --max-filesize 10000000 -o "$state/$key.new" -w '%{http_code}' -- "$url" 2>"$state/$key.err") || code=000
  if [ "$code" = 200 ]; then
    now="says $(sha256sum <"$state/$key.new" | cut -c1-16)"
  else
    now="answers $code"
    [ "$code" != 000 ] || now="can not be reached"
  fi
  was=$(cat "$state/$key.state" 2>/dev/null)
  said="$said
- $url: $now"
  # A page that is away when it is looked at for the first time is worth an issue too.
  if [ "$was" != "$now" ] && { [ -n "$was" ] || [ "$code" != 200 ]; }; then
    changed=$((changed + 1))
    text="$url: it was \"$was\", and now it \"$now\"."
    [ -n "$was" ] || text="$url: at the first look it \"$now\"."
    if [ "$code" = 200 ] && [ -f "$state/$key.page" ]; then
      text="$text

\`\`\`diff
$(diff -u "$state/$key.page" "$state/$key.new" | tail -n +3 | head -n 80)
\`\`\`"
    elif [ "$code" = 000 ]; then
      text="$text

$(head -c 500 "$state/$key.err")"
    fi
    case $now in says*) title="Changed: $url" ;; *) title="Away: $url" ;; esac
    issue "$title" "$text" || exit 1
  fi
  printf '%s' "$now" >"$state/$key.state"
  [ "$code" != 200 ] || mv "$state/$key.new" "$state/$key.page"
done
echo "$changed changed$said"
if [ -n "${PAPERCLIP_TASK_ID:-}" ]; then
  api PATCH "/api/issues/$PAPERCLIP_TASK_ID" "{\"status\":\"done\",\"comment\":\"$(json "$changed pages changed since the last look.
$said")\"}" >/dev/null || exit 1
fi
